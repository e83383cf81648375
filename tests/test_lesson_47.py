"""Lesson 47: its functions equal PyTorch's on shapes the lesson never shows.

All functions come from the notebook. Parameters are randomised, values and
gradients compared, in float32 to 1e-5 and in float64 to 1e-12.
"""

import copy

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from lesson_code import load_lesson
from parity import assert_equal, assert_gradients_equal, dtypes, gradients, make_input

lesson = load_lesson("47")

# (B, C, height, width, P): one pixel a patch, one patch an image, not square
IMAGES = [
    (1, 1, 1, 1, 1),
    (2, 3, 4, 4, 1),
    (2, 3, 5, 5, 5),
    (1, 1, 6, 9, 3),
    (3, 4, 8, 2, 2),
    (2, 5, 16, 16, 4),
    (2, 3, 14, 21, 7),
]
# (B, T, D, H): single tokens, one head, one dimension a head, odd widths
SHAPES = [
    (1, 1, 8, 4),
    (2, 1, 16, 4),
    (2, 5, 16, 1),
    (3, 7, 6, 6),
    (2, 4, 12, 3),
    (1, 9, 15, 5),
    (2, 33, 24, 8),
]

images_ = pytest.mark.parametrize("shape", IMAGES, ids=str)
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)
readouts = pytest.mark.parametrize("readout", ["class", "mean"])


def make_attention(D, H, dtype, seed=0):
    torch.manual_seed(seed)
    mha = nn.MultiheadAttention(D, H, batch_first=True, dtype=dtype)
    return lesson.randomize_(mha, seed=seed + 1)


def make_layer(D, H, FF, dtype):
    """PyTorch's pre-norm layer, built without the lesson's help."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        *(D, H, FF),
        dropout=0.0,
        activation="gelu",
        batch_first=True,
        norm_first=True,
        dtype=dtype,
    )
    return lesson.randomize_(layer, seed=1)


def make_vit(dtype=torch.float64, seed=1, **changes):
    sizes = dict(image_size=12, P=4, C=2, D=12, H=3, FF=20, L=2, classes=5)
    torch.manual_seed(0)
    return lesson.randomize_(lesson.ViT(**sizes | changes).to(dtype), seed)


def permutation(n, seed=0):
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))


# ---- patches ------------------------------------------------------------------


@images_
def test_patchify_is_unfold(shape):
    """F.unfold lists the same windows, with the axes the other way round."""
    *size, P = shape
    images = make_input(*size)
    patches = lesson.patchify(images, P)
    reference = F.unfold(images, P, stride=P).transpose(1, 2)
    assert torch.equal(patches, reference)


@images_
def test_unpatchify_undoes_patchify(shape):
    *size, P = shape
    images = make_input(*size)
    patches = lesson.patchify(images, P)
    assert torch.equal(lesson.unpatchify(patches, P, *size[2:]), images)


@images_
@dtypes
def test_embed_patches_is_a_strided_convolution(shape, dtype):
    *size, P = shape
    images = make_input(*size, dtype=dtype).requires_grad_()
    torch.manual_seed(0)
    conv = lesson.randomize_(nn.Conv2d(size[1], 7, P, stride=P, dtype=dtype), seed=1)
    ours = lesson.embed_patches(images, conv)
    reference = conv(images).flatten(2).transpose(1, 2)
    assert_equal(ours, reference)
    inputs = [images, *conv.parameters()]
    assert_gradients_equal(gradients(ours, *inputs), gradients(reference, *inputs))


def test_an_image_that_cannot_be_cut_is_refused():
    with pytest.raises(RuntimeError, match="invalid for input of size"):
        lesson.patchify(torch.zeros(1, 1, 10, 12), 4)


# ---- the parts -------------------------------------------------------------------


@shapes
@dtypes
def test_multihead_attention(shape, dtype):
    B, T, D, H = shape
    mha = make_attention(D, H, dtype)
    x = make_input(B, T, D, dtype=dtype).requires_grad_()
    ours = lesson.multihead_attention(x, mha)
    reference, weights = mha(x, x, x, average_attn_weights=False)
    assert_equal(ours, reference)
    assert_equal(lesson.attention(*lesson.split_heads(x, mha))[1], weights)
    inputs = [x, *mha.parameters()]
    assert_gradients_equal(gradients(ours, *inputs), gradients(reference, *inputs))


@dtypes
@pytest.mark.parametrize("D, FF", [(1, 1), (5, 3), (16, 64)])
def test_feed_forward(D, FF, dtype):
    linear1 = lesson.randomize_(nn.Linear(D, FF, dtype=dtype), seed=1)
    linear2 = lesson.randomize_(nn.Linear(FF, D, dtype=dtype), seed=2)
    x = make_input(2, 3, D, dtype=dtype)
    reference = nn.Sequential(linear1, nn.GELU(), linear2)(x)
    assert_equal(lesson.feed_forward(x, linear1, linear2), reference)


# ---- the encoder -------------------------------------------------------------------


@shapes
@dtypes
def test_pre_norm_block(shape, dtype):
    B, T, D, H = shape
    layer = make_layer(D, H, 2 * D + 1, dtype)
    block = lesson.PreNormBlock(D, H, 2 * D + 1).to(dtype)
    block.load_state_dict(layer.state_dict())
    x = make_input(B, T, D, dtype=dtype).requires_grad_()
    assert_equal(block(x), layer(x))
    with torch.no_grad():
        assert_equal(block.eval()(x), layer.eval()(x))
    layer.train()
    names = [name for name, _ in block.named_parameters()]
    assert_gradients_equal(
        gradients(block.train()(x), x, *block.parameters()),
        gradients(layer(x), x, *map(layer.get_parameter, names)),
    )


@dtypes
@pytest.mark.parametrize("L", [1, 2, 4])
def test_encode(L, dtype):
    encoder = nn.TransformerEncoder(
        make_layer(12, 3, 20, dtype),
        L,
        norm=nn.LayerNorm(12, dtype=dtype),
        enable_nested_tensor=False,
    )
    lesson.randomize_(encoder, seed=5)
    blocks = [lesson.PreNormBlock(12, 3, 20).to(dtype) for _ in range(L)]
    for ours, theirs in zip(blocks, encoder.layers, strict=True):
        ours.load_state_dict(theirs.state_dict())
    x = make_input(2, 6, 12, dtype=dtype)
    assert_equal(lesson.encode(x, blocks, encoder.norm), encoder(x))


def test_encoder_computes_by_hand(monkeypatch):
    """PyTorch's forward functions must not be on both sides."""
    model = make_vit()

    def refuse(*_, **__):
        raise AssertionError("the model calls PyTorch's own forward")

    for module in (nn.MultiheadAttention, nn.LayerNorm, nn.Linear, nn.Conv2d):
        monkeypatch.setattr(module, "forward", refuse)
    model(make_input(2, 2, 12, 12))


