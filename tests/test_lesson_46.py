"""Lesson 46: its functions equal PyTorch's on shapes the lesson never shows.

All functions come from the notebook. Parameters are randomised, values and
gradients compared, in float32 to 1e-5 and in float64 to 1e-12.
"""

import copy
import math

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from lesson_code import load_lesson
from parity import assert_equal, assert_gradients_equal, dtypes, gradients, make_input

lesson = load_lesson("46")

# (B, T, D, H): single tokens, one head, one dimension a head, odd widths
SHAPES = [
    (1, 1, 1, 1),
    (1, 1, 8, 4),
    (2, 1, 16, 4),
    (2, 5, 16, 1),
    (3, 7, 6, 6),
    (2, 4, 12, 3),
    (1, 9, 15, 5),
    (4, 2, 7, 7),
    (2, 33, 24, 8),
]

shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


def make_attention(D, H, dtype, seed=0):
    torch.manual_seed(seed)
    mha = nn.MultiheadAttention(D, H, batch_first=True, dtype=dtype)
    return lesson.randomize_(mha, seed=seed + 1)


def make_layer(D, H, FF, dtype, seed=0):
    torch.manual_seed(seed)
    layer = nn.TransformerEncoderLayer(
        D, H, FF, dropout=0.0, batch_first=True, dtype=dtype
    )
    return lesson.randomize_(layer, seed=seed + 1)


def make_block(layer, D, H, FF):
    block = lesson.EncoderBlock(D, H, FF).to(layer.linear1.weight.dtype)
    block.load_state_dict(layer.state_dict())
    return block


# ---- attention ---------------------------------------------------------------


@dtypes
@pytest.mark.parametrize("seed", range(5))
def test_attention_with_a_mask(seed, dtype):
    q, k, v = make_input(3, 2, 6, 4, dtype=dtype, seed=seed)
    mask = make_input(2, 6, 6, seed=seed + 10) > 0
    mask |= torch.eye(6).bool()  # no row without a key
    output, weights = lesson.attention(q, k, v, mask)
    reference = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert_equal(output, reference)
    assert (weights[~mask] == 0).all()


# ---- multi-head attention ------------------------------------------------------


@shapes
@dtypes
def test_multihead_attention(shape, dtype):
    B, T, D, H = shape
    mha = make_attention(D, H, dtype)
    x = make_input(B, T, D, dtype=dtype).requires_grad_()
    ours = lesson.multihead_attention(x, mha)
    reference, _ = mha(x, x, x)
    assert ours.shape == (B, T, D)
    assert_equal(ours, reference)
    inputs = [x, *mha.parameters()]
    assert_gradients_equal(gradients(ours, *inputs), gradients(reference, *inputs))


@shapes
def test_multihead_attention_with_a_causal_mask(shape):
    B, T, D, H = shape
    mha = make_attention(D, H, torch.float64)
    x = make_input(B, T, D)
    mask = torch.ones(T, T).tril().bool()
    reference, _ = mha(x, x, x, attn_mask=~mask)
    assert_equal(lesson.multihead_attention(x, mha, mask), reference)


@pytest.mark.parametrize("t", range(6))
def test_causal_mask_does_not_leak(t):
    mha = make_attention(16, 4, torch.float32)
    mask = torch.ones(6, 6).tril().bool()
    x = make_input(2, 6, 16, dtype=torch.float32)
    changed = x.clone()
    changed[:, t] += 1.0
    before = lesson.multihead_attention(x, mha, mask)
    after = lesson.multihead_attention(changed, mha, mask)
    assert torch.equal(before[:, :t], after[:, :t])
    assert not torch.allclose(before[:, t:], after[:, t:])


@shapes
def test_heads_alone_add_up(shape):
    B, T, D, H = shape
    mha = make_attention(D, H, torch.float64)
    x = make_input(B, T, D)
    heads = [lesson.one_head(x, mha, h) for h in range(H)]
    joined = torch.cat([output for output, _ in heads], dim=-1)
    reference, weights = mha(x, x, x, average_attn_weights=False)
    assert_equal(mha.out_proj(joined), reference)
    assert_equal(torch.stack([w for _, w in heads], dim=1), weights)


def test_sizes_come_from_the_module():
    """A module with other heads than the lesson's H must not be misread."""
    for H in (1, 2, 8):
        mha = make_attention(16, H, torch.float64)
        x = make_input(2, 5, 16)
        assert_equal(lesson.multihead_attention(x, mha), mha(x, x, x)[0])


def test_the_wrong_width_is_refused():
    mha = make_attention(16, 4, torch.float64)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        lesson.multihead_attention(make_input(2, 5, 8), mha)


