"""Properties of the functions of Lesson 45: attention, masks and recall."""

import copy
import math

import torch
import torch.nn.functional as F
from hypothesis import strategies as st

from parity import assert_gradients_equal, gradients, make_input
from strategies import (
    assert_close,
    assert_gradients_hold,
    cross_masks,
    dtypes,
    holds_for,
    leads,
    masks,
    permutation,
    randomised,
    seeds,
    sizes,
)

LESSON = ["45"]


def make_matrices(d, d_v, D, seed, dtype=torch.float64):
    """W_q, W_k (d, D) and W_v (d_v, D)."""
    shapes = [(d, D), (d, D), (d_v, D)]
    return [
        0.5 * make_input(*shape, dtype=dtype, seed=seed + i)
        for i, shape in enumerate(shapes, start=10)
    ]


def make_recall(lesson, n, seed, n_items=10):
    generator = torch.Generator().manual_seed(seed)
    return lesson.make_recall_dataset(n, n_items, generator)


# ---- looking up ----------------------------------------------------------------


@holds_for(
    "soft_lookup",
    "attention",
    faults=[
        ("45", "soft_lookup", "scores / temperature", "scores * temperature"),
        ("45", "soft_lookup", "weights @ values", "weights.square() @ values"),
    ],
    n=sizes,
    d=sizes,
    d_v=sizes,
    temperature=st.sampled_from([0.1, 0.5, 1.0, 7.0]),
    dtype=dtypes,
    seed=seeds,
)
def test_soft_lookup_is_one_row_of_attention(
    lesson, n, d, d_v, temperature, dtype, seed
):
    """Scores are divided by the temperature, not by sqrt(d)."""
    q, k, v = (
        0.5 * make_input(*shape, dtype=dtype, seed=seed + i)
        for i, shape in enumerate([(d,), (n, d), (n, d_v)])
    )
    answer, weights = lesson.soft_lookup(q, k, v, temperature)
    scaled = q.unsqueeze(0) * math.sqrt(d) / temperature
    assert_close(answer, F.scaled_dot_product_attention(scaled, k, v)[0])
    rows, row_weights = lesson.attention(scaled, k, v)
    assert_close(answer, rows[0])
    assert_close(weights, row_weights[0])
    order = permutation(n, seed)
    permuted, _ = lesson.soft_lookup(q, k[order], v[order], temperature)
    assert_close(permuted, answer)


@holds_for(
    "soft_lookup",
    examples=4,
    faults=[("45", "soft_lookup", "keys @ query", "keys.detach() @ query")],
    n=sizes,
    d=sizes,
    seed=seeds,
)
def test_gradients_of_soft_lookup(lesson, n, d, seed):
    inputs = [make_input(*s, seed=seed) for s in [(d,), (n, d), (n, 2)]]
    assert_gradients_hold(lambda *t: lesson.soft_lookup(*t, 0.7)[0], *inputs)


@holds_for(
    "direction",
    faults=[
        (
            "45",
            "direction",
            "radians.cos(), radians.sin()",
            "radians.sin(), radians.cos()",
        ),
        ("45", "direction", ".deg2rad()", " / 57.3"),
    ],
    a=st.integers(-720, 720),
    b=st.floats(-720, 720),
)
def test_directions_are_angles(lesson, a, b):
    """0 is east; unit length, and the dot product is the cosine between."""
    ours = lesson.direction([a, b])
    turned = [[math.cos(t), math.sin(t)] for t in (math.radians(a), math.radians(b))]
    assert_close(ours, torch.tensor(turned, dtype=torch.float64))
    assert_close(ours.norm(dim=-1), torch.ones(2).double())
    between = torch.tensor(math.cos(math.radians(a - b)), dtype=torch.float64)
    assert_close(lesson.direction(a) @ lesson.direction(b), between)


