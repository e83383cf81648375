"""Lesson 47: what its checks need to know, and its functions held to PyTorch's."""

import copy

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from hypothesis import strategies as st

from tests.checking import (
    equal,
    seeded,
    share_parameters,
    train_with_adam,
    without_forward_of,
)

# Printed numbers that may differ between processors: the line, and each number's range.
BANDS = {}

# Numbers of the prose that no output shows, and why they may stand there.
NUMBERS = {}

# Terms that a reader must find in the glossary.
TERMS = []

# Faults that are ideas and no slips, each found wrong by the notebook's own comparison.
FAULTS = {}

# Mutants that survive, by the reason why they may.
ACCEPTED = {}

# A right answer to each exercise, written otherwise than ours.
ANSWERS = {}

# Functions that no check holds, and why.
EXEMPT = {"train_eval": "trains: an experiment, judged by printed bands"}

# Functions held to PyTorch's on drawn inputs stand below.
few = st.integers(1, 3)
noises = st.sampled_from([0.0, 0.1, 2.0])
grids = {"rows": few, "cols": few, "P": few, "C": few}
readouts = st.sampled_from(["class", "mean"])


def layer_of(block):
    """Return PyTorch's layer with the very parameters of our block."""
    D, FF = block.linear1.in_features, block.linear1.out_features
    options = {"dropout": 0.0, "activation": "gelu", "batch_first": True}
    heads = block.self_attn.num_heads
    layer = nn.TransformerEncoderLayer(D, heads, FF, norm_first=True, **options)
    return share_parameters(layer, block)


def shuffle(images, P, order):
    """Return the images with their patches in another order."""
    patches = F.unfold(images, P, stride=P)[..., order]
    return F.fold(patches, images.shape[2:], P, stride=P)


@equal("patchify", "unpatchify", "embed_patches", "PatchSum", **grids)
def test_patches(lesson, normal, module, B, rows, cols, P, C, D, seed):
    images = normal(B, C, rows * P, cols * P)
    patches = F.unfold(images, P, stride=P).mT
    yield lesson.patchify(images, P), patches
    yield lesson.unpatchify(patches, P, rows * P, cols * P), images
    conv = module(nn.Conv2d(C, D, P, stride=P))
    yield lesson.embed_patches(images, conv), conv(images).flatten(2).mT
    model = module(lesson.PatchSum(P, C, D, 3))
    yield model(images), model.mlp(model.patch_embed(images).sum((2, 3)))
    with pytest.raises(RuntimeError):
        lesson.patchify(torch.zeros(1, 1, 10, 12), 4)


@equal("split_heads")
def test_split_heads(lesson, normal, module, B, T, H, d_head):
    x, D = normal(B, T, H * d_head), H * d_head
    mha = module(nn.MultiheadAttention(D, H, batch_first=True))
    whole = F.linear(x, mha.in_proj_weight, mha.in_proj_bias).chunk(3, -1)
    reference = [torch.stack(part.split(d_head, -1), 1) for part in whole]
    yield lesson.split_heads(x, mha), reference


@equal("PreNormBlock", "encode", "torch_encoder", d_head=st.integers(4, 5))
def test_encoder(lesson, normal, module, B, T, H, d_head, FF, L):
    x, norm = normal(B, T, H * d_head), module(nn.LayerNorm(H * d_head))
    blocks = [lesson.PreNormBlock(H * d_head, H, FF) for _ in range(L)]
    layers = [layer_of(module(block)) for block in blocks]
    reference = nn.Sequential(*layers, norm)(x)
    yield blocks[0].self_attn.num_heads, H
    yield lesson.encode(x, blocks, norm), reference
    yield lesson.torch_encoder(blocks, norm)(x).detach(), reference.detach()


models = {"readout": st.sampled_from(["class", "mean"]), "use_pos": st.booleans()}


@equal("ViT", "vit_torch", d_head=st.integers(4, 5), rows=few, P=few, C=few, **models)
def test_vit(lesson, normal, module, rows, P, C, H, d_head, FF, L, readout, use_pos):
    size, images = rows * P, normal(2, C, rows * P, rows * P)
    model = lesson.ViT(size, P, C, H * d_head, H, FF, L, 3, use_pos, readout)
    encoder = nn.Sequential(*map(layer_of, module(model).blocks), model.norm)
    x, skip = model.patch_embed(images).flatten(2).mT, readout == "class"
    if skip:
        x = torch.cat([model.class_token.repeat(2, 1, 1), x], 1)
    x = encoder(x + model.pos_embed if use_pos else x)
    reference = model.head(x[:, 0] if skip else x.mean(1))
    with without_forward_of(nn.MultiheadAttention, nn.LayerNorm, nn.Linear, nn.Conv2d):
        ours = model(images)
    yield ours, reference
    if use_pos:
        yield lesson.vit_torch(model, images).detach(), reference.detach()
    else:  # the order of patches is invisible
        yield model(shuffle(images, P, torch.arange(rows**2).flip(0))), ours


@equal("class_attention", "position_similarity", rows=few)
def test_what_a_vit_looks_at(lesson, normal, module, rows, L, d_head):
    images = normal(2, 1, 2 * rows, 2 * rows)
    model = module(lesson.ViT(2 * rows, 2, 1, 3 * d_head, 3, 5, L, 2))
    x, last = model.tokens(images), model.blocks[-1]
    for block in model.blocks[:-1]:
        x = layer_of(block)(x)
    _, weights = last.self_attn(*[last.norm1(x)] * 3)
    yield lesson.class_attention(model, images), weights[:, 0, 1:].detach()
    places = model.pos_embed[1:].detach()
    cosines = F.cosine_similarity(places.unsqueeze(1), places, dim=-1)
    yield lesson.position_similarity(model), cosines