@pytest.mark.parametrize("seed", range(3))
def test_attention_is_permutation_equivariant(seed):
    mha = make_attention(16, 4, torch.float64, seed)
    x = make_input(2, 9, 16, seed=seed)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(seed))
    assert_equal(
        lesson.multihead_attention(x[:, order], mha),
        lesson.multihead_attention(x, mha)[:, order],
    )


def test_only_the_key_bias_has_no_effect():
    """It adds the same to all scores of a query, which softmax removes."""
    mha = make_attention(16, 4, torch.float64)
    x = make_input(2, 5, 16)
    before = lesson.multihead_attention(x, mha)
    for part, effect in (("q", True), ("k", False), ("v", True)):
        changed = copy.deepcopy(mha)
        with torch.no_grad():
            changed.in_proj_bias.chunk(3)["qkv".index(part)].zero_()
        moved = (lesson.multihead_attention(x, changed) - before).abs().max()
        assert (moved > 1e-3) == effect, part
        assert effect or moved < 1e-12


# ---- positional encoding ---------------------------------------------------------


def pe_reference(pos, column, D):
    """The formula of Vaswani et al., 2017, section 3.5, in scalars."""
    angle = pos / math.pow(10000.0, (column - column % 2) / D)
    return (math.sin, math.cos)[column % 2](angle)


@pytest.mark.parametrize("T", [1, 2, 50, 1000])
@pytest.mark.parametrize("D", [1, 2, 3, 7, 32, 33])
def test_positional_encoding(T, D):
    pe = lesson.positional_encoding(T, D, torch.float64)
    positions = sorted({0, 1, T // 2, T - 1} & set(range(T)))
    reference = torch.tensor(
        [[pe_reference(p, c, D) for c in range(D)] for p in positions],
        dtype=torch.float64,
    )
    assert pe.shape == (T, D)
    torch.testing.assert_close(pe[positions], reference, rtol=0, atol=1e-12)
    single = lesson.positional_encoding(T, D)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), pe, rtol=0, atol=1e-7)


@pytest.mark.parametrize("D", [2, 6, 32])
@pytest.mark.parametrize("k", [1, 7, 40])
def test_positional_encoding_shifts_by_a_rotation(D, k):
    pe = lesson.positional_encoding(50, D, torch.float64)
    R = lesson.shift_matrix(k, D)
    assert_equal(pe[k:], pe[:-k] @ R.T)
    assert_equal(R @ R.T, torch.eye(D, dtype=torch.float64))
    assert_equal(pe.square().sum(dim=1), torch.full((50,), D / 2).double())
    assert (pe @ pe.T)[0, k].item() == pytest.approx(
        lesson.offset_product(k, D), abs=1e-12
    )


# ---- the block ---------------------------------------------------------------------


@dtypes
@pytest.mark.parametrize("D, FF", [(1, 1), (5, 3), (16, 64)])
def test_feed_forward(D, FF, dtype):
    linear1 = lesson.randomize_(nn.Linear(D, FF, dtype=dtype), seed=1)
    linear2 = lesson.randomize_(nn.Linear(FF, D, dtype=dtype), seed=2)
    x = make_input(2, 3, D, dtype=dtype)
    reference = nn.Sequential(linear1, nn.ReLU(), linear2)(x)
    assert_equal(lesson.feed_forward(x, linear1, linear2), reference)


# layer norm of a single number is constant: nothing to compare at D = 1
@pytest.mark.parametrize("shape", [s for s in SHAPES if s[2] > 1], ids=str)
@dtypes
def test_encoder_block(shape, dtype):
    B, T, D, H = shape
    FF = 2 * D + 1
    layer = make_layer(D, H, FF, dtype)
    block = make_block(layer, D, H, FF)
    x = make_input(B, T, D, dtype=dtype).requires_grad_()
    assert block(x).shape == (B, T, D)
    assert_equal(block(x), layer(x))
    with torch.no_grad():
        assert_equal(block.eval()(x), layer.eval()(x))
    layer.train()
    names = [name for name, _ in block.named_parameters()]
    assert_gradients_equal(
        gradients(block.train()(x), x, *block.parameters()),
        gradients(layer(x), x, *map(layer.get_parameter, names)),
    )


def test_block_computes_by_hand(monkeypatch):
    """PyTorch's forward functions must not be on both sides."""
    block = lesson.EncoderBlock(16, 4, 32)

    def refuse(*_, **__):
        raise AssertionError("the block calls PyTorch's own forward")

    for module in (nn.MultiheadAttention, nn.LayerNorm, nn.Linear):
        monkeypatch.setattr(module, "forward", refuse)
    block(torch.randn(2, 3, 16))


def test_rows_of_a_batch_are_independent():
    block = lesson.randomize_(lesson.EncoderBlock(16, 4, 32), seed=1)
    x = make_input(3, 5, 16, dtype=torch.float32)
    changed = x.clone()
    changed[1:] = 9.0
    assert torch.equal(block(x)[0], block(changed)[0])


