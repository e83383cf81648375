"""Properties of the functions that several lessons repeat, in each of them."""

import contextlib
import io
import math

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from hypothesis import strategies as st

from parity import LIMIT, assert_gradients_equal, gradients, make_input
from strategies import (
    assert_close,
    assert_gradients_hold,
    attention_module,
    cross_masks,
    dtypes,
    heads,
    holds_for,
    leads,
    masks,
    masks_with_empty_rows,
    permutation,
    randomised,
    scales,
    seeds,
    sizes,
)


def make_qkv(T_q, T_k, d, d_v, seed, lead=(), dtype=torch.float64, scale=1.0):
    shapes = [(*lead, T_q, d), (*lead, T_k, d), (*lead, T_k, d_v)]
    return [
        (scale * make_input(*shape, dtype=dtype, seed=seed + i)).requires_grad_()
        for i, shape in enumerate(shapes)
    ]


# ---- attention ---------------------------------------------------------------


@holds_for(
    "attention",
    faults=[
        ("45", "attention", "/ math.sqrt(d)", "/ d"),
        ("46", "attention", "softmax(dim=-1)", "softmax(dim=-2)"),
        ("47", "attention", "q.shape[-1]", "q.shape[-2]"),
    ],
    shape=st.tuples(sizes, sizes, sizes, sizes),
    lead=leads,
    scale=scales,
    dtype=dtypes,
    seed=seeds,
)
def test_attention_is_pytorchs(lesson, shape, lead, scale, dtype, seed):
    """Output, weights and gradients; the weights are seen with v = identity."""
    q, k, v = make_qkv(*shape, seed, lead, dtype, scale)
    output, weights = lesson.attention(q, k, v)
    reference = F.scaled_dot_product_attention(q, k, v)
    assert_close(output, reference)
    unit = torch.eye(shape[1], dtype=dtype).expand(*lead, -1, -1)
    assert_close(weights, F.scaled_dot_product_attention(q, k, unit))
    assert_close(weights.sum(dim=-1), torch.ones(*lead, shape[0], dtype=dtype))
    assert_gradients_equal(gradients(output, q, k, v), gradients(reference, q, k, v))


@holds_for(
    "attention",
    takes=["mask"],
    faults=[
        ("45", "attention", "~mask", "mask"),
        ("46", "attention", 'float("-inf")', "0.0"),
    ],
    mask=cross_masks,
    lead=leads,
    d=sizes,
    d_v=sizes,
    dtype=dtypes,
    seed=seeds,
)
def test_masked_attention_is_pytorchs(lesson, mask, lead, d, d_v, dtype, seed):
    q, k, v = make_qkv(*mask.shape, d, d_v, seed, lead, dtype)
    output, weights = lesson.attention(q, k, v, mask)
    reference = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert_close(output, reference)
    assert (weights.masked_select(~mask) == 0).all()
    assert_gradients_equal(gradients(output, q, k, v), gradients(reference, q, k, v))


@holds_for(
    "attention",
    takes=["mask"],
    faults=[
        ("45", "attention", 'float("-inf")', "-1e9"),
        ("46", "attention", "return weights @ v", "return weights.nan_to_num() @ v"),
    ],
    mask=masks_with_empty_rows,
    d=sizes,
    seed=seeds,
)
def test_only_a_fully_masked_row_is_nan(lesson, mask, d, seed):
    q, k, v = make_qkv(*mask.shape, d, 2, seed)
    output, weights = lesson.attention(q, k, v, mask)
    empty = ~mask.any(dim=-1)
    for tensor in (output, weights):
        assert tensor[empty].isnan().all() and tensor[~empty].isfinite().all()
    if not empty.all():
        reference = F.scaled_dot_product_attention(q[~empty], k, v, mask[~empty])
        assert_close(output[~empty], reference)