@pytest.mark.parametrize("FF", [5, 24])
def test_torch_encoder_has_our_parameters_and_sizes(FF):
    blocks = nn.ModuleList(lesson.PreNormBlock(12, 3, FF) for _ in range(2))
    norm = nn.LayerNorm(12)
    lesson.randomize_(blocks.double(), seed=1)
    lesson.randomize_(norm.double(), seed=2)
    encoder = lesson.torch_encoder(blocks, norm)
    ours = [*blocks.state_dict().values(), *norm.state_dict().values()]
    theirs = sum(p.numel() for p in encoder.parameters())
    assert theirs == sum(p.numel() for p in ours)
    assert encoder.layers[0].norm_first
    assert encoder.layers[0].activation is F.gelu
    for block, layer in zip(blocks, encoder.layers, strict=True):
        for name, value in block.state_dict().items():
            assert torch.equal(layer.state_dict()[name], value)


# ---- the vision Transformer -----------------------------------------------------------


@readouts
@dtypes
@pytest.mark.parametrize(
    "changes",
    [{}, {"P": 12}, {"P": 1, "image_size": 3}, {"H": 1, "L": 1}, {"C": 1, "H": 12}],
    ids=str,
)
def test_vit(readout, dtype, changes):
    """Against PyTorch's modules, and nothing of the lesson, on the other side."""
    model = make_vit(dtype, readout=readout, **changes)
    conv, size = model.patch_embed, changes.get("image_size", 12)
    images = make_input(3, conv.in_channels, size, size, dtype=dtype)
    layer = make_layer(12, changes.get("H", 3), 20, dtype)
    x = conv(images).flatten(2).transpose(1, 2)
    if readout == "class":
        x = torch.cat([model.class_token.repeat(3, 1, 1), x], dim=1)
    x = x + model.pos_embed.unsqueeze(0)
    for block in model.blocks:
        layer.load_state_dict(block.state_dict())
        x = layer(x)
    x = model.norm(x)
    x = x[:, 0] if readout == "class" else x.mean(dim=1)
    assert_equal(model(images), model.head(x))
    if "image_size" not in changes:
        assert_equal(lesson.vit_torch(model, images), model.head(x))