@holds_for(
    "cross_attention",
    "attention",
    faults=[
        ("45", "cross_attention", "v = x_k @ W_v.T", "v = x_k @ W_v.T + x_k.mean()"),
        ("45", "cross_attention", "k = x_k @", "k = 0 * x_k @"),
        ("45", "cross_attention", "(q, k, v, mask)", "(q, k, v)"),
    ],
    mask=cross_masks,
    lead=leads,
    D=sizes,
    d=sizes,
    d_v=sizes,
    dtype=dtypes,
    seed=seeds,
)
def test_cross_attention_is_pytorchs(lesson, mask, lead, D, d, d_v, dtype, seed):
    x_q = make_input(*lead, mask.shape[0], D, dtype=dtype, seed=seed)
    x_k = make_input(*lead, mask.shape[1], D, dtype=dtype, seed=seed + 1)
    W_q, W_k, W_v = matrices = make_matrices(d, d_v, D, seed, dtype)
    inputs = [t.requires_grad_() for t in (x_q, x_k, *matrices)]
    ours, weights = lesson.cross_attention(x_q, x_k, *matrices, mask)
    reference = F.scaled_dot_product_attention(
        F.linear(x_q, W_q), F.linear(x_k, W_k), F.linear(x_k, W_v), attn_mask=mask
    )
    assert_close(ours, reference)
    assert weights.shape == (*lead, *mask.shape)
    assert_gradients_equal(gradients(ours, *inputs), gradients(reference, *inputs))


@holds_for(
    "self_attention",
    "torch_module",
    "attend",
    faults=[
        ("45", "self_attention", "W_v, mask)\n", "W_v)\n"),
        ("45", "self_attention", "(x, x, W_q, W_k", "(x, x, W_k, W_q"),
        ("45", "torch_module", "[W_q, W_k, W_v]", "[W_k, W_q, W_v]"),
        ("45", "attend", "*matrices, mask", "*matrices"),
    ],
    mask=masks(),
    B=sizes,
    D=sizes,
    seed=seeds,
)
def test_self_attention_is_the_module(lesson, mask, B, D, seed):
    """Up to float32, in which the module is built."""
    x = make_input(B, len(mask), D, dtype=torch.float32, seed=seed)
    matrices = make_matrices(D, D, D, seed, torch.float32)
    mha = lesson.torch_module(*matrices)
    reference, reference_weights = mha(x, x, x, attn_mask=~mask)
    output, weights = lesson.self_attention(x, *matrices, mask)
    assert_close(output, reference)
    assert_close(weights, reference_weights)
    assert torch.equal(lesson.attend(matrices, mask)(x), output)
    assert_close(lesson.attend(matrices)(x), mha(x, x, x)[0])


@holds_for(
    "cross_attention",
    "self_attention",
    examples=4,
    faults=[
        ("45", "cross_attention", "q = x_q @", "q = x_q.detach() @"),
        ("45", "self_attention", "(x, x, W", "(x, x.detach(), W"),
    ],
    mask=masks(),
    D=sizes,
    seed=seeds,
)
def test_gradients_through_projections(lesson, mask, D, seed):
    x, x_k = (
        make_input(len(mask), D, seed=seed),
        make_input(len(mask), D, seed=seed + 1),
    )
    matrices = make_matrices(3, 2, D, seed)
    assert_gradients_hold(lambda *t: lesson.self_attention(*t, mask)[0], x, *matrices)
    assert_gradients_hold(
        lambda *t: lesson.cross_attention(*t, mask)[0], x, x_k, *matrices
    )


# ---- masks -----------------------------------------------------------------------


@holds_for(
    "attend",
    "self_attention",
    "cross_attention",
    "movement",
    faults=[
        ("45", "attend", "*matrices, mask", "*matrices"),
        ("45", "attention", 'float("-inf")', "-9.0"),
        ("45", "self_attention", "x, x, W", "x, x.cumsum(-2), W"),
        ("45", "movement", "dim=(0, 2)", "dim=(0, 1)"),
    ],
    mask=masks(T_q=5),
    L=st.integers(1, 3),
    token=st.integers(0, 4),
    dtype=dtypes,
    seed=seeds,
)
def test_no_mask_leaks_through_layers(lesson, mask, L, token, dtype, seed):
    """In L layers a token reaches what paths of the mask of L steps reach."""
    D, T = 4, len(mask)
    layers = [
        lesson.attend(make_matrices(D, D, D, seed + 3 * i, dtype), mask)
        for i in range(L)
    ]

    def stack(x):
        for layer in layers:
            x = x + layer(x)
        return x

    step = (mask | torch.eye(T).bool()).double()  # a query sees itself, too
    reached = torch.linalg.matrix_power(step, L)[:, token] > 0
    x = make_input(2, T, D, dtype=dtype, seed=seed)
    moved = lesson.movement(stack, x, token)
    assert moved.shape == (T,)
    assert (moved[~reached] == 0).all() and moved[token] > 0


