"""Lesson 45's functions against PyTorch, over grids of shapes, dtypes and masks."""

import math

import pytest
import torch
import torch.nn.functional as F
from lesson_code import load_lesson
from parity import assert_equal, dtypes

lesson = load_lesson("45")

SHAPES = [  # batch, T_q, T_k, d, d_v
    ((), 1, 1, 1, 1),
    ((), 5, 5, 8, 8),
    ((), 3, 7, 5, 2),
    ((2,), 1, 6, 4, 3),
    ((3,), 6, 1, 4, 4),
    ((2, 3), 5, 7, 9, 6),
    ((1, 2), 17, 13, 3, 11),
]


def draw(generator, *shape, dtype):
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def qkv(batch, T_q, T_k, d, d_v, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((T_q, d), (T_k, d), (T_k, d_v))
    return [
        draw(generator, *batch, *shape, dtype=dtype).requires_grad_()
        for shape in shapes
    ]


def random_mask(T_q, T_k, seed=0):
    """A Boolean mask in which every query may see at least one key."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(T_q, T_k, generator=generator) < 0.5
    mask[torch.arange(T_q), torch.randint(T_k, (T_q,), generator=generator)] = True
    return mask


def causal(T_q, T_k):
    return torch.ones(T_q, T_k).tril().bool()


MASKS = {"none": lambda T_q, T_k: None, "random": random_mask, "causal": causal}


@dtypes
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mask_name", MASKS)
def test_attention_is_sdpa_in_value_and_gradient(shape, dtype, mask_name):
    q, k, v = qkv(*shape, dtype)
    mask = MASKS[mask_name](shape[1], shape[2])
    output, weights = lesson.attention(q, k, v, mask)
    reference = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert_equal(output, reference)

    unit = torch.eye(shape[2], dtype=dtype).expand(*shape[0], shape[2], shape[2])
    assert_equal(weights, F.scaled_dot_product_attention(q, k, unit, attn_mask=mask))
    assert weights.shape == (*shape[0], shape[1], shape[2])
    assert_equal(weights.sum(dim=-1), torch.ones(*shape[0], shape[1], dtype=dtype))
    if mask is not None:
        assert (weights.masked_select(~mask) == 0).all()

    upstream = draw(torch.Generator().manual_seed(1), *output.shape, dtype=dtype)
    ours = torch.autograd.grad(output, (q, k, v), upstream)
    theirs = torch.autograd.grad(reference, (q, k, v), upstream)
    for one, other in zip(ours, theirs, strict=True):
        assert_equal(one, other)


def test_attention_gradcheck():
    q, k, v = qkv((2,), 3, 4, 5, 2, torch.float64)
    mask = random_mask(3, 4)
    assert torch.autograd.gradcheck(lambda *t: lesson.attention(*t, mask)[0], (q, k, v))


@dtypes
def test_attention_mask_broadcasts_over_batch_and_queries(dtype):
    q, k, v = qkv((2, 3), 4, 5, 6, 6, dtype)
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]).bool()[:, None, None]
    assert_equal(
        lesson.attention(q, k, v, mask)[0],
        F.scaled_dot_product_attention(q, k, v, attn_mask=mask),
    )


def test_attention_fully_masked_row_is_nan_and_the_others_are_not():
    q, k, v = qkv((2,), 4, 5, 6, 6, torch.float32)
    mask = random_mask(4, 5)
    mask[2] = False
    output, _ = lesson.attention(q, k, v, mask)
    assert output[:, 2].isnan().all()
    others = [0, 1, 3]
    reference = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert_equal(output[:, others], reference[:, others])


def test_attention_is_the_one_of_lesson_46():
    """The lesson says so: the same parameters, in the same order."""
    names = lesson.attention.__code__.co_varnames[
        : lesson.attention.__code__.co_argcount
    ]
    assert names == ("q", "k", "v", "mask") and lesson.attention.__defaults__ == (None,)


@pytest.mark.parametrize("temperature", [0.01, 0.5, 1.0, 30.0])
@pytest.mark.parametrize(("n", "d", "d_v"), [(1, 1, 1), (4, 2, 1), (7, 5, 3)])
def test_soft_lookup_is_one_row_of_attention(n, d, d_v, temperature):
    q, k, v = (t.detach() for t in qkv((), 1, n, d, d_v, torch.float64))
    answer, weights = lesson.soft_lookup(q[0], k, v, temperature)
    scaled = q * math.sqrt(d) / temperature
    assert_equal(answer, F.scaled_dot_product_attention(scaled, k, v)[0])
    assert_equal(weights.sum(), torch.ones((), dtype=torch.float64))


def test_soft_lookup_limits():
    _, k, v = (t.detach() for t in qkv((), 1, 5, 3, 2, torch.float64))
    q = torch.ones(3, dtype=torch.float64)
    hard, _ = lesson.soft_lookup(q, k, v, 1e-6)
    assert_equal(hard, v[(k @ q).argmax()])
    flat, _ = lesson.soft_lookup(q, k, v, 1e15)
    assert_equal(flat, v.mean(dim=0))


def test_direction():
    expected = torch.tensor([[1, 0], [0, 1], [-1, 0], [0, -1]]).double()
    assert_equal(lesson.direction([0, 90, 180, 270]), expected)


@dtypes
@pytest.mark.parametrize(("B", "T", "D"), [(1, 1, 4), (2, 5, 3), (3, 8, 16)])
@pytest.mark.parametrize("masked", [False, True])
def test_self_attention_is_the_module(B, T, D, dtype, masked):
    generator = torch.Generator().manual_seed(0)
    matrices = [0.5 * draw(generator, D, D, dtype=dtype) for _ in range(3)]
    x = draw(generator, B, T, D, dtype=dtype)
    mask = lesson.causal_mask(T) if masked else None
    mha = lesson.torch_module(*matrices).to(dtype)
    with torch.no_grad():  # the module was built in float32
        mha.in_proj_weight.copy_(torch.cat(matrices))
    reference, reference_weights = mha(
        x, x, x, attn_mask=None if mask is None else ~mask
    )
    output, weights = lesson.self_attention(x, *matrices, mask)
    assert_equal(output, reference)
    assert_equal(weights, reference_weights)


@dtypes
def test_cross_attention_with_narrow_projections(dtype):
    generator = torch.Generator().manual_seed(0)
    x_q = draw(generator, 2, 3, 6, dtype=dtype)
    x_k = draw(generator, 2, 7, 6, dtype=dtype)
    W_q, W_k = (draw(generator, 4, 6, dtype=dtype) for _ in range(2))
    W_v = draw(generator, 5, 6, dtype=dtype)
    mask = random_mask(3, 7)
    reference = F.scaled_dot_product_attention(
        F.linear(x_q, W_q), F.linear(x_k, W_k), F.linear(x_k, W_v), attn_mask=mask
    )
    assert_equal(lesson.cross_attention(x_q, x_k, W_q, W_k, W_v, mask)[0], reference)


@pytest.mark.parametrize("n", [1, 2, 16])
def test_entropy_and_trace(n):
    generator = torch.Generator().manual_seed(n)
    scores = draw(generator, 3, n, dtype=torch.float64)
    weights = scores.softmax(dim=-1)
    assert_equal(
        lesson.entropy(weights), torch.distributions.Categorical(weights).entropy()
    )
    for row, trace in zip(scores, lesson.jacobian_trace(weights), strict=True):
        jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(dim=0), row)
        assert_equal(trace, jacobian.trace())
    one_hot = torch.eye(n, dtype=torch.float64)
    assert (lesson.entropy(one_hot) == 0).all()
    assert (lesson.jacobian_trace(one_hot) == 0).all()


def test_score_statistics():
    for d in (4, 256):
        var, top, ent, trace = lesson.score_statistics(d, True, n_queries=500)
        assert 0.8 < var < 1.2 and 0.2 < top < 0.3
        assert 2.2 < ent < math.log(16) and 0.8 < trace < 15 / 16
        assert 0.8 * d < lesson.score_statistics(d, False, n_queries=500)[0] < 1.2 * d


@pytest.mark.parametrize("T", [1, 2, 7])
def test_causal_mask(T):
    expected = [[column <= row for column in range(T)] for row in range(T)]
    assert lesson.causal_mask(T).tolist() == expected


def test_padding_mask():
    mask = lesson.padding_mask(torch.tensor([1, 3, 0]), 3)
    expected = [[[True, False, False]], [[True, True, True]], [[False, False, False]]]
    assert mask.tolist() == expected


def self_attention_of(D, dtype, mask=None):
    generator = torch.Generator().manual_seed(7)
    matrices = [0.5 * draw(generator, D, D, dtype=dtype) for _ in range(3)]
    return lesson.attend(matrices, mask)


@dtypes
@pytest.mark.parametrize("T", [1, 2, 8, 13])
def test_leak(T, dtype):
    x = draw(torch.Generator().manual_seed(T), 2, T, 6, dtype=dtype)
    for token in range(T):
        moves = lesson.movement(
            self_attention_of(6, dtype, lesson.causal_mask(T)), x, token
        )
        assert (moves[:token] == 0).all() and (moves[token:] > 0).all()
        assert (lesson.movement(self_attention_of(6, dtype), x, token) > 0).all()


@pytest.mark.parametrize("masked", [False, True])
def test_rows_are_independent(masked):
    function = self_attention_of(
        6, torch.float32, lesson.causal_mask(5) if masked else None
    )
    x = draw(torch.Generator().manual_seed(0), 3, 5, 6, dtype=torch.float32)
    changed = x.clone()
    changed[1] = 5 * x[1] + 1
    moves = (function(changed) - function(x)).abs().amax(dim=(1, 2))
    assert moves[0] == 0 and moves[2] == 0 and moves[1] > 0


def test_padded_sequences_equal_themselves_alone():
    x = draw(torch.Generator().manual_seed(0), 3, 7, 6, dtype=torch.float64)
    lengths = torch.tensor([1, 4, 7])
    output = self_attention_of(6, torch.float64, lesson.padding_mask(lengths, 7))(x)
    alone = self_attention_of(6, torch.float64)
    for row, length in enumerate(lengths.tolist()):
        assert_equal(output[row, :length], alone(x[row, :length]))


def test_equivariance_and_its_loss():
    x = draw(torch.Generator().manual_seed(0), 2, 9, 6, dtype=torch.float64)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(1))
    free = self_attention_of(6, torch.float64)
    assert_equal(free(x[:, order]), free(x)[:, order])
    masked = self_attention_of(6, torch.float64, lesson.causal_mask(9))
    assert (masked(x[:, order]) - masked(x)[:, order]).abs().max() > 0.1


def test_compare_rejects(capsys):
    one = torch.ones(3)
    lesson.compare("same", one, one)
    assert capsys.readouterr().out == "same: 0.00e+00\n"
    for wrong in (one + 1e-3, one * float("nan")):
        with pytest.raises(AssertionError):
            lesson.compare("wrong", wrong, one)
    with pytest.raises(AssertionError):
        lesson.compare("wrong", one.double() + 1e-9, one.double())


def test_state_in_words():
    v = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    cases = {"NaN": [math.nan] * 2, "0": [0.0] * 2, "something else": [1.0, 2.0]}
    cases["the mean of all values"] = [2.0, 4.0]
    for words, row in cases.items():
        assert lesson.state(torch.tensor(row), v) == words


def test_value_gradient_sees_only_the_rows_kept():
    x = draw(torch.Generator().manual_seed(0), 1, 4, 3, dtype=torch.float64)
    mask = lesson.causal_mask(4)
    grad = lesson.value_gradient(
        lambda q, k, v: lesson.attention(q, k, v, mask)[0], x, [0, 1]
    )
    assert (grad[:, :2] > 0).all() and (grad[:, 2:] == 0).all()


@pytest.mark.parametrize("n_items", [8, 16])
def test_recall_dataset(n_items):
    x, y, asked = lesson.make_recall_dataset(
        50, n_items, torch.Generator().manual_seed(0)
    )
    names, items = x[:, :-1, :16], x[:, :-1, 16:]
    assert x.shape == (50, 9, 16 + n_items) and (items.sum(dim=-1) == 1).all()
    assert items.sum(dim=1).max() == 1  # all different
    assert (x[:, -1, 16:] == 0).all()  # the question holds no item
    rows = torch.arange(50)
    assert (items[rows, asked].argmax(dim=-1) == y).all()
    assert (x[:, -1, :16] - names[rows, asked]).abs().max() < 0.6
    again = lesson.make_recall_dataset(50, n_items, torch.Generator().manual_seed(0))
    assert torch.equal(again[0], x)


def test_repair_moves_items_only():
    x, y, asked = lesson.make_recall_dataset(20, 16, torch.Generator().manual_seed(0))
    x_new, y_new = lesson.repair(x, asked, 1)
    assert torch.equal(x_new[..., :16], x[..., :16])
    assert torch.equal(x_new[:, 1:8, 16:], x[:, :7, 16:])
    assert (y_new != y).all()
    x_same, y_same = lesson.repair(x, asked, 8)
    assert torch.equal(x_same, x) and torch.equal(y_same, y)


@pytest.mark.parametrize("seed", range(3))
def test_mean_of_pairs_is_right_at_most_once_whatever_its_weights(seed):
    x, _, asked = lesson.make_recall_dataset(
        200, 16, torch.Generator().manual_seed(seed)
    )
    torch.manual_seed(seed)
    model = lesson.RecallMean(32, 16)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    logits, right = lesson.repair_test(model, x, asked)
    assert_equal(logits, logits[:1].expand_as(logits))
    assert right.sum(dim=0).max() <= 1


def test_recall_attention_computes_with_sdpa():
    x, _, _ = lesson.make_recall_dataset(5, 16, torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    model = lesson.RecallAttention(32, 16)
    pairs, question = x[:, :-1], x[:, -1:]
    output = F.scaled_dot_product_attention(
        model.W_q(question), model.W_k(pairs), model.W_v(pairs)
    )
    assert_equal(model(x), model.read(output.squeeze(1)))


def test_outer_product_recall_is_attention_without_the_softmax():
    x, _, _ = lesson.make_recall_dataset(5, 16, torch.Generator().manual_seed(0))
    logits = torch.zeros(5, 16)
    for row in range(5):
        for pair in range(8):
            score = x[row, -1, :16] @ x[row, pair, :16]
            logits[row] += score * x[row, pair, 16:] / 8
    assert_equal(lesson.outer_product_recall(x), logits)


def test_erase():
    x, _, asked = lesson.make_recall_dataset(6, 8, torch.Generator().manual_seed(0))
    for columns in (slice(0, 16), slice(16, None)):
        erased = lesson.erase(x, asked, columns)
        assert (erased[torch.arange(6), asked, columns] == 0).all()
        rest = erased.clone()
        rest[torch.arange(6), asked, columns] = x[torch.arange(6), asked, columns]
        assert torch.equal(rest, x)


@pytest.mark.parametrize(("T_k", "d_v"), [(6, 2), (12, 4), (30, 8)])
def test_other_weights(T_k, d_v):
    q, k, v = (t.detach() for t in qkv((), 1, T_k, d_v, d_v, torch.float64))
    output, weights = lesson.attention(q, k, v)
    key = weights[0].argmax()
    other = lesson.other_weights(weights[0], v, key)
    assert_equal(other @ v, output[0])
    assert_equal(other.sum(), torch.ones((), dtype=torch.float64))
    assert other.min() > -1e-12 and other[key] < weights[0, key] - 1e-4


def test_share_on_self_is_one_in_T():
    for T in (4, 10):
        assert abs(lesson.share_on_self(T, n=500) - 100 / T) < 3


def test_fit_and_accuracy():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 3, generator=generator)
    y = x.argmax(dim=-1)
    torch.manual_seed(0)
    model = lesson.fit(torch.nn.Linear(3, 3), x, y)
    assert lesson.accuracy(model, x, y) > 95
    assert lesson.accuracy(lambda x: x, x, y) == 100
    assert lesson.count_parameters(model) == 12