@readouts
def test_every_parameter_has_a_gradient(readout):
    model = make_vit(readout=readout)
    model(make_input(2, 2, 12, 12)).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        if "in_proj_bias" not in name:  # the key bias has no effect
            assert (parameter.grad != 0).any(), name


@pytest.mark.parametrize("P, patches", [(2, 36), (3, 16), (4, 9), (12, 1)])
def test_position_table(P, patches):
    assert make_vit(P=P).pos_embed.shape == (patches + 1, 12)
    assert make_vit(P=P, readout="mean").pos_embed.shape == (patches, 12)
    assert make_vit(P=P, use_pos=False).pos_embed is None


@readouts
def test_rows_of_a_batch_are_independent(readout):
    model = make_vit(torch.float32, readout=readout)
    images = make_input(3, 2, 12, 12, dtype=torch.float32)
    changed = images.clone()
    changed[1:] = 9.0
    assert torch.equal(model(images)[0], model(changed)[0])


def test_blocks_do_not_share_parameters():
    model = lesson.ViT(12, 4, 2, D=12, H=3, FF=20, L=3, classes=5)
    first, *others = [block.linear1.weight for block in model.blocks]
    assert all(not torch.equal(first, other) for other in others)


def test_size_of_vit_base():
    with torch.device("meta"):
        base = lesson.ViT(224, 16, 3, D=768, H=12, FF=3072, L=12, classes=1000)
    assert lesson.count_parameters(base) == 86_567_656


# ---- geometry ------------------------------------------------------------------------


def shuffled_patches(images, P, order):
    """Patches in another order, by slicing and without the lesson's help."""
    rows, cols = images.shape[2] // P, images.shape[3] // P
    result = torch.empty_like(images)
    for to, source in enumerate(order.tolist()):
        r, c, i, j = *divmod(to, cols), *divmod(source, cols)
        result[:, :, r * P : (r + 1) * P, c * P : (c + 1) * P] = images[
            :, :, i * P : (i + 1) * P, j * P : (j + 1) * P
        ]
    assert rows * cols == len(order)
    return result


@readouts
@pytest.mark.parametrize("seed", range(3))
def test_without_positions_patch_order_is_invisible(readout, seed):
    images = make_input(4, 2, 12, 12, seed=seed)
    shuffled = shuffled_patches(images, 4, permutation(9, seed))
    blind = make_vit(seed=seed, use_pos=False, readout=readout)
    assert_equal(blind(shuffled), blind(images))
    seeing = make_vit(seed=seed, readout=readout)
    assert (seeing(shuffled) - seeing(images)).abs().max() > 1e-2


def test_cnn_sees_patch_order():
    torch.manual_seed(0)
    cnn = lesson.randomize_(lesson.CNN(12, 2, W=6, classes=3), seed=1)
    images = make_input(4, 2, 12, 12, dtype=torch.float32)
    shuffled = shuffled_patches(images, 4, permutation(9))
    assert (cnn(shuffled) - cnn(images)).abs().max() > 1e-2


@pytest.mark.parametrize("seed", range(3))
def test_order_of_patches_is_only_in_the_table(seed):
    model, order = make_vit(seed=seed), permutation(9, seed)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.pos_embed[1:] = model.pos_embed[1:][order]
    images = make_input(4, 2, 12, 12, seed=seed)
    assert_equal(twin(shuffled_patches(images, 4, order)), model(images))


def test_class_tokens_row_is_redundant():
    model = make_vit()
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.class_token += twin.pos_embed[0]
        twin.pos_embed[0] = 0
    images = make_input(2, 2, 12, 12)
    assert_equal(twin(images), model(images))


def test_inputs_seen_counts_places():
    x = make_input(1, 7, 3).requires_grad_()
    assert lesson.inputs_seen(x[0, 2:5].square().sum(), x) == 3


def test_smallest_gap():
    tokens, others = make_input(1, 4, 3), make_input(1, 5, 3, seed=4)
    gaps = [(a - b).norm() for a in tokens[0] for b in others[0]]
    assert lesson.smallest_gap(tokens, others) == pytest.approx(min(gaps).item())
    assert lesson.smallest_gap(tokens, tokens.flip(1)) == pytest.approx(0, abs=1e-7)