@holds_for(
    "attention",
    takes=["mask"],
    faults=[
        ("45", "attention", "weights @ v, weights", "(weights + 1e-6) @ v, weights"),
        ("46", "attention", 'float("-inf")', "-9.0"),
    ],
    mask=cross_masks,
    d=sizes,
    token=seeds,
    seed=seeds,
)
def test_no_query_sees_a_key_that_its_mask_hides(lesson, mask, d, token, seed):
    """Whatever the mask: exactly 0 for those that may not, more for the others."""
    token %= mask.shape[1]
    q, k, v = make_qkv(*mask.shape, d, 3, seed, scale=0.5)
    other_k, other_v = k.detach().clone(), v.detach().clone()
    other_k[token] -= 1.0
    other_v[token] += 100.0
    before, _ = lesson.attention(q, k, v, mask)
    after, _ = lesson.attention(q, other_k, other_v, mask)
    moved = (after - before).abs().amax(dim=-1)
    assert torch.equal(moved > 0, mask[:, token])


@holds_for(
    "attention",
    faults=[
        ("45", "attention", "scores.softmax", "scores.tril().softmax"),
        ("47", "attention", "return weights @ v", "return weights.cumsum(-1) @ v"),
    ],
    shape=st.tuples(sizes, sizes, sizes, sizes),
    seed=seeds,
)
def test_attention_is_a_weighted_mean_in_any_order(lesson, shape, seed):
    """The order of keys is nothing, that of queries is kept; no value is passed."""
    q, k, v = make_qkv(*shape, seed)
    output, weights = lesson.attention(q, k, v)
    queries, keys = permutation(shape[0], seed), permutation(shape[1], seed + 1)
    permuted, permuted_weights = lesson.attention(q[queries], k[keys], v[keys])
    assert_close(permuted, output[queries])
    assert_close(permuted_weights, weights[queries][:, keys])
    limit = LIMIT[v.dtype]
    assert (output <= v.amax(dim=0) + limit).all()
    assert (output >= v.amin(dim=0) - limit).all()


@holds_for(
    "attention",
    faults=[
        ("45", "attention", "scores.softmax", "(scores - scores.mean(0)).softmax"),
        ("46", "attention", "weights @ v,", "weights @ (v + 1e-9 * v.mean(0)),"),
    ],
    batch=st.integers(2, 4),
    shape=st.tuples(sizes, sizes, sizes, sizes),
    dtype=dtypes,
    seed=seeds,
)
def test_attention_keeps_rows_of_a_batch_apart(lesson, batch, shape, dtype, seed):
    q, k, v = make_qkv(*shape, seed, (batch,), dtype)
    others = [torch.cat([t[:1], 3 * t[1:] + 1]) for t in (q, k, v)]
    row, other = lesson.attention(q, k, v)[0][0], lesson.attention(*others)[0][0]
    assert torch.equal(row, other)
    assert_close(row, lesson.attention(q[0], k[0], v[0])[0])


@holds_for(
    "attention",
    examples=4,
    faults=[
        ("45", "attention", "scores.softmax", "scores.detach().softmax"),
        ("46", "attention", "return weights @ v", "return weights.detach() @ v"),
        ("47", "attention", "weights @ v,", "weights @ v.detach(),"),
    ],
    shape=st.tuples(sizes, sizes, sizes, sizes),
    seed=seeds,
)
def test_gradients_of_attention(lesson, shape, seed):
    assert_gradients_hold(lambda *t: lesson.attention(*t)[0], *make_qkv(*shape, seed))


@holds_for(
    "attention",
    takes=["mask"],
    examples=4,
    faults=[("46", "attention", "scores.masked_fill", "scores.detach().masked_fill")],
    mask=cross_masks,
    seed=seeds,
)
def test_gradients_of_masked_attention(lesson, mask, seed):
    q, k, v = make_qkv(*mask.shape, 3, 2, seed)
    assert_gradients_hold(lambda *t: lesson.attention(*t, mask)[0], q, k, v)


@holds_for(
    "causal_mask",
    faults=[
        ("45", "causal_mask", "tril()", "triu()"),
        ("46", "causal_mask", "tril()", "tril(-1)"),
    ],
    T=st.integers(1, 40),
)
def test_causal_mask(lesson, T):
    """Query t sees t + 1 keys; masks of shorter sequences are its corners."""
    mask = lesson.causal_mask(T)
    assert mask.dtype == torch.bool and mask.shape == (T, T)
    assert mask.sum() == T * (T + 1) // 2
    assert torch.equal(mask.sum(dim=1), torch.arange(T) + 1)
    assert mask.diagonal().all() and not mask.triu(1).any()
    assert torch.equal(lesson.causal_mask(T + 1)[:T, :T], mask)


