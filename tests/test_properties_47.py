"""Properties of the functions of Lesson 47: patches, pre-norm and geometry."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from hypothesis import strategies as st

from parity import assert_gradients_equal, gradients, make_input
from strategies import (
    assert_close,
    assert_gradients_hold,
    attention_module,
    dtypes,
    heads,
    holds_for,
    permutation,
    randomised,
    seeds,
    sizes,
    twin,
    wide_heads,
)

LESSON = ["47"]
few = st.integers(1, 3)
grids = st.tuples(few, few, few)  # rows, columns, P
readouts = st.sampled_from(["class", "mean"])


def make_images(grid, B, C, seed, dtype=torch.float64):
    rows, cols, P = grid
    return make_input(B, C, rows * P, cols * P, dtype=dtype, seed=seed)


def make_blocks(lesson, size, FF, L, seed, dtype=torch.float64):
    D = size[0] * size[1]
    blocks = [lesson.PreNormBlock(D, size[0], FF) for _ in range(L)]
    blocks = randomised(nn.ModuleList(blocks), seed, dtype)
    return blocks, randomised(nn.LayerNorm(D), seed + 1, dtype)


def reference_encoder(blocks, norm):
    """PyTorch's layers, built without the lesson's help."""
    layers = []
    for block in blocks:
        mha, FF = block.self_attn, block.linear1.out_features
        layer = nn.TransformerEncoderLayer(
            *(mha.embed_dim, mha.num_heads, FF),
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        layers.append(layer.to(norm.weight.dtype))
        layer.load_state_dict(block.state_dict())
    return nn.Sequential(*layers, norm)


def make_vit(lesson, seed, dtype=torch.float64, **changes):
    options = dict(image_size=6, P=2, C=2, D=6, H=2, FF=5, L=2, classes=3)
    return randomised(lesson.ViT(**options | changes), seed, dtype)


def shuffled_patches(images, P, order):
    """Patches in another order, by slicing and without the lesson's help."""
    cols, result = images.shape[3] // P, torch.empty_like(images)

    def place(number):
        row, col = P * (number // cols), P * (number % cols)
        return ..., slice(row, row + P), slice(col, col + P)

    for to, source in enumerate(order.tolist()):
        result[place(to)] = images[place(source)]
    return result


# ---- patches -------------------------------------------------------------------


@holds_for(
    "patchify",
    "unpatchify",
    faults=[
        ("47", "patchify", "0, 2, 4, 1, 3, 5", "0, 4, 2, 1, 3, 5"),
        ("47", "patchify", "0, 2, 4, 1, 3, 5", "0, 2, 4, 3, 5, 1"),
        ("47", "unpatchify", "0, 3, 1, 4, 2, 5", "0, 3, 1, 5, 2, 4"),
        ("47", "unpatchify", "rows, cols, -1, P, P", "cols, rows, -1, P, P"),
    ],
    grid=grids,
    B=few,
    C=few,
    seed=seeds,
)
def test_patches_are_unfolds_and_go_back(lesson, grid, B, C, seed):
    """Row by row, channel by channel; two inverses, to the bit."""
    images, (rows, cols, P) = make_images(grid, B, C, seed), grid
    patches = lesson.patchify(images, P)
    assert torch.equal(patches, F.unfold(images, P, stride=P).mT)
    for t in range(rows * cols):
        i, j = P * (t // cols), P * (t % cols)
        patch = images[:, :, i : i + P, j : j + P].reshape(B, -1)
        assert torch.equal(patches[:, t], patch)
    assert torch.equal(lesson.unpatchify(patches, P, rows * P, cols * P), images)
    drawn = make_input(*patches.shape, seed=seed + 1)
    image = lesson.unpatchify(drawn, P, rows * P, cols * P)
    assert torch.equal(lesson.patchify(image, P), drawn)


@holds_for(
    "embed_patches",
    "patchify",
    "PatchSum",
    faults=[
        ("47", "embed_patches", "+ conv.bias", ""),
        ("47", "embed_patches", "conv.weight.flatten(1)", "conv.weight.mT.flatten(1)"),
        ("47", "PatchSum", "tokens.sum(dim=1)", "tokens.mean(dim=1)"),
    ],
    grid=grids,
    B=few,
    C=few,
    D=sizes,
    dtype=dtypes,
    seed=seeds,
)
def test_embedding_is_a_strided_convolution(lesson, grid, B, C, D, dtype, seed):
    """And a sum over patches is one in any order."""
    P, images = grid[2], make_images(grid, B, C, seed, dtype).requires_grad_()
    conv = randomised(nn.Conv2d(C, D, P, stride=P), seed, dtype)
    ours, reference = lesson.embed_patches(images, conv), conv(images).flatten(2).mT
    assert_close(ours, reference)
    inputs = [images, *conv.parameters()]
    assert_gradients_equal(gradients(ours, *inputs), gradients(reference, *inputs))
    model = randomised(lesson.PatchSum(P, C, D, 3), seed, dtype)
    logits = model(images)
    assert_close(logits, model.mlp(model.patch_embed(images).sum(dim=(2, 3))))
    order = permutation(grid[0] * grid[1], seed)
    assert_close(model(shuffled_patches(images, P, order)), logits)


# ---- the encoder -----------------------------------------------------------------


@holds_for(
    "split_heads",
    "attention",
    faults=[
        ("47", "split_heads", "(B, T, 3, H, D // H)", "(B, T, H, 3, D // H)"),
        (
            "47",
            "split_heads",
            "permute(2, 0, 3, 1, 4)",
            "permute(2, 0, 3, 1, 4).flip(0)",
        ),
    ],
    size=heads,
    B=sizes,
    T=sizes,
    seed=seeds,
)
def test_split_heads_are_rows_of_the_matrices(lesson, size, B, T, seed):
    """Queries, keys and values, head by head."""
    (H, d_head), mha = size, attention_module(*size, seed)
    x = make_input(B, T, mha.embed_dim, seed=seed)
    qkv = lesson.split_heads(x, mha)
    for i, heads_ in enumerate(qkv):
        assert heads_.shape == (B, H, T, d_head)
        for h in range(H):
            start = i * mha.embed_dim + h * d_head
            rows = slice(start, start + d_head)
            expected = F.linear(x, mha.in_proj_weight[rows], mha.in_proj_bias[rows])
            assert_close(heads_[:, h], expected)
    _, reference = mha(x, x, x, average_attn_weights=False)
    assert_close(lesson.attention(*qkv)[1], reference)


@holds_for(
    "encode",
    "torch_encoder",
    "PreNormBlock",
    "layer_norm",
    "multihead_attention",
    "feed_forward",
    faults=[
        ("47", "PreNormBlock", "return x + feed", "return normed + feed"),
        (
            "47",
            "PreNormBlock",
            "layer_norm(x, self.norm2)",
            "layer_norm(x, self.norm1)",
        ),
        ("47", "PreNormBlock", "attention(normed", "attention(x"),
        ("47", "encode", "return layer_norm(x, norm)", "return x"),
        ("47", "torch_encoder", "norm_first=True", "norm_first=False"),
        (
            "47",
            "torch_encoder",
            "encoder.norm.load_state_dict(norm.state_dict())",
            "pass",
        ),
        ("47", "torch_encoder", 'activation="gelu"', 'activation="relu"'),
    ],
    size=wide_heads,
    FF=sizes,
    L=few,
    B=few,
    T=sizes,
    dtype=dtypes,
    seed=seeds,
)
def test_the_encoder_is_pytorchs(lesson, size, FF, L, B, T, dtype, seed):
    blocks, norm = make_blocks(lesson, size, FF, L, seed, dtype)
    x = make_input(B, T, size[0] * size[1], dtype=dtype, seed=seed).requires_grad_()
    ours, reference = lesson.encode(x, blocks, norm), reference_encoder(blocks, norm)
    assert_close(ours, reference(x))
    assert_close(lesson.torch_encoder(blocks, norm)(x), reference(x))
    names = [name for name, _ in blocks[0].named_parameters()]
    mine = [x, *map(blocks[0].get_parameter, names)]
    theirs = [x, *map(reference[0].get_parameter, names)]
    assert_gradients_equal(gradients(ours, *mine), gradients(reference(x), *theirs))


@holds_for(
    "encode",
    "PreNormBlock",
    faults=[
        ("47", "attention", "scores.softmax", "scores.tril().softmax"),
        (
            "47",
            "layer_norm",
            "x.mean(dim=-1, keepdim=True)",
            "x.mean((0, -1), keepdim=True)",
        ),
        ("47", "encode", "x = block(x)", "x = block(x).cumsum(1)"),
    ],
    size=wide_heads,
    B=st.integers(2, 4),
    T=st.integers(2, 6),
    L=few,
    seed=seeds,
)
def test_the_encoder_keeps_order_of_tokens_and_rows_apart(lesson, size, B, T, L, seed):
    parts = make_blocks(lesson, size, 5, L, seed)
    x, order = make_input(B, T, size[0] * size[1], seed=seed), permutation(T, seed)
    output = lesson.encode(x, *parts)
    assert_close(lesson.encode(x[:, order], *parts), output[:, order])
    other = torch.cat([x[:1], 3 * x[1:] + 1])
    assert torch.equal(lesson.encode(other, *parts)[0], output[0])


# ---- the vision Transformer --------------------------------------------------------


@holds_for(
    "ViT",
    "vit_torch",
    "embed_patches",
    "encode",
    faults=[
        ("47", "ViT", "else x[:, 0]", "else x[:, -1]"),
        ("47", "ViT", "torch.cat([first, x], dim=1)", "torch.cat([x, first], dim=1)"),
        ("47", "ViT", "x + self.pos_embed", "x + self.pos_embed[0]"),
        ("47", "ViT", "x.mean(dim=1) if", "x.sum(dim=1) if"),
        ("47", "vit_torch", "+ model.pos_embed", ""),
    ],
    size=wide_heads,
    grid=few,
    P=few,
    C=few,
    L=few,
    readout=readouts,
    dtype=dtypes,
    seed=seeds,
)
def test_vit_is_pytorchs(lesson, size, grid, P, C, L, readout, dtype, seed):
    H, d_head = size
    sizes_ = dict(image_size=grid * P, P=P, C=C, D=H * d_head, H=H, L=L)
    model = make_vit(lesson, seed, dtype, readout=readout, **sizes_)
    images = make_input(2, C, grid * P, grid * P, dtype=dtype, seed=seed)
    x = model.patch_embed(images).flatten(2).mT
    if readout == "class":
        x = torch.cat([model.class_token.repeat(2, 1, 1), x], dim=1)
    x = reference_encoder(model.blocks, model.norm)(x + model.pos_embed.unsqueeze(0))
    expected = model.head(x[:, 0] if readout == "class" else x.sum(1) / x.shape[1])
    logits = model(images)
    assert_close(logits, expected)
    assert_close(lesson.vit_torch(model, images), expected)
    other = torch.cat([images[:1], 3 * images[1:] + 1])
    assert torch.equal(model(other)[0], logits[0])


@holds_for(
    "ViT",
    "position_similarity",
    faults=[
        ("47", "ViT", "if self.pos_embed is None else", "if True else"),
        ("47", "ViT", "if use_pos:", "if True:"),
        ("47", "position_similarity", "pos_embed[1:]", "pos_embed[:-1]"),
        ("47", "position_similarity", "dim=1", "dim=0"),
    ],
    grid=st.integers(2, 3),
    readout=readouts,
    seed=seeds,
)
def test_order_of_patches_is_only_in_the_position_table(lesson, grid, readout, seed):
    images, order = (
        make_input(2, 2, 2 * grid, 2 * grid, seed=seed),
        permutation(grid**2, seed),
    )
    shuffled = shuffled_patches(images, 2, order)
    options = dict(image_size=2 * grid, readout=readout)
    blind = make_vit(lesson, seed, use_pos=False, **options)
    assert_close(blind(shuffled), blind(images))
    model = make_vit(lesson, seed, **options)
    skip = int(readout == "class")
    table = torch.cat([model.pos_embed[:skip], model.pos_embed[skip:][order]])
    assert_close(twin(model, pos_embed=table)(shuffled), model(images))
    if torch.equal(order, torch.arange(grid**2)):
        return
    assert (model(shuffled) - model(images)).abs().max() > 1e-6
    if readout == "class":
        rows = model.pos_embed[1:].detach()
        ours = lesson.position_similarity(model)
        assert_close(ours, F.cosine_similarity(rows.unsqueeze(1), rows, dim=-1))
        permuted = lesson.position_similarity(twin(model, pos_embed=table))
        assert_close(permuted, ours[order][:, order])


@holds_for(
    "class_attention",
    "ViT",
    "split_heads",
    "attention",
    "layer_norm",
    faults=[
        ("47", "class_attention", "model.blocks[:-1]", "model.blocks"),
        ("47", "class_attention", "last.norm1", "last.norm2"),
        ("47", "class_attention", "[:, 0, 1:]", "[:, 1:, 0]"),
    ],
    grid=st.integers(1, 3),
    L=few,
    seed=seeds,
)
def test_class_attention_is_that_of_the_last_block(lesson, grid, L, seed):
    """Shares of what the class token does not give itself."""
    model = make_vit(lesson, seed, image_size=2 * grid, L=L)
    images = make_input(2, 2, 2 * grid, 2 * grid, seed=seed)
    weights = lesson.class_attention(model, images)
    *first, last = model.blocks
    x = model.tokens(images)
    for layer in reference_encoder(first, model.norm)[:-1]:
        x = layer(x)
    normed = last.norm1(x)
    _, reference = last.self_attn(normed, normed, normed)
    assert weights.shape == (2, grid**2) and not weights.requires_grad
    assert_close(weights, reference[:, 0, 1:].detach())
    assert (weights >= 0).all() and (weights.sum(dim=1) <= 1).all()


@holds_for(
    "ViT",
    "PreNormBlock",
    "embed_patches",
    "CNN",
    "PatchSum",
    examples=2,
    faults=[
        ("47", "PreNormBlock", "return x + feed", "return x.detach() + feed"),
        (
            "47",
            "embed_patches",
            "patchify(images, P) @",
            "patchify(images, P).detach() @",
        ),
        ("47", "CNN", "self.convs(images)", "self.convs(images).detach()"),
        ("47", "PatchSum", "tokens.sum", "tokens.detach().sum"),
    ],
    readout=readouts,
    seed=seeds,
)
def test_gradients_of_the_models(lesson, readout, seed):
    options = dict(image_size=4, C=1, D=4, FF=3, L=1, readout=readout)
    models = [
        make_vit(lesson, seed, **options),
        randomised(lesson.PatchSum(2, 1, 3, 2), seed),
        randomised(lesson.CNN(4, 1, W=2, classes=2), seed),
    ]
    images = make_input(1, 1, 4, 4, seed=seed)
    for model in models:
        assert_gradients_hold(lambda *_: model(images), images, *model.parameters())


# ---- other models, and what is measured ----------------------------------------------


@holds_for(
    "CNN",
    faults=[
        (
            "47",
            "CNN",
            "nn.Conv2d(W, W, 3, stride=2, padding=1), nn.GELU()",
            "nn.Conv2d(W, W, 3, stride=2, padding=1)",
        ),
        (
            "47",
            "CNN",
            "W, W, 4, stride=2, padding=1), nn.GELU()",
            "W, W, 4, stride=2, padding=1), nn.ReLU()",
        ),
    ],
    image_size=few.map(lambda n: 4 * n),
    B=st.integers(2, 3),
    C=few,
    W=sizes,
    seed=seeds,
)
def test_cnn_is_three_convolutions_and_a_head(lesson, image_size, B, C, W, seed):
    model = randomised(lesson.CNN(image_size, C, W, 3), seed)
    images = make_input(B, C, image_size, image_size, seed=seed)
    x = images
    convs = [m for m in model.modules() if isinstance(m, nn.Conv2d)]
    assert len(convs) == 3
    for conv in convs:
        x = F.gelu(F.conv2d(x, conv.weight, conv.bias, stride=2, padding=1))
    expected = x.flatten(1) @ model.head.weight.T + model.head.bias
    assert_close(model(images), expected)
    other = torch.cat([images[:1], 3 * images[1:] + 1])
    assert_close(model(other)[0], model(images)[0])


@holds_for(
    "quadrant_vit",
    "quadrant_cnn",
    "glyph_vit",
    "glyph_sum",
    "glyph_cnn",
    examples=3,
    faults=[
        ("47", "quadrant_vit", "classes=4", "classes=2"),
        ("47", "quadrant_vit", "use_pos=use_pos", "use_pos=True"),
        ("47", "glyph_sum", "PatchSum(4, 1", "PatchSum(3, 1"),
        ("47", "glyph_cnn", "classes=2", "classes=4"),
    ],
    seed=seeds,
)
def test_the_makers_fit_their_data(lesson, seed):
    """One channel, the size and the classes of the task; rows of a batch apart."""
    size, classes = {"quadrant": 16, "glyph": 12}, {"quadrant": 4, "glyph": 2}
    for name in ("quadrant_vit", "quadrant_cnn", "glyph_vit", "glyph_sum", "glyph_cnn"):
        task = name.split("_")[0]
        model = randomised(getattr(lesson, name)(), seed)
        images = make_input(2, 1, size[task], size[task], seed=seed)
        logits = model(images)
        assert logits.shape == (2, classes[task])
        assert_close(model(torch.cat([images[:1], 0 * images[1:]]))[0], logits[0])
        shuffled = shuffled_patches(
            images, 4, permutation((size[task] // 4) ** 2, seed)
        )
        if name == "glyph_sum":
            assert_close(model(shuffled), logits)
        else:
            assert (model(shuffled) - logits).abs().max() > 1e-6
    blind = randomised(lesson.quadrant_vit(use_pos=False), seed)
    images = make_input(2, 1, 16, 16, seed=seed)
    shuffled = shuffled_patches(images, 4, permutation(16, seed))
    assert_close(blind(shuffled), blind(images))


@holds_for(
    "smallest_gap",
    faults=[
        ("47", "smallest_gap", "min()", "max()"),
        (
            "47",
            "smallest_gap",
            "torch.cdist(tokens, others)",
            "torch.cdist(tokens, others, p=1)",
        ),
    ],
    T=sizes,
    S=sizes,
    D=st.integers(2, 6),
    seed=seeds,
)
def test_smallest_gap_is_that_of_the_nearest_pair(lesson, T, S, D, seed):
    tokens, others = make_input(1, T, D, seed=seed), make_input(1, S, D, seed=seed + 1)
    gaps = [(a - b).norm().item() for a in tokens[0] for b in others[0]]
    gap = lesson.smallest_gap(tokens, others)
    assert math.isclose(gap, min(gaps), rel_tol=1e-9)
    assert math.isclose(lesson.smallest_gap(others, tokens), gap, rel_tol=1e-9)
    shared = torch.cat([others, tokens[:, seed % T].unsqueeze(1)], dim=1)
    assert lesson.smallest_gap(tokens, shared) < 1e-6


@holds_for(
    "inputs_seen",
    faults=[
        ("47", "inputs_seen", "gradient.abs()", "gradient"),
        ("47", "inputs_seen", "sum(dim=-1)", "amin(dim=-1)"),
    ],
    places=st.lists(st.booleans(), min_size=1, max_size=8),
    width=st.integers(2, 5),
    seed=seeds,
)
def test_inputs_seen_counts_places(lesson, places, width, seed):
    """Each once, however many of its numbers, and whichever way, have an effect."""
    x = make_input(1, len(places), width, seed=seed).requires_grad_()
    some = make_input(len(places), width, seed=seed + 1) > 0
    weights = make_input(len(places), width, seed=seed + 2) * some
    weights[:, 0] += some.sum(dim=1) == 0
    weights = weights * torch.tensor(places).unsqueeze(1)
    output = (x * weights).sum().exp()
    assert lesson.inputs_seen(output, x) == sum(places)
    assert lesson.inputs_seen(output, x) == sum(places)  # the graph is kept


# ---- the data ----------------------------------------------------------------------


@holds_for(
    "make_quadrants",
    "four_versions",
    faults=[
        (
            "47",
            "make_quadrants",
            "half * (labels // 2), place[1] + half * (labels % 2)",
            "half * (labels % 2), place[1] + half * (labels // 2)",
        ),
        ("47", "make_quadrants", "range(-arm, arm + 1)", "range(-arm, arm)"),
        ("47", "make_quadrants", "2 * arm, (2, n)", "arm, (2, n)"),
        ("47", "make_quadrants", "noise * torch", "0.3 * torch"),
        (
            "47",
            "four_versions",
            "labels ^ (2 * down + right)",
            "labels ^ (down + 2 * right)",
        ),
        ("47", "four_versions", "half * right)", "half * right + 1)"),
    ],
    n=sizes,
    arm=few,
    more=few,
    noise=st.sampled_from([0.0, 0.3, 2.0]),
    seed=seeds,
)
def test_quadrants_hold_one_cross_and_all_four_versions_occur(
    lesson, n, arm, more, noise, seed
):
    half = 2 * arm + more
    size = 2 * half

    def draw(noise):
        generator = torch.Generator().manual_seed(seed)
        return lesson.make_quadrants(n, generator, size, arm, noise)

    images, labels = draw(0.0)
    for image, label in zip(images, labels.tolist(), strict=True):
        i, j = half * (label // 2), half * (label % 2)
        assert image[0, i : i + half, j : j + half].sum() == image.sum() == 4 * arm + 1
        assert image.max() == 1
        row, col = image[0].sum(1).argmax(), image[0].sum(0).argmax()
        assert image[0, row].sum() == image[0, :, col].sum() == 2 * arm + 1
        ends = image[
            0, [row - arm, row + arm, row, row], [col, col, col - arm, col + arm]
        ]
        assert (ends == 1).all()
    noisy, again = draw(noise)
    unit, _ = draw(1.0)
    assert torch.equal(labels, again)
    torch.testing.assert_close(noisy - images, noise * (unit - images))
    versions, new = lesson.four_versions(images, labels)
    assert torch.equal(versions[0], images) and torch.equal(new[0], labels)
    assert torch.equal(new.sort(dim=0).values, torch.arange(4).view(4, 1).expand(4, n))
    for version, label in zip(versions.flatten(0, 1), new.flatten().tolist()):
        i, j = half * (label // 2), half * (label % 2)
        assert version[0, i : i + half, j : j + half].sum() == 4 * arm + 1


@holds_for(
    "make_glyphs",
    "unpatchify",
    "equal_by_sum",
    "patchify",
    faults=[
        ("47", "make_glyphs", "gap == grid - 1", "gap == 1"),
        ("47", "make_glyphs", "labels.unsqueeze(1) == 1", "labels.unsqueeze(1) == 0"),
        ("47", "make_glyphs", "* 2.0 - 1", "* 1.0"),
        ("47", "equal_by_sum", ".abs() > threshold", " > threshold"),
        ("47", "equal_by_sum", "all(dim=1)", "any(dim=1)"),
        ("47", "equal_by_sum", "threshold).all", "0.8).all"),
    ],
    n=st.integers(3, 9),
    grid=st.integers(2, 4),
    P=st.integers(2, 4),
    threshold=st.sampled_from([0.8, 1.5, 2.5]),
    seed=seeds,
)
def test_glyphs_are_equal_where_the_label_says_so(lesson, n, grid, P, threshold, seed):
    """Two on opposite sides; by the sum of all patches they are told apart, unless
    two that were drawn apart came out equal, or none reaches the threshold."""
    generator = torch.Generator().manual_seed(seed)
    images, labels = lesson.make_glyphs(n, generator, grid, P, noise=0.0)
    assert images.shape == (n, 1, grid * P, grid * P)
    cells = F.unfold(images, P, stride=P).mT
    equal = []
    for patches in cells:
        places = patches.abs().sum(dim=1).nonzero().flatten().tolist()
        (r, c), (i, j) = [divmod(place, grid) for place in places]
        assert max(abs(r - i), abs(c - j)) == grid - 1
        assert (patches[places].abs() == 1).all()
        equal.append(torch.equal(*patches[places]))
    equal = torch.tensor(equal)
    assert equal[labels == 1].all()
    # two that are drawn apart may come out equal, once in 2^(P * P) times
    assert P == 2 or equal[labels == 0].sum() <= 1
    rule = lesson.equal_by_sum(images, P, threshold)
    assert torch.equal(rule, equal & (threshold < 2))
    noise = 0.1 * make_input(*images.shape, dtype=torch.float32, seed=seed)
    noisy = cells + F.unfold(noise, P, stride=P).mT
    expected = [min(abs(p) for p in s) > threshold for s in noisy.sum(1).tolist()]
    assert lesson.equal_by_sum(images + noise, P, threshold).tolist() == expected


@holds_for(
    "make_data",
    "make_glyphs",
    "make_quadrants",
    lessons=LESSON,
    faults=[
        (
            "47",
            "make_data",
            "make(n_test, generator)",
            "make(n_test, generator.manual_seed(0))",
        ),
        ("47", "make_data", "manual_seed(seed)", "manual_seed(0)"),
        (
            "47",
            "make_quadrants",
            "torch.randn(n, size, size, generator=generator)",
            "torch.randn(n, size, size)",
        ),
        ("47", "make_glyphs", "(2, (n,), generator=generator)", "(2, (n,))"),
    ],
    maker=st.sampled_from(["make_quadrants", "make_glyphs"]),
    n=st.tuples(sizes, sizes),
    seed=seeds,
)
def test_data_are_two_draws_from_one_generator(lesson, maker, n, seed):
    make = getattr(lesson, maker)
    generator = torch.Generator().manual_seed(seed)
    data = lesson.make_data(make, seed, *n)
    for ours, count in zip(data, n, strict=True):
        reference = make(count, generator)
        assert all(torch.equal(a, b) for a, b in zip(ours, reference, strict=True))
    assert not (data[0][0][:, None] == data[1][0]).flatten(2).all(dim=-1).any()