# ---- the other models ------------------------------------------------------------------


@pytest.mark.parametrize("image_size", [8, 12, 16, 20])
def test_cnn_takes_its_size_from_its_arguments(image_size):
    cnn = lesson.CNN(image_size, 2, W=6, classes=3)
    assert cnn(torch.zeros(2, 2, image_size, image_size)).shape == (2, 3)


def test_patch_sum_ignores_places():
    torch.manual_seed(0)
    model = lesson.randomize_(lesson.PatchSum(4, 2, 9, 3).double(), seed=1)
    images = make_input(4, 2, 12, 12)
    shuffled = shuffled_patches(images, 4, permutation(9))
    assert_equal(model(shuffled), model(images))
    tokens = model.patch_embed(images).sum(dim=(2, 3))
    assert_equal(model(images), model.mlp(tokens))


@pytest.mark.parametrize(
    "makers",
    [("quadrant_vit", "quadrant_cnn"), ("glyph_vit", "glyph_sum", "glyph_cnn")],
)
def test_budgets_are_alike(makers):
    """The comparison is fair in parameters: within three percent."""
    counts = [lesson.count_parameters(getattr(lesson, maker)()) for maker in makers]
    assert max(counts) / min(counts) < 1.03


# ---- where is the cross ----------------------------------------------------------------