# ---- multi-head attention ----------------------------------------------------


@holds_for(
    "multihead_attention",
    faults=[
        ("46", "multihead_attention", "heads.transpose(1, 2)", "heads"),
        ("46", "multihead_attention", "+ mha.out_proj.bias", ""),
        (
            "47",
            "multihead_attention",
            "heads.transpose(1, 2).flatten(2)",
            "heads.reshape(x.shape)",
        ),
    ],
    size=heads,
    B=sizes,
    T=sizes,
    dtype=dtypes,
    seed=seeds,
)
def test_multihead_attention_is_pytorchs(lesson, size, B, T, dtype, seed):
    mha = attention_module(*size, seed, dtype)
    x = make_input(B, T, mha.embed_dim, dtype=dtype, seed=seed).requires_grad_()
    ours, (reference, _) = lesson.multihead_attention(x, mha), mha(x, x, x)
    assert_close(ours, reference)
    inputs = [x, *mha.parameters()]
    assert_gradients_equal(gradients(ours, *inputs), gradients(reference, *inputs))


@holds_for(
    "multihead_attention",
    takes=["mask"],
    faults=[
        ("46", "multihead_attention", "(q, k, v, mask)", "(q, k, v)"),
        ("46", "attention", "~mask", "mask"),
    ],
    size=heads,
    mask=masks(),
    dtype=dtypes,
    seed=seeds,
)
def test_masked_multihead_attention_is_pytorchs(lesson, size, mask, dtype, seed):
    """Its own True means: ignore."""
    mha = attention_module(*size, seed, dtype)
    x = make_input(2, len(mask), mha.embed_dim, dtype=dtype, seed=seed)
    reference, _ = mha(x, x, x, attn_mask=~mask)
    assert_close(lesson.multihead_attention(x, mha, mask), reference)


@holds_for(
    "multihead_attention",
    faults=[
        ("46", "multihead_attention", "return merged", "return merged.cumsum(1)"),
        ("47", "split_heads", "x @ mha", "(x + x[:, :1]) @ mha"),
    ],
    size=heads,
    T=sizes,
    seed=seeds,
)
def test_multihead_attention_is_permutation_equivariant(lesson, size, T, seed):
    mha, order = attention_module(*size, seed), permutation(T, seed)
    x = make_input(2, T, mha.embed_dim, seed=seed)
    permuted = lesson.multihead_attention(x[:, order], mha)
    assert_close(permuted, lesson.multihead_attention(x, mha)[:, order])


@holds_for(
    "multihead_attention",
    "layer_norm",
    takes=["mask"],
    faults=[
        ("46", "attention", 'float("-inf")', "-9.0"),
        ("46", "multihead_attention", "k = x @", "k = x.cumsum(1) @"),
        ("46", "layer_norm", "x.mean(dim=-1", "x.mean(dim=-2"),
    ],
    size=heads,
    mask=masks(),
    L=st.integers(1, 3),
    token=seeds,
    dtype=dtypes,
    seed=seeds,
)
def test_no_mask_leaks_through_layers(lesson, size, mask, L, token, dtype, seed):
    """In L layers a token reaches what paths of the mask of L steps reach."""
    T, token = len(mask), token % len(mask)
    layers = [attention_module(*size, seed + i, dtype) for i in range(L)]
    norm = randomised(nn.LayerNorm(size[0] * size[1]), seed, dtype)

    def stack(x):
        for mha in layers:
            x = x + lesson.multihead_attention(lesson.layer_norm(x, norm), mha, mask)
        return x

    step = (mask | torch.eye(T).bool()).double()  # a query sees itself, too
    reached = torch.linalg.matrix_power(step, L)[:, token] > 0
    x = make_input(2, T, norm.normalized_shape[0], dtype=dtype, seed=seed)
    changed = x.clone()
    changed[:, token] = 5 * x[:, token] + 1
    moved = (stack(changed) - stack(x)).abs().amax(dim=(0, 2)) > 0
    assert not moved[~reached].any()
    assert moved[token]