@holds_for(
    "movement",
    faults=[
        ("45", "movement", "+= 1.0", "*= 2.0"),
        ("45", "movement", "x.clone()", "x"),
        ("45", "movement", ".abs()", ""),
    ],
    T=sizes,
    D=sizes,
    token=seeds,
    seed=seeds,
)
def test_movement_is_that_of_one_token_by_one(lesson, T, D, token, seed):
    """A linear function moves by its own columns; the input is left alone."""
    token %= T
    x, mix = make_input(2, T, D, seed=seed), make_input(T, T, seed=seed + 1)
    before = x.clone()
    assert_close(lesson.movement(lambda x: mix @ x, x, token), mix[:, token].abs())
    assert torch.equal(x, before)


@holds_for(
    "padding_mask",
    "attend",
    "attention",
    faults=[
        ("45", "padding_mask", "< lengths", "<= lengths"),
        (
            "45",
            "padding_mask",
            ".unsqueeze(1)).unsqueeze(1)",
            ".unsqueeze(1)).unsqueeze(1).flip(0)",
        ),
        ("45", "attention", "~mask", "mask"),
    ],
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    more=st.integers(0, 3),
    seed=seeds,
)
def test_padded_sequences_are_what_they_are_alone(lesson, lengths, more, seed):
    """The mask has as many keys as there are tokens, the first ones."""
    T = max(lengths) + more
    mask = lesson.padding_mask(torch.tensor(lengths), T)
    assert mask.shape == (len(lengths), 1, T) and mask.dtype == torch.bool
    assert mask.sum(dim=(1, 2)).tolist() == lengths
    x = make_input(len(lengths), T, 3, seed=seed)
    matrices = make_matrices(3, 3, 3, seed)
    output = lesson.attend(matrices, mask)(x)
    for row, length in enumerate(lengths):
        alone = lesson.attend(matrices)(x[row, :length])
        assert_close(output[row, :length], alone)
    assert not lesson.padding_mask(torch.tensor([0]), T).any()


@holds_for(
    "state",
    faults=[
        ("45", "state", "(row == 0).all()", "(row == 0).any()"),
        ("45", "state", "row.isnan().all()", "row.isnan().any()"),
        ("45", "state", "v.mean(dim=0)", "v.mean()"),
    ],
    T_k=st.integers(2, 6),
    d_v=st.integers(2, 5),
    what=st.sampled_from(["NaN", "0", "the mean of all values", "something else"]),
    place=st.integers(0, 1),
    seed=seeds,
)
def test_state_names_what_the_whole_row_holds(lesson, T_k, d_v, what, place, seed):
    v = make_input(T_k, d_v, seed=seed)
    row = v.mean(dim=0)
    if what != "the mean of all values":
        row = torch.full_like(row, math.nan if what == "NaN" else 0.0)
    assert what == "something else" or lesson.state(row, v) == what
    row[place] = 1e3  # of one number in it, it cannot be said
    assert lesson.state(row, v) == "something else"
    row = v.mean(dim=0)
    row[place] = 0.0 if what == "0" else row[place] + 1
    assert lesson.state(row, v) == "something else"
    row[place] = math.nan
    assert lesson.state(row, v) == "something else"


@holds_for(
    "value_gradient",
    "attention",
    faults=[
        ("45", "value_gradient", "output[:, kept]", "output"),
        ("45", "value_gradient", "function(x, x, v)", "function(v, x, v)"),
    ],
    mask=masks(),
    D=sizes,
    kept=st.integers(0, 5),
    seed=seeds,
)
def test_value_gradient_is_the_sum_of_the_kept_rows_weights(
    lesson, mask, D, kept, seed
):
    kept = list(range(len(mask)))[: kept + 1]
    x = make_input(2, len(mask), D, seed=seed)
    gradient = lesson.value_gradient(
        lambda q, k, v: lesson.attention(q, k, v, mask)[0], x, kept
    )
    unit = torch.eye(len(mask)).double().expand(2, -1, -1)
    weights = F.scaled_dot_product_attention(x, x, unit, attn_mask=mask)
    expected = weights[:, kept].sum(dim=1).unsqueeze(-1).expand_as(x)
    assert_close(gradient, expected)