@pytest.mark.parametrize("size, arm", [(16, 2), (16, 1), (12, 2), (32, 3)])
def test_quadrants(size, arm):
    """A whole cross in the labelled quadrant, and nothing anywhere else."""
    generator = torch.Generator().manual_seed(0)
    images, labels = lesson.make_quadrants(400, generator, size, arm, noise=0.0)
    assert images.shape == (400, 1, size, size)
    assert labels.bincount().min() > 60
    half = size // 2
    for image, label in zip(images[:, 0], labels.tolist(), strict=True):
        assert image.sum() == 4 * arm + 1 and image.max() == 1
        row, col = image.sum(1).argmax(), image.sum(0).argmax()
        assert image[row].sum() == image[:, col].sum() == 2 * arm + 1
        assert label == 2 * (row >= half) + (col >= half)
        quadrant = image.view(2, half, 2, half)[label // 2, :, label % 2]
        assert quadrant.sum() == image.sum()


def test_data_have_noise():
    make, seeded = lesson.make_quadrants, torch.Generator().manual_seed
    noise = make(400, seeded(0))[0] - make(400, seeded(0), noise=0.0)[0]
    assert 0.29 < noise.std() < 0.31
    make = lesson.make_glyphs
    noise = make(400, seeded(0))[0] - make(400, seeded(0), noise=0.0)[0]
    assert 0.09 < noise.std() < 0.11


@pytest.mark.parametrize("maker", ["make_quadrants", "make_glyphs"])
def test_data_are_fresh_and_repeatable(maker):
    make = getattr(lesson, maker)
    (x_train, _), (x_test, y_test) = lesson.make_data(make, 0, 50)
    assert len(x_test) == len(y_test) >= 2000
    assert not (x_train[:, None] == x_test[None]).flatten(2).all(-1).any()
    torch.manual_seed(1)  # the global generator must not matter
    assert torch.equal(x_train, lesson.make_data(make, 0, 50)[0][0])
    assert not torch.equal(x_train, lesson.make_data(make, 1, 50)[0][0])


def test_four_versions_carry_the_four_labels():
    generator = torch.Generator().manual_seed(0)
    images, labels = lesson.make_quadrants(100, generator, noise=0.0)
    versions, new_labels = lesson.four_versions(images, labels)
    assert torch.equal(
        new_labels.sort(dim=0).values, torch.arange(4).view(4, 1).expand(4, 100)
    )
    for version, label in zip(versions, new_labels, strict=True):
        mass = version.view(100, 2, 8, 2, 8).sum(dim=(2, 4)).flatten(1)
        assert torch.equal(mass.argmax(dim=1), label)


def test_class_attention():
    model = make_vit()
    images = make_input(3, 2, 12, 12)
    weights = lesson.class_attention(model, images)
    x = model.tokens(images)
    x = make_and_load(model.blocks[0])(x)
    last = model.blocks[-1]
    normed = last.norm1(x)
    _, reference = last.self_attn(normed, normed, normed)
    assert weights.shape == (3, 9)
    assert_equal(weights, reference[:, 0, 1:].detach())


def make_and_load(block):
    layer = make_layer(12, 3, 20, torch.float64)
    layer.load_state_dict(block.state_dict())
    return layer


def test_position_similarity():
    model = make_vit()
    ours = lesson.position_similarity(model)
    rows = model.pos_embed[1:].detach()
    reference = F.cosine_similarity(rows.unsqueeze(1), rows, dim=-1)
    assert_equal(ours, reference)


# ---- glyphs ---------------------------------------------------------------------------


@pytest.mark.parametrize("grid, P", [(3, 4), (4, 3), (2, 5)])
def test_glyphs(grid, P):
    """Two glyphs of +-1 in far cells, equal where the label says so."""
    generator = torch.Generator().manual_seed(0)
    images, labels = lesson.make_glyphs(300, generator, grid, P, noise=0.0)
    assert images.shape == (300, 1, grid * P, grid * P)
    assert 0.4 < labels.float().mean() < 0.6
    cells = F.unfold(images, P, stride=P).transpose(1, 2)  # (n, cells, P * P)
    for patches, label in zip(cells, labels.tolist(), strict=True):
        places = patches.abs().sum(dim=1).nonzero().flatten().tolist()
        (r, c), (i, j) = [divmod(place, grid) for place in places]
        assert max(abs(r - i), abs(c - j)) == grid - 1
        first, second = patches[places]
        assert (first.abs() == 1).all() and (second.abs() == 1).all()
        assert torch.equal(first, second) == bool(label)
    # fresh in every image: as many as so many draws of a pattern give
    glyphs = cells[cells.abs().sum(-1) > 0].unique(dim=0)
    drawn = 300 + (labels == 0).sum().item()
    expected = 2 ** (P * P) * (1 - (1 - 0.5 ** (P * P)) ** drawn)
    assert len(glyphs) > 0.9 * expected


def test_the_rule_on_the_sum():
    generator = torch.Generator().manual_seed(0)
    images, labels = lesson.make_glyphs(2000, generator)
    rule = lesson.equal_by_sum(images)
    assert (rule == labels).float().mean() > 0.99
    moved = lesson.equal_by_sum(images.roll(2, dims=3))
    assert (rule == moved).float().mean() > 0.999


# ---- training -------------------------------------------------------------------------


def test_training_repeats_exactly():
    data = lesson.make_data(lesson.make_quadrants, 0, 50, n_test=100)
    runs = [lesson.train_eval(lesson.quadrant_vit, 3, data, steps=5) for _ in range(2)]
    assert runs[0][1] == runs[1][1]
    for a, b in zip(runs[0][0].parameters(), runs[1][0].parameters(), strict=True):
        assert torch.equal(a, b)


def test_training_uses_the_first_n_images_only():
    (x, y), test = lesson.make_data(lesson.make_quadrants, 0, 60, n_test=100)
    other = x.clone()
    other[20:] = 7.0
    a, _ = lesson.train_eval(lesson.quadrant_cnn, 0, ((x, y), test), 20, steps=5)
    b, _ = lesson.train_eval(lesson.quadrant_cnn, 0, ((other, y), test), 20, steps=5)
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        assert torch.equal(p, q)


def test_training_reduces_the_loss():
    (x, y), _ = lesson.make_data(lesson.make_quadrants, 0, 200)
    torch.manual_seed(0)
    model = lesson.quadrant_cnn()
    before = F.cross_entropy(model(x), y).item()
    lesson.fit(model, x, y, seed=0, steps=60)
    assert F.cross_entropy(model(x), y).item() < 0.5 * before


def test_learning_rate_rises_and_falls(monkeypatch):
    rates = []
    step = torch.optim.Adam.step

    def record(self, *args, **kwargs):
        rates.append(self.param_groups[0]["lr"])
        return step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.Adam, "step", record)
    (x, y), _ = lesson.make_data(lesson.make_quadrants, 0, 8, n_test=8)
    lesson.fit(lesson.quadrant_cnn(), x, y, seed=0, steps=50, batch=2, lr=0.01)
    top = rates.index(max(rates))
    assert len(rates) == 50 and 5 <= top <= 12 and max(rates) < 0.01
    assert rates[:top] == sorted(rates[:top])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert 0 < rates[-1] < 0.001


def test_accuracy_counts():
    def model(x):
        return x

    logits = torch.eye(4)
    labels = torch.tensor([0, 1, 2, 0])
    assert lesson.accuracy(model, logits, labels) == 75.0