@holds_for(
    "multihead_attention",
    faults=[
        ("46", "multihead_attention", "v = x @", "v = (x + x.mean(0)) @"),
        ("47", "split_heads", "qkv.view(B", "qkv.roll(1, 0).view(B"),
    ],
    size=heads,
    B=st.integers(2, 4),
    T=sizes,
    dtype=dtypes,
    seed=seeds,
)
def test_multihead_attention_keeps_rows_apart(lesson, size, B, T, dtype, seed):
    mha = attention_module(*size, seed, dtype)
    x = make_input(B, T, mha.embed_dim, dtype=dtype, seed=seed)
    row = lesson.multihead_attention(x, mha)[0]
    other = torch.cat([x[:1], 3 * x[1:] + 1])
    assert torch.equal(lesson.multihead_attention(other, mha)[0], row)
    assert_close(lesson.multihead_attention(x[:1], mha)[0], row)


@holds_for(
    "multihead_attention",
    examples=3,
    faults=[
        ("46", "multihead_attention", "k.view", "k.detach().view"),
        ("47", "split_heads", "qkv.view", "qkv.detach().view"),
    ],
    size=heads,
    T=st.integers(2, 4),
    seed=seeds,
)
def test_gradients_of_multihead_attention(lesson, size, T, seed):
    mha = attention_module(*size, seed)
    x = make_input(1, T, mha.embed_dim, seed=seed)
    assert_gradients_hold(
        lambda *_: lesson.multihead_attention(x, mha), x, *mha.parameters()
    )


# ---- the parts of a block ------------------------------------------------------


def condition(x, eps):
    """By how much a norm over the last axis enlarges the rounding of x."""
    var = x.detach().var(dim=-1, correction=0)
    return (x.detach().abs().amax(dim=-1) / (var + eps).sqrt()).max().item()


@holds_for(
    "layer_norm",
    faults=[
        ("37", "layer_norm", "correction=0", "correction=1"),
        (
            "46",
            "layer_norm",
            "torch.sqrt(var + norm.eps)",
            "(torch.sqrt(var) + norm.eps)",
        ),
        ("47", "layer_norm", "+ norm.bias", ""),
    ],
    lead=leads,
    D=st.integers(2, 9),
    eps=st.sampled_from([1e-5, 1e-2]),
    scale=scales,
    dtype=dtypes,
    seed=seeds,
)
def test_layer_norm_is_pytorchs(lesson, lead, D, eps, scale, dtype, seed):
    norm = randomised(nn.LayerNorm(D, eps=eps), seed, dtype)
    x = (scale * make_input(*lead, D, dtype=dtype, seed=seed)).requires_grad_()
    ours, reference = lesson.layer_norm(x, norm), norm(x)
    assert_close(ours, reference)
    size = condition(x, eps)
    inputs = [x, *norm.parameters()]
    pairs = zip(gradients(ours, *inputs), gradients(reference, *inputs), strict=True)
    for a, b in pairs:
        # an input's gradient is divided by the deviation once more
        assert_close(a, b, size * size)


@holds_for(
    "layer_norm",
    faults=[
        ("37", "layer_norm", "(x - mean) /", "x /"),
        ("46", "layer_norm", "torch.sqrt(var", "(var"),
        ("47", "layer_norm", "centred / torch", "centred.relu() / torch"),
    ],
    D=st.integers(2, 9),
    shift=st.floats(-10, 10),
    factor=st.floats(0.1, 10),
    seed=seeds,
)
def test_layer_norm_ignores_shift_and_scale(lesson, D, shift, factor, seed):
    """Of each token alone; the scale up to eps, which is a number of its own."""
    norm = randomised(nn.LayerNorm(D), seed)
    x = make_input(3, D, seed=seed)
    before, size = lesson.layer_norm(x, norm), condition(x.abs() + 10, norm.eps)
    size = max(size, 10 * condition(x, norm.eps) / x.abs().max().item())
    shifts = torch.tensor([[shift], [0.0], [1.0]], dtype=torch.float64)
    assert_close(lesson.layer_norm(x + shifts, norm), before, size)
    norm.eps *= factor**2
    assert_close(lesson.layer_norm(factor * x, norm), before, size)
    with torch.no_grad():
        norm.weight.fill_(1.0)
        norm.bias.zero_()
    plain = lesson.layer_norm(factor * x, norm)
    assert_close(plain.mean(dim=-1), torch.zeros(3).double(), size)
    var = (factor * x).var(dim=-1, correction=0)
    assert_close(plain.var(dim=-1, correction=0), var / (var + norm.eps), size)