@pytest.mark.parametrize("L", [1, 2, 4])
def test_a_stack_is_an_encoder(L):
    layer = make_layer(12, 3, 20, torch.float64)
    encoder = nn.TransformerEncoder(layer, L, enable_nested_tensor=False)
    lesson.randomize_(encoder, seed=5)
    x = make_input(2, 6, 12)
    ours = x
    for theirs in encoder.layers:
        ours = make_block(theirs, 12, 3, 20)(ours)
    assert_equal(ours, encoder(x))


@pytest.mark.parametrize("D, H", [(8, 2), (64, 4), (512, 8)])
def test_parameter_counts(D, H):
    count = lesson.count_parameters(lesson.EncoderBlock(D, H, 4 * D))
    assert count == 12 * D**2 + 13 * D
    assert lesson.count_parameters(nn.MultiheadAttention(D, H)) == 4 * D**2 + 4 * D


# ---- the experiment -------------------------------------------------------------------


@pytest.mark.parametrize("T", [2, 8, 32])
def test_order_dataset(T):
    """The label is what it says; A and B stand in it once each."""
    generator = torch.Generator().manual_seed(0)
    A, B = torch.eye(16)[:2] * 10
    x, y = lesson.make_order_dataset(500, A, B, T, generator)
    assert x.shape == (500, T, 16) and y.shape == (500,)
    assert ((x[:, :, 0] > 5).sum(dim=1) == 1).all()
    assert ((x[:, :, 1] > 5).sum(dim=1) == 1).all()
    first = x[:, :, 0].argmax(dim=1) < x[:, :, 1].argmax(dim=1)
    assert torch.equal(first.float(), y)
    assert 0.4 < y.mean() < 0.6
    assert 0.08 < x[:, :, 2:].std() < 0.12


def test_order_data_are_fresh_and_repeatable():
    (x_train, _), (x_test, _) = lesson.make_data(0)
    assert len(x_test) >= 2000
    assert not (x_train[:, None] == x_test[None]).all(dim=(-1, -2)).any()
    assert torch.equal(x_train, lesson.make_data(0)[0][0])
    assert not torch.equal(x_train, lesson.make_data(1)[0][0])


def test_data_ignore_the_global_generator():
    torch.manual_seed(1)
    x_before = lesson.make_data(0)[0][0]
    torch.manual_seed(2)
    assert torch.equal(x_before, lesson.make_data(0)[0][0])


@pytest.mark.parametrize("H", [1, 2, 8])
def test_classifier_keeps_its_heads(H):
    model = lesson.TinyAttnClassifier(True, D=16, H=H, T=5)
    assert model.mha.num_heads == H
    assert model(torch.randn(3, 5, 16)).shape == (3,)


def test_classifier_saves_no_constants():
    state = lesson.TinyAttnClassifier(True, causal=True).state_dict()
    assert not {"pe", "mask"} & set(state)


@pytest.mark.parametrize("seed", range(3))
def test_without_positions_order_is_invisible(seed):
    torch.manual_seed(seed)
    model = lesson.TinyAttnClassifier(False, T=8).double()
    lesson.randomize_(model, seed)
    x = make_input(20, 8, 16, seed=seed)
    order = torch.randperm(8, generator=torch.Generator().manual_seed(seed))
    assert_equal(model(x[:, order]), model(x))
    with_pe = lesson.TinyAttnClassifier(True, T=8).double()
    lesson.randomize_(with_pe, seed)
    assert (with_pe(x[:, order]) - with_pe(x)).abs().max() > 1e-3


def test_training_repeats_exactly():
    data = lesson.make_data(0, n_train=50, n_test=100)
    runs = [lesson.train_eval(True, 3, data, epochs=5)[1:] for _ in range(2)]
    assert runs[0] == runs[1]


def test_training_reduces_the_loss():
    (x, y), _ = lesson.make_data(0)
    torch.manual_seed(0)
    model = lesson.TinyAttnClassifier(True)
    before = F.binary_cross_entropy_with_logits(model(x), y).item()
    lesson.fit(model, x, y, epochs=100)
    after = F.binary_cross_entropy_with_logits(model(x), y).item()
    assert after < 0.5 * before


def test_the_classifier_masks_the_future():
    model = lesson.TinyAttnClassifier(False, T=5, causal=True)
    assert torch.equal(model.mask, torch.ones(5, 5).tril().bool())
    assert lesson.TinyAttnClassifier(False).mask is None


def test_accuracy_counts():
    def model(x):
        return x[:, 0]

    x = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]])
    y = torch.tensor([1.0, 0.0, 0.0, 0.0])
    assert lesson.accuracy(model, x, y) == 75.0