@equal("CNN", image_size=few.map(lambda n: 4 * n), C=few)
def test_cnn(lesson, normal, module, B, image_size, C, D):
    images, model = (
        normal(B, C, image_size, image_size),
        lesson.CNN(image_size, C, D, 3),
    )
    x, convs = images, [m for m in module(model).convs if isinstance(m, nn.Conv2d)]
    for conv, width in zip(convs, (4, 4, 3), strict=True):
        x = F.gelu(F.conv2d(x, conv.weight, conv.bias, stride=2, padding=1))
        yield conv.weight.shape[2:], (width, width)
    yield model(images), model.head(x.flatten(1))


@equal("smallest_gap", "inputs_seen", D=st.integers(2, 6))
def test_measures(lesson, normal, T, n, D, seed):
    tokens, others = normal(1, T, D), normal(1, n, D).detach()
    gaps = [(a - b).norm() for a in tokens[0].detach() for b in others[0]]
    yield lesson.smallest_gap(tokens.detach(), others), min(gaps)
    weights = (
        torch.randn(T, D, generator=seeded(seed)).relu()
        * torch.tensor([-1.0, 1.0] * D)[:D]
    )
    output = (tokens * weights).sum().exp()
    for _ in range(2):  # the graph is kept
        yield lesson.inputs_seen(output, tokens), weights.any(1).sum()


makers = dict.fromkeys(["quadrant_vit", "quadrant_cnn"], (16, 4))
makers |= dict.fromkeys(["glyph_vit", "glyph_sum", "glyph_cnn"], (12, 2))


@equal(*makers, examples=3)
def test_models_fit_their_data_and_each_other(lesson, module, normal):
    counts = {16: [], 12: []}
    for name, (size, classes) in makers.items():
        model, images = module(getattr(lesson, name)()), normal(2, 1, size, size)
        counts[size].append(sum(p.numel() for p in model.parameters()))
        yield model(images).shape, (2, classes)
        turned = shuffle(images, 4, torch.arange((size // 4) ** 2).flip(0))
        blind = torch.allclose(model(turned), model(images), atol=1e-3)
        yield blind, name == "glyph_sum"
    for alike in counts.values():  # a fair comparison: within 3 %
        yield max(alike) < 1.03 * min(alike), True
    yield lesson.quadrant_vit(use_pos=False).pos_embed is None, True


@equal("make_quadrants", "four_versions", "make_data", arm=few, noise=noises)
def test_quadrants(lesson, n, arm, B, noise, seed):
    generator, half = seeded(seed), 2 * arm + B
    labels = torch.randint(4, (n,), generator=generator)
    places = torch.randint(half - 2 * arm, (2, n), generator=generator) + arm
    crosses = torch.zeros(n, 1, 2 * half, 2 * half)
    for cross, label, row, col in zip(crosses, labels.tolist(), *places.tolist()):
        row, col = row + half * (label // 2), col + half * (label % 2)
        cross[0, row - arm : row + arm + 1, col] = 1
        cross[0, row, col - arm : col + arm + 1] = 1
    images = crosses + noise * torch.randn(crosses.shape, generator=generator)
    yield lesson.make_quadrants(n, seeded(seed), 2 * half, arm, noise), (images, labels)
    versions, new = lesson.four_versions(crosses, labels)
    yield versions[0], crosses
    yield new.sort(0).values, torch.arange(4).view(4, 1).expand(4, n)
    mass = versions.view(4, n, 2, half, 2, half).sum((3, 5)).flatten(2)
    yield mass.argmax(-1), new
    generator = seeded(seed)
    reference = [lesson.make_quadrants(count, generator) for count in (n, B)]
    yield lesson.make_data(lesson.make_quadrants, seed, n, B), reference


@equal(
    "make_glyphs",
    "equal_by_sum",
    rows=st.integers(2, 4),
    P=st.integers(2, 4),
    noise=noises,
)
def test_glyphs(lesson, n, rows, P, noise, seed):
    generator, cells = seeded(seed), range(rows**2)
    pairs = [
        (a, b)
        for a in cells
        for b in cells
        if max(abs(a // rows - b // rows), abs(a % rows - b % rows)) == rows - 1
    ]
    places = torch.randint(len(pairs), (n,), generator=generator)
    labels = torch.randint(2, (n,), generator=generator)
    glyphs = 2.0 * torch.randint(2, (2, n, P * P), generator=generator) - 1
    patches = torch.zeros(n, P * P, rows**2)
    for i, (place, label) in enumerate(zip(places.tolist(), labels.tolist())):
        first, second = pairs[place]
        patches[i, :, first] = glyphs[0, i]
        patches[i, :, second] = glyphs[1 - label, i]
    images = F.fold(patches, rows * P, P, stride=P)
    images = images + noise * torch.randn(images.shape, generator=generator)
    yield lesson.make_glyphs(n, seeded(seed), rows, P, noise), (images, labels)
    total = F.unfold(images, P, stride=P).sum(-1).abs()
    for threshold in (0.8, 1.5):
        yield lesson.equal_by_sum(images, P, threshold), (total > threshold).all(1)


@equal("fit", batch=few)
def test_fit(lesson, normal, module, n, D, batch, seed):
    x, y, generator = normal(n, D).detach(), torch.arange(n) % 3, seeded(seed)
    ours = module(nn.Linear(D, 3))
    theirs = copy.deepcopy(ours)

    def loss():
        items = torch.randint(n, (batch,), generator=generator)
        return F.cross_entropy(theirs(x[items]), y[items])

    lesson.fit(ours, x, y, seed, steps=10, batch=batch, lr=0.1)
    rates = [0.05, 0.09, 0.08, 0.07, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01]
    train_with_adam(theirs, rates, loss)
    yield ours.state_dict(), theirs.state_dict()