# ---- how soft the weights are ----------------------------------------------------


@holds_for(
    "entropy",
    "jacobian_trace",
    examples=60,
    faults=[
        (
            "45",
            "entropy",
            "-torch.special.xlogy(weights, weights)",
            "-(weights * weights.log())",
        ),
        ("45", "entropy", "-torch.special", "-1.4427 * torch.special"),
        ("45", "jacobian_trace", "weights.square()", "weights.abs()"),
        ("45", "jacobian_trace", "dim=-1", "dim=0"),
    ],
    N=sizes,
    n=sizes,
    scale=st.sampled_from([0.0, 1.0, 9.0, 1e4]),
    seed=seeds,
)
def test_entropy_and_trace(lesson, N, n, scale, seed):
    """Against PyTorch's; between those of a single key and of equal weights."""
    scores = scale * make_input(N, n, seed=seed)
    weights = scores.softmax(dim=-1)
    entropies, traces = lesson.entropy(weights), lesson.jacobian_trace(weights)
    assert_close(entropies, torch.special.entr(weights).sum(dim=-1))
    jacobians = torch.diag_embed(weights) - weights[:, :, None] * weights[:, None]
    assert_close(traces, torch.einsum("nii->n", jacobians))
    reference = torch.autograd.functional.jacobian(lambda s: s.softmax(0), scores[0])
    assert_close(traces[0], reference.trace())
    assert (-1e-12 <= entropies).all() and (entropies <= math.log(n) + 1e-12).all()
    assert (-1e-12 <= traces).all() and (traces <= 1 - 1 / n + 1e-12).all()
    order = permutation(n, seed)
    assert_close(lesson.entropy(weights[:, order]), entropies)
    assert_close(lesson.jacobian_trace(weights[:, order]), traces)


@holds_for(
    "entropy",
    "jacobian_trace",
    examples=4,
    faults=[
        (
            "45",
            "entropy",
            "xlogy(weights, weights)",
            "xlogy(weights, weights.detach())",
        ),
        ("45", "jacobian_trace", "weights.square()", "(weights * weights.detach())"),
    ],
    n=st.integers(2, 6),
    seed=seeds,
)
def test_gradients_of_entropy_and_trace(lesson, n, seed):
    weights = make_input(2, n, seed=seed).softmax(dim=-1)
    assert_gradients_hold(lesson.entropy, weights.clone())
    assert_gradients_hold(lesson.jacobian_trace, weights.clone())


@holds_for(
    "score_statistics",
    "entropy",
    "jacobian_trace",
    faults=[
        ("45", "score_statistics", "/ math.sqrt(d)", "/ d"),
        ("45", "score_statistics", "weights.amax", "weights.amin"),
        ("45", "score_statistics", "manual_seed(seed)", "manual_seed(0)"),
        ("45", "entropy", "-torch", "torch"),
        ("45", "jacobian_trace", "1 - weights", "2 - weights"),
    ],
    d=st.integers(1, 40),
    n_queries=st.integers(2, 9),
    n_keys=st.integers(2, 9),
    scaled=st.booleans(),
    seed=seeds,
)
def test_score_statistics(lesson, d, n_queries, n_keys, scaled, seed):
    """The variance to the digit; of the rest the bounds, and what ties them."""
    raw, *_ = lesson.score_statistics(d, False, n_queries, n_keys, seed)
    var, top, entropy, trace = lesson.score_statistics(
        d, scaled, n_queries, n_keys, seed
    )
    assert math.isclose(var, raw / d if scaled else raw, rel_tol=1e-9)
    generator = torch.Generator().manual_seed(seed)
    new = {"generator": generator, "dtype": torch.float64}
    q, k = torch.randn(n_queries, d, **new), torch.randn(n_queries, n_keys, d, **new)
    scores = torch.einsum("nd,nkd->nk", q, k)
    assert math.isclose(raw, scores.var().item(), rel_tol=1e-9)
    assert 1 / n_keys <= top <= 1
    assert -1e-12 <= entropy <= math.log(n_keys) + 1e-12
    # the squares of weights add up to something between top^2 and top
    assert 1 - top - 1e-12 <= trace <= 1 - top**2 + 1e-12


# ---- recall ------------------------------------------------------------------------


