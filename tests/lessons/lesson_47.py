"""Lesson 47: what its checks need to know, and its functions held to PyTorch's."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from hypothesis import strategies as st

from tests.checking import (
    by_hand,
    equal,
    mlp,
    seeded,
    share_parameters,
    train_with_adam,
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


# Functions held to PyTorch's on drawn inputs stand below.
def layer_of(block, D, H, FF):
    """Return PyTorch's layer of these sizes with the very parameters of our block."""
    options = {"dropout": 0.0, "activation": "gelu", "batch_first": True}
    layer = nn.TransformerEncoderLayer(D, H, FF, norm_first=True, **options)
    return share_parameters(layer, block)


def turn(images, P):
    """Return the images with their patches in the reverse order."""
    patches = F.unfold(images, P, stride=P).flip(-1)
    return F.fold(patches, images.shape[2:], P, stride=P)


@equal("patchify", "unpatchify", "embed_patches", "PatchSum")
def test_patches(lesson, normal, module, B, rows, cols, P, C, D):
    images = normal(B, C, rows * P, cols * P)
    patches = F.unfold(images, P, stride=P).mT
    yield lesson.patchify(images, P), patches
    yield lesson.unpatchify(patches, P, rows * P, cols * P), images
    conv = module(nn.Conv2d(C, D, P, stride=P))
    yield lesson.embed_patches(images, conv), conv(images).flatten(2).mT
    model = module(lesson.PatchSum(P, C, D, 3))
    read = share_parameters(mlp(D, D, D, 3, activation=nn.GELU), model.mlp)
    yield model(images), read(model.patch_embed(images).sum((2, 3)))


@equal("split_heads")
def test_split_heads(lesson, normal, module, B, T, H, d_head):
    x, D = normal(B, T, H * d_head), H * d_head
    mha = module(nn.MultiheadAttention(D, H, batch_first=True))
    parts = F.linear(x, mha.in_proj_weight, mha.in_proj_bias).chunk(3, -1)
    reference = [torch.stack(part.split(d_head, -1), 1) for part in parts]
    yield lesson.split_heads(x, mha), reference


@equal("PreNormBlock", "encode", "torch_encoder")
def test_encoder(lesson, normal, module, B, T, H, d_wide, FF, L):
    D, x = H * d_wide, normal(B, T, H * d_wide)
    blocks = [module(lesson.PreNormBlock(D, H, FF)) for _ in range(L)]
    layers, norm = [layer_of(block, D, H, FF) for block in blocks], nn.LayerNorm(D)
    reference = nn.Sequential(*layers, module(norm))(x)
    yield lesson.encode(x, blocks, norm), reference
    yield lesson.torch_encoder(blocks, norm)(x).detach(), reference.detach()


@equal("ViT", "vit_torch", readout=st.sampled_from(["class", "mean"]))
def test_vit(lesson, normal, module, rows, P, C, H, d_wide, FF, L, readout, use_pos):
    D, images = H * d_wide, normal(2, C, rows * P, rows * P)
    model = module(lesson.ViT(rows * P, P, C, D, H, FF, L, 3, use_pos, readout))
    layers = [layer_of(block, D, H, FF) for block in model.blocks]
    x, skip = model.patch_embed(images).flatten(2).mT, readout == "class"
    if skip:
        x = torch.cat([model.class_token.repeat(2, 1, 1), x], 1)
    x = nn.Sequential(*layers, model.norm)(x + model.pos_embed if use_pos else x)
    reference = model.head(x[:, 0] if skip else x.mean(1))
    yield len(list(model.parameters())), 6 + 12 * L + skip + use_pos
    if use_pos:
        yield lesson.vit_torch(model, images).detach(), reference.detach()
    else:  # the order of patches is invisible
        yield model(turn(images, P)), reference
    yield by_hand(model)(images), reference


@equal("PreNormBlock", "class_attention", "position_similarity")
def test_what_a_vit_looks_at(lesson, normal, module, rows, L, d_wide):
    D, images = 3 * d_wide, normal(2, 1, 2 * rows, 2 * rows)
    model = module(lesson.ViT(2 * rows, 2, 1, D, 3, 5, L, 2))
    *layers, _ = [layer_of(block, D, 3, 5) for block in model.blocks]
    last = model.blocks[-1]
    x = nn.Sequential(*layers, last.norm1)(model.tokens(images))
    _, weights = last.self_attn(x, x, x)
    yield lesson.class_attention(model, images), weights[:, 0, 1:].detach()
    places = model.pos_embed[1:].detach()
    cosines = F.cosine_similarity(places.unsqueeze(1), places, dim=-1)
    yield lesson.position_similarity(model), cosines


@equal("CNN", n=st.integers(1, 9))
def test_cnn(lesson, normal, module, B, n, C, D):
    images, model = normal(B, C, 4 * n, 4 * n), module(lesson.CNN(4 * n, C, D, 3))
    x, convs = images, [m for m in model.convs if isinstance(m, nn.Conv2d)]
    for conv in convs:
        x = F.gelu(F.conv2d(x, conv.weight, conv.bias, stride=2, padding=1))
    yield [conv.kernel_size for conv in convs], [(4, 4), (4, 4), (3, 3)]
    yield model(images), model.head(x.flatten(1))