@holds_for(
    "layer_norm",
    faults=[
        ("37", "layer_norm", "x.mean(dim=-1, keepdim=True)", "x.mean()"),
        ("46", "layer_norm", "x.var(dim=-1", "x.var(dim=0"),
        ("47", "layer_norm", "x.mean(dim=-1, keepdim=True)", "x.mean(0)"),
    ],
    N=st.integers(2, 5),
    D=st.integers(2, 9),
    seed=seeds,
)
def test_layer_norm_keeps_tokens_apart(lesson, N, D, seed):
    norm, x = randomised(nn.LayerNorm(D), seed), make_input(N, D, seed=seed)
    other = torch.cat([x[:1], 3 * x[1:] + 1])
    assert torch.equal(lesson.layer_norm(x, norm)[0], lesson.layer_norm(other, norm)[0])


@holds_for(
    "layer_norm",
    examples=4,
    faults=[
        ("37", "layer_norm", "var + norm", "var.detach() + norm"),
        ("46", "layer_norm", "(x - mean)", "(x - mean.detach())"),
        ("47", "layer_norm", "centred.square()", "centred.detach().square()"),
    ],
    D=st.integers(3, 6),
    seed=seeds,
)
def test_gradients_of_layer_norm(lesson, D, seed):
    norm, x = randomised(nn.LayerNorm(D), seed), make_input(2, D, seed=seed)
    assert_gradients_hold(lambda *_: lesson.layer_norm(x, norm), x, *norm.parameters())


ACTIVATIONS = {"47": nn.GELU}  # elsewhere ReLU


@holds_for(
    "feed_forward",
    faults=[
        ("46", "feed_forward", "+ linear1.bias", ""),
        ("46", "feed_forward", "hidden @", "hidden.roll(1, 0) @"),
        (
            "47",
            "feed_forward",
            "F.gelu(x @ linear1.weight.T + linear1.bias)",
            'F.gelu(x @ linear1.weight.T + linear1.bias, approximate="tanh")',
        ),
    ],
    lead=leads,
    D=sizes,
    FF=sizes,
    dtype=dtypes,
    seed=seeds,
)
def test_feed_forward_is_pytorchs_token_by_token(lesson, lead, D, FF, dtype, seed):
    activation = ACTIVATIONS.get(lesson.number, nn.ReLU)
    net = nn.Sequential(nn.Linear(D, FF), activation(), nn.Linear(FF, D))
    randomised(net, seed, dtype)
    x = make_input(*lead, D, dtype=dtype, seed=seed).requires_grad_()
    ours = lesson.feed_forward(x, net[0], net[2])
    assert_close(ours, net(x))
    inputs = [x, *net.parameters()]
    assert_gradients_equal(gradients(ours, *inputs), gradients(net(x), *inputs))
    tokens = [lesson.feed_forward(t, net[0], net[2]) for t in x.reshape(-1, D)]
    assert_close(torch.stack(tokens).reshape(x.shape), ours)


# ---- the helpers ---------------------------------------------------------------


@holds_for(
    "randomize_",
    faults=[
        ("37", "randomize_", "std, generator", "1.0, generator"),
        ("46", "randomize_", ", generator=generator", ""),
        (
            "47",
            "randomize_",
            "module.parameters():",
            "[p for p in module.parameters() if p.dim() > 1]:",
        ),
        ("47", "randomize_", "manual_seed(seed)", "manual_seed(0)"),
    ],
    size=heads,
    std=st.sampled_from([0.1, 0.5, 2.0]),
    seed=seeds,
)
def test_randomize_redraws_everything_from_its_seed(lesson, size, std, seed):
    """Whatever the parameters and the global generator were before."""

    def draw(seed, std, start):
        torch.manual_seed(start)
        layer = nn.TransformerEncoderLayer(size[0] * size[1], size[0], 5)
        assert lesson.randomize_(layer, seed, std) is layer
        return [p.detach() for p in layer.parameters()]

    first, again = draw(seed, std, 0), draw(seed, std, 1)
    unit, other = draw(seed, 1.0, 0), draw(seed + 1, std, 0)
    for a, b, c, d in zip(first, again, unit, other, strict=True):
        assert torch.equal(a, b) and (a != d).any()
        assert_close(a, std * c)
        assert (a != 0).all()