@holds_for(
    "make_recall_dataset",
    faults=[
        (
            "45",
            "make_recall_dataset",
            "items[rows, asked], asked",
            "items[rows, 0], asked",
        ),
        ("45", "make_recall_dataset", "[rows, asked] + noise", "[rows, 0] + noise"),
        ("45", "make_recall_dataset", ".argsort(dim=1)", ".argsort(dim=0) % n_items"),
        (
            "45",
            "make_recall_dataset",
            "0.1 * torch.randn(n, d_name, generator=generator)",
            "0.1 * torch.randn(n, d_name)",
        ),
    ],
    n=st.integers(2, 9),
    n_pairs=st.integers(2, 6),
    more=st.integers(0, 4),
    d_name=sizes,
    seed=seeds,
)
def test_recall_sequences(lesson, n, n_pairs, more, d_name, seed):
    """Pairs of a name and an item, no item twice; the question is a noisy name."""

    def draw():
        generator = torch.Generator().manual_seed(seed)
        return lesson.make_recall_dataset(n, n_pairs + more, generator, n_pairs, d_name)

    x, y, asked = draw()
    assert x.shape == (n, n_pairs + 1, d_name + n_pairs + more)
    assert 0 <= asked.min() and asked.max() < n_pairs
    names, items = x[:, :-1].split([d_name, n_pairs + more], dim=-1)
    assert ((items == 0) | (items == 1)).all() and (items.sum(dim=-1) == 1).all()
    assert items.sum(dim=1).max() == 1
    assert (x[:, -1, d_name:] == 0).all()
    for row, item, pair in zip(range(n), y.tolist(), asked.tolist()):
        assert items[row, pair, item] == 1
        assert 0 < (x[row, -1, :d_name] - names[row, pair]).abs().max() < 0.7
    assert all(torch.equal(a, b) for a, b in zip((x, y, asked), draw()))


@holds_for(
    "make_data",
    "make_recall_dataset",
    lessons=LESSON,
    faults=[
        ("45", "make_data", "n_test, n_items", "n_train, n_items"),
        ("45", "make_data", "manual_seed(seed)", "manual_seed(0)"),
    ],
    n_items=st.integers(8, 12),
    n_train=sizes,
    n_test=sizes,
    seed=seeds,
)
def test_data_are_two_draws_from_one_generator(lesson, n_items, n_train, n_test, seed):
    generator = torch.Generator().manual_seed(seed)
    data = lesson.make_data(seed, n_items, n_train, n_test)
    for ours, n in zip(data, (n_train, n_test), strict=True):
        reference = lesson.make_recall_dataset(n, n_items, generator)
        assert all(torch.equal(a, b) for a, b in zip(ours, reference, strict=True))
    assert not (data[0][0][:, None] == data[1][0]).flatten(2).all(dim=-1).any()


@holds_for(
    "RecallAttention",
    "cross_attention",
    "share_on_asked",
    faults=[
        ("45", "RecallAttention", "x[:, -1:], x[:, :-1]", "x[:, -1:], x"),
        (
            "45",
            "RecallAttention",
            "self.W_q.weight, self.W_k",
            "self.W_k.weight, self.W_q",
        ),
        ("45", "share_on_asked", "100 *", "1 *"),
        ("45", "share_on_asked", "argmax", "argmin"),
    ],
    n=st.integers(1, 9),
    d=sizes,
    seed=seeds,
)
def test_recall_attention_asks_the_pairs(lesson, n, d, seed):
    x, _, asked = make_recall(lesson, n, seed)
    model = randomised(lesson.RecallAttention(x.shape[-1], 10, d), seed, x.dtype)
    pairs, question = x[:, :-1], x[:, -1:]
    q, k, v = model.W_q(question), model.W_k(pairs), model.W_v(pairs)
    output = F.scaled_dot_product_attention(q, k, v)
    assert_close(model(x), model.read(output.squeeze(1)))
    best = (q @ k.transpose(1, 2)).squeeze(1).argmax(dim=-1)
    expected = 100 * sum(a == b for a, b in zip(best.tolist(), asked.tolist())) / n
    assert math.isclose(lesson.share_on_asked(model, x, asked), expected, rel_tol=1e-6)