@equal("smallest_gap", "inputs_seen")
def test_measures(lesson, normal, T, n, D, seed):
    tokens, others = normal(1, T, D + 1), normal(1, n, D + 1).detach()
    gaps = [(a - b).norm() for a in tokens[0].detach() for b in others[0]]
    yield lesson.smallest_gap(tokens.detach(), others), min(gaps)
    weights = torch.randint(-1, 2, (T, D + 1), generator=seeded(seed))
    output = (tokens * weights).sum().exp()
    for _ in range(2):  # the graph is kept
        yield lesson.inputs_seen(output, tokens), weights.any(1).sum()


makers = {"quadrant_vit": (16, 4), "quadrant_cnn": (16, 4)}
makers |= {"glyph_vit": (12, 2), "glyph_sum": (12, 2), "glyph_cnn": (12, 2)}


@equal(*makers, examples=3)
def test_models_fit_their_data_and_each_other(lesson, module, normal):
    counts = {16: [], 12: []}
    for name, (size, classes) in makers.items():
        model, images = module(getattr(lesson, name)()), normal(2, 1, size, size)
        logits, turned = model(images), model(turn(images, 4))
        yield logits.shape, (2, classes)
        yield torch.allclose(turned, logits, atol=1e-3), name == "glyph_sum"
        counts[size].append(lesson.count_parameters(model))
    for alike in counts.values():  # a fair comparison
        yield max(alike) < 1.03 * min(alike), True
    yield lesson.quadrant_vit(use_pos=False).pos_embed is None, True


@equal("make_quadrants", "four_versions", "make_data")
def test_quadrants(lesson, n, P, B, noise, seed):
    generator, half = seeded(seed), 2 * P + B
    labels = torch.randint(4, (n,), generator=generator)
    places = torch.randint(half - 2 * P, (2, n), generator=generator) + P
    centres = places + half * torch.stack([labels // 2, labels % 2])
    down, right = (torch.arange(2 * half) - centres.unsqueeze(2)).abs()
    down, right = down.unsqueeze(2), right.unsqueeze(1)  # from the centre
    crosses = ((down + right <= P) & (down * right == 0)).unsqueeze(1).float()
    images = crosses + noise * torch.randn(crosses.shape, generator=generator)
    yield lesson.make_quadrants(n, seeded(seed), 2 * half, P, noise), (images, labels)
    versions, new = lesson.four_versions(crosses, labels)
    yield versions[0], crosses
    mass = versions.view(4, n, 2, half, 2, half).sum((3, 5)).flatten(2)
    yield new, mass.argmax(-1)
    yield new.sort(0).values, torch.arange(4).unsqueeze(1).expand(4, n)
    generator, make = seeded(seed), lesson.make_quadrants
    draws = [make(m, generator, 16, 2, 0.3) for m in (n, 2000)]
    yield lesson.make_data(make, seed, n), draws


@equal("make_glyphs", "equal_by_sum")
def test_glyphs(lesson, n, rows, P, noise, seed):
    generator, side = seeded(seed), rows + 1
    cells = torch.cartesian_prod(torch.arange(side), torch.arange(side)).float()
    pairs = (torch.cdist(cells, cells, p=math.inf) == rows).nonzero()
    places = pairs[torch.randint(len(pairs), (n,), generator=generator)]
    labels = torch.randint(2, (n,), generator=generator)
    glyphs = 2.0 * torch.randint(2, (2, n, P * P), generator=generator) - 1
    patches = torch.zeros(n, P * P, side**2)
    for i, (first, second) in enumerate(places):
        patches[i, :, first] = glyphs[0, i]
        patches[i, :, second] = glyphs[1 - labels[i], i]
    images = F.fold(patches, side * P, P, stride=P)
    images = images + noise * torch.randn(images.shape, generator=generator)
    yield lesson.make_glyphs(n, seeded(seed), side, P, noise), (images, labels)
    default = lesson.make_glyphs(n, seeded(seed))
    yield default, lesson.make_glyphs(n, seeded(seed), 3, 4, 0.1)
    total = F.unfold(images, P, stride=P).sum(-1).abs()
    for threshold in (0.8, 2.0):
        yield lesson.equal_by_sum(images, P, threshold), (total > threshold).all(1)


@equal("fit", "train_eval", examples=5)
def test_training(lesson, n, D, seed):
    x, y = torch.randn(n + 3, D, generator=seeded(seed)), torch.arange(n + 3) % 3
    theirs, generator = nn.Linear(D, 3), seeded(100 + seed)  # drawn from `seed`

    def loss():
        items = torch.randint(n, (64,), generator=generator)  # of the first n
        return F.cross_entropy(theirs(x[items]), y[items])

    rates = [0.005, 0.009, 0.008, 0.007, 0.006, 0.005, 0.004, 0.003, 0.002, 0.001]
    train_with_adam(theirs, rates, loss)
    data = (x, y), (x[:2], y[:2])
    ours, accuracy = lesson.train_eval(lambda: nn.Linear(D, 3), seed, data, n, steps=10)
    yield ours.state_dict(), theirs.state_dict()
    yield accuracy, lesson.accuracy(theirs, x[:2], y[:2])