@holds_for(
    "compare",
    faults=[
        ("37", "compare", "limit = 1e-5", "limit = 1e-4"),
        ("45", "compare", "1e-12\n    diff", "1e-11\n    diff"),
        ("46", "compare", "atol=limit", "atol=limit, equal_nan=True"),
        ("47", "compare", ".max()", ".mean()"),
    ],
    shape=st.lists(sizes, min_size=1, max_size=3),
    difference=st.sampled_from([0.0, 0.5, 0.99, 1.1, 5.0, 1e6, math.nan, math.inf]),
    sign=st.sampled_from([-1, 1]),
    size=st.sampled_from([0.0, 1e-3, 1e3]),
    dtype=dtypes,
    seed=seeds,
)
def test_compare_accepts_up_to_the_limit(
    lesson, shape, difference, sign, size, dtype, seed
):
    """An absolute one: numbers that are large elsewhere buy nothing."""
    limit = {torch.float32: 1e-5, torch.float64: 1e-12}[dtype]
    reference = size * make_input(*shape, dtype=dtype, seed=seed).flatten()
    place = seed % len(reference)
    reference[place] = 0.25
    if math.isnan(difference):  # nan on both sides is no match either
        reference[place] = math.nan
    ours = reference.clone()
    ours[place] += sign * difference * limit
    expect = contextlib.nullcontext()
    if not difference < 1:
        expect = pytest.raises(AssertionError)
    said = io.StringIO()
    with expect, contextlib.redirect_stdout(said):
        lesson.compare("diff", ours.view(shape), reference.view(shape))
    label = "diff, float64" if dtype == torch.float64 else "diff"
    assert said.getvalue() == f"{label}: {(ours - reference)[place].abs():.2e}\n"


@holds_for(
    "count_parameters",
    faults=[
        ("45", "count_parameters", "p.numel()", "len(p)"),
        ("46", "count_parameters", "p.numel()", "p.shape[0]"),
        (
            "47",
            "count_parameters",
            "module.parameters()",
            "module.children()\n               for p in p.parameters(recurse=False)",
        ),
    ],
    size=heads,
    FF=sizes,
    L=st.integers(1, 3),
)
def test_parameters_are_counted(lesson, size, FF, L):
    """The sizes of PyTorch's layer, by the formula; H does not matter."""
    D = size[0] * size[1]
    layer = nn.TransformerEncoderLayer(D, size[0], FF)
    expected = 4 * D**2 + 4 * D + 2 * D * FF + FF + D + 4 * D
    stack = nn.TransformerEncoder(layer, L, enable_nested_tensor=False)
    assert lesson.count_parameters(layer) == expected
    assert lesson.count_parameters(stack) == L * expected
    assert lesson.count_parameters(nn.Sequential(nn.ReLU(), nn.BatchNorm1d(D))) == 2 * D


@holds_for(
    "accuracy",
    lessons=["45", "47"],  # in the others a label is 0 or 1
    faults=[
        ("45", "accuracy", "argmax", "argmin"),
        ("45", "accuracy", "100 *", "1 *"),
        ("47", "accuracy", "argmax", "argmin"),
        ("47", "accuracy", "100 *", "1 *"),
    ],
    n=st.integers(1, 20),
    classes=st.integers(2, 5),
    seed=seeds,
)
def test_accuracy_counts(lesson, n, classes, seed):
    x = make_input(n, classes, seed=seed)
    y = make_input(n, classes, seed=seed + 1).argmax(dim=1)
    right = sum(max(row) == row[i] for row, i in zip(x.tolist(), y.tolist()))
    acc = lesson.accuracy(nn.Identity(), x, y)
    assert math.isclose(acc, 100 * right / n, rel_tol=1e-6)