@holds_for(
    "RecallMean",
    "repair_test",
    "repair",
    faults=[
        ("45", "RecallMean", "x[:, :-1]).mean", "x[:, :-1]).cumsum(1).mean"),
        ("45", "RecallMean", "torch.cat([mean, x[:, -1]]", "torch.cat([mean, x[:, 0]]"),
        ("45", "repair_test", "== y_new", "== y_new + 1"),
        ("45", "repair_test", "x.shape[1] - 1", "x.shape[1]"),
        ("45", "repair", "shift, dims=1", "1, dims=1"),
    ],
    n=sizes,
    hidden=sizes,
    seed=seeds,
)
def test_the_mean_over_pairs_cannot_tell_pairings_apart(lesson, n, hidden, seed):
    """Linear in the pair, its logits are the same for all, right for one at most;
    with a network for each pair its order does not matter, but the pairing does."""
    x, y, asked = make_recall(lesson, n, seed)
    linear = randomised(lesson.RecallMean(26, 10, hidden), seed, x.dtype)
    network = lesson.RecallMean(26, 10, hidden, pair_network=True)
    network = randomised(network, seed, x.dtype)
    logits, right = lesson.repair_test(linear, x, asked)
    assert logits.shape == (8, n, 10) and right.shape == (8, n)
    assert_close(logits, logits[:1].expand_as(logits))
    assert (right.sum(dim=0) <= 1).all()
    order = torch.cat([permutation(8, seed), torch.tensor([8])])
    for model in (linear, network):
        assert_close(model(x[:, order]), model(x))
        mean = model.pair(x)[:, :-1].sum(dim=1) / 8
        reference = model.mlp(torch.cat([mean, x[:, -1]], dim=-1))
        assert_close(model(x), reference)
        other = torch.cat([x[:1], 3 * x[1:] + 1])
        assert torch.equal(model(other)[0], model(x)[0])
    for model in (linear, network):
        logits, right = lesson.repair_test(model, x, asked)
        double = copy.deepcopy(model).double()
        for shift in range(8):
            x_new, y_new = lesson.repair(x.double(), asked, shift)
            assert_close(logits[shift], double(x_new).detach())
            assert torch.equal(right[shift], logits[shift].argmax(-1) == y_new)
    assert torch.equal(lesson.repair(x, asked, 0)[1], y)


@holds_for(
    "repair",
    faults=[
        ("45", "repair", "x = x.clone()", "pass"),
        ("45", "repair", "roll(shift, dims=1)", "roll(-shift, dims=1)"),
        ("45", "repair", "items[torch.arange(len(x)), asked]", "items[:, 0]"),
    ],
    n=sizes,
    shift=st.integers(0, 9),
    other=st.integers(0, 9),
    seed=seeds,
)
def test_repair_hands_on_items_only(lesson, n, shift, other, seed):
    """Shifts add up; eight of them change nothing; the input stays as it was."""
    x, _, asked = make_recall(lesson, n, seed)
    before = x.clone()
    moved, y = lesson.repair(x, asked, shift)
    assert torch.equal(x, before)
    assert torch.equal(moved[..., :16], x[..., :16])
    assert torch.equal(moved[:, -1], x[:, -1])
    for pair in range(8):
        assert torch.equal(moved[:, (pair + shift) % 8, 16:], x[:, pair, 16:])
    assert (moved[torch.arange(n), asked, 16 + y] == 1).all()
    twice, _ = lesson.repair(moved, asked, other)
    assert torch.equal(twice, lesson.repair(x, asked, (shift + other) % 8)[0])


@holds_for(
    "outer_product_recall",
    faults=[
        ("45", "outer_product_recall", "/ names.shape[1]", "/ 2"),
        ("45", "outer_product_recall", "x[:, -1:, :d_name]", "x[:, :1, :d_name]"),
    ],
    B=sizes,
    pairs=sizes,
    d_name=sizes,
    n_items=sizes,
    seed=seeds,
)
def test_outer_products_are_attention_without_softmax(
    lesson, B, pairs, d_name, n_items, seed
):
    x = make_input(B, pairs + 1, d_name + n_items, seed=seed)
    logits = torch.zeros(B, n_items).double()
    for row in range(B):
        for pair in range(pairs):
            score = x[row, -1, :d_name] @ x[row, pair, :d_name]
            logits[row] += score * x[row, pair, d_name:] / pairs
    assert_close(lesson.outer_product_recall(x, d_name), logits)


@holds_for(
    "erase",
    faults=[
        ("45", "erase", "x = x.clone()", "pass"),
        ("45", "erase", "torch.arange(len(x)), asked", "slice(None), asked"),
        ("45", "erase", "= 0.0", "*= 0.5"),
    ],
    n=st.integers(2, 6),
    T=st.integers(2, 5),
    D=st.integers(2, 6),
    cut=seeds,
    seed=seeds,
)
def test_erase_sets_one_pairs_columns_to_zero(lesson, n, T, D, cut, seed):
    x = make_input(n, T, D, seed=seed)
    before, asked = x.clone(), torch.arange(n) % T
    columns = slice(cut % D, D)
    erased = lesson.erase(x, asked, columns)
    assert torch.equal(x, before)
    for row in range(n):
        for token in range(T):
            gone = erased[row, token] == 0
            here = token == row % T
            assert gone.tolist() == [here and c >= cut % D for c in range(D)]
            assert torch.equal(erased[row, token][~gone], x[row, token][~gone])


@holds_for(
    "other_weights",
    faults=[
        (
            "45",
            "other_weights",
            "weights + length * step",
            "weights + 0.5 * length * step",
        ),
        ("45", "other_weights", "dim=1)\n    step", "dim=1)[:, :-1]\n    step"),
        ("45", "other_weights", ".min()\n", ".max()\n"),
    ],
    d_v=st.integers(1, 4),
    more=st.integers(2, 6),
    key=seeds,
    seed=seeds,
)
def test_other_weights_have_the_same_output(lesson, d_v, more, key, seed):
    """No negative weight, sum 1, less on `key`; and one weight used up."""
    T_k = d_v + more
    key %= T_k
    v = make_input(T_k, d_v, seed=seed)
    weights = make_input(T_k, seed=seed + 1).softmax(dim=0)
    other = lesson.other_weights(weights, v, key)
    # a pseudo-inverse of random values: its rounding is enlarged by their own
    size = torch.linalg.cond(torch.cat([v, torch.ones(T_k, 1)], dim=1)).item() * 10
    assert_close(other @ v, weights @ v, size)
    assert_close(other.sum(), torch.ones(()).double(), size)
    assert other.min().abs() < 1e-12 * size
    assert other[key] < weights[key]


@holds_for(
    "share_on_self",
    "attention",
    examples=10,
    faults=[
        ("45", "share_on_self", "torch.arange(T)", "0"),
        ("45", "share_on_self", "argmax", "argmin"),
        ("45", "share_on_self", "100 *", "50 *"),
    ],
    T=sizes,
    D=sizes,
    n=st.integers(5, 20),
    seed=seeds,
)
def test_share_on_self_counts(lesson, T, D, n, seed):
    """The largest score is the largest weight: no softmax is needed to count."""
    generator = torch.Generator().manual_seed(seed)
    new = {"generator": generator, "dtype": torch.float64}
    x, W_q, W_k = torch.randn(n, T, D, **new), *torch.randn(2, n, D, D, **new)
    scores = torch.einsum("nte,nse->nts", x @ W_q.mT, x @ W_k.mT)
    hits = sum(
        row.argmax().item() == t for rows in scores for t, row in enumerate(rows)
    )
    share = lesson.share_on_self(T, D, n, seed)
    assert math.isclose(share, 100 * hits / (n * T), rel_tol=1e-9)


@holds_for(
    "RecallAttention",
    "RecallMean",
    "outer_product_recall",
    examples=3,
    faults=[
        ("45", "RecallAttention", "self.W_v.weight,", "self.W_v.weight.detach(),"),
        ("45", "RecallMean", ".mean(dim=1)", ".mean(dim=1).detach()"),
        ("45", "outer_product_recall", "(question @", "(question.detach() @"),
    ],
    d=sizes,
    seed=seeds,
)
def test_gradients_of_the_recall_models(lesson, d, seed):
    x = make_input(2, 4, 5, seed=seed)
    models = [lesson.RecallAttention(5, 3, d), lesson.RecallMean(5, 3, d)]
    for model in models:
        randomised(model, seed)
        assert_gradients_hold(lambda *_: model(x), x, *model.parameters())
    assert_gradients_hold(lambda x: lesson.outer_product_recall(x, 3), x)
