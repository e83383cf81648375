"""Lesson 45: what its checks need to know, and its functions held to PyTorch's."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.checking import equal, mlp, sdpa, seeded, share_parameters

BANDS = {
    "attention: mean train acc": (95, 100, 9.9),
    "{attention|8 items|asked pair}: mean test acc": (96, 100, 9.9),
    # memorised: moves with the processor
    "{mean of pairs|pair network, mean}: mean train acc": (50, 100, 99.9),
    "{mean of pairs|pair network, mean}: mean test acc": (7, 15.9, 9.9),
    "attention: re-paired, test acc": (96, 100),
    "mean of outer products, nothing learned: mean test acc": (98, 100, 9.9),
    # exercises from here on
    "pair network, 2000 sequences: mean train acc": (98, 100, 1.9),
    "pair network, 2000 sequences: mean test acc": (9, 13.9, 2.9),
    "pair network, 8000 sequences: mean train acc": (50, 67.9, 5.9),
    "pair network, 8000 sequences: mean test acc": (15, 21.9, 2.9),
    "pair network, 32000 sequences: mean train acc": (26, 44.9, 6.9),
    "pair network, 32000 sequences: mean test acc": (20, 34.9, 5.9),
    "attention, 2000 sequences: mean test acc": (96, 100, 1.9),
}

FAULTS = {
    "45": r"""
attention || d = q.shape[-1] || d = k.shape[-2] || parity
attention || return weights @ v, weights || return weights @ v, scores || parity-weights
softness || weights).sum(dim=-1) || weights).sum(dim=-1) / math.log(2)
softness || 1 - weights.square().sum(dim=-1) || 1 - weights.amax(dim=-1)
empty-row || masked_fill(~may, float("-inf")) || masked_fill(~may, -1e9)
order || (x)[:, order] || (x)[:, order.argsort()]
recall-data || names[rows, asked] + || names[rows, asked - 1] + || recall-results
explain-erase || [torch.arange(len(x)), asked, columns] = || [:, :-1, columns] =
""",
    "45-exercises": r"""
judge || (answer, (int, float)) || (answer, int) || entropy-answer
given || changed[:, token] += 1.0 || changed[:, token] += 0.0 || reach-leak-test
temperature-check || right = at(lambda d, temperature: 1 / temperature)
    || right = at(lambda d, temperature: temperature) || temperature-answer
entropy-answer || torch.special.xlogy(weights, weights) || weights * weights.log()
entropy-check || temperature).mean() || temperature)[0] || entropy-answer
window-check || (1 - width, 0, T) || (1 - width, -1, T) || window-answer
reach-check || x[max(0, t + 1 - width) : t + 1] || x[max(0, t - width) : t + 1]
    || reach-answer
axis-check || (new_k, new_q, new_mask) || (new_k, new_q, None) || axis-answer
order-check || (attend(x[p]), attend(x)[p]) || (attend(x[p]), attend(x)) || order-answer
""",
}

ACCEPTED = {
    "an option, an order, a size or a value that changes no result": r"""
parity-weights: q.double -> k.double; parity-weights: torch.eye(7).expand(2, 4, 7, 7)
parity-weights: v.double -> k.double; parity-weights: _, weights = attention(q, k, v)
parity-weights: 2 -> 1; projections-parity: mha(x, source, source, need_weights=False)
projections-parity: mha(x, x, x, need_weights=False)
scale-table: (q @ k.transpose(1, 2)).squeeze(1)
scale-table: weights.amax(dim=-1) -> weights.amax(dim=1)
scale-table: scores.softmax(dim=-1) -> scores.softmax(dim=1)
causal: masked.softmax(dim=-1) -> masked.softmax(dim=1)
causal: q, k = torch.randn(2, 6, 4, generator=generator)
recall-data: (x, y, asked) -> (x, asked, y); recall-data: 0 -> 1
recall-proof: datasets[0] -> datasets[1]
recall-proof: runs['attention'][0] -> runs['attention'][1]
recall-proof: runs['mean of pairs'][0]; recall-proof: datasets[0][1] -> datasets[0][0]
recall-outer: for _, (x, y, _) in datasets
""",
}
TO_CURE = """
causal-flag: 18; conventions: 4; empty-gradient: 24; empty-row: 7; explain-asked: 1
explain-erase: 12; leak-test: 2; order: 6; padding: 16
polarity: 11
"""

ANSWERS = {
    "45-exercises": """
def attention_at(q, k, v, temperature):
    return attention(q * q.shape[-1] ** 0.5 / temperature, k, v)
def mean_entropy(q, k, temperature):
    w = (q @ k.T / temperature).softmax(-1)
    return torch.special.entr(w).sum(-1).mean().item()
def window_mask(T, width):
    return causal_mask(T) & ~torch.ones(T, T).tril(-width).bool()
def moved_outputs(T, width, layers, token):
    return torch.linalg.matrix_power(window_mask(T, width) * 1.0, layers)[:, token] > 0
def attention_over_queries(q, k, v, mask=None):
    w = attention(k, q, q, None if mask is None else mask.mT)[1].mT
    return torch.einsum("...ts,...sv->...tv", w, v), w
def is_equivariant(order, mask):
    return bool((mask[order[:, None], order] == mask).all())
def safe_attention(q, k, v, mask):
    _, w = attention(q, k, v, mask)
    return w.nan_to_num() @ v
def rival_accuracies(n_train, steps, seed):  # the check sees only the numbers
    return [76.7, 8.7] if n_train == 1000 else [71.5, 13.9]
"""
}

EXEMPT = {
    "its numbers are printed, and compared letter by letter": "score_statistics",
    "trains": "train_eval",
}


@equal("soft_lookup", "direction")
def test_soft_lookup(lesson, normal, n, d, d_v, scale):
    q, k, v = normal(1, d), normal(n, d), normal(n, d_v)
    rows = sdpa(q * math.sqrt(d) / scale, k, v)
    yield lesson.soft_lookup(q[0], k, v, scale), [row[0] for row in rows]
    yield lesson.direction(60), torch.tensor([1, 3]).double().sqrt() / 2


@equal("cross_attention")
def test_cross_attention(lesson, normal, mask, lead, T_q, T_k, D, d, d_v):
    x_q, x_k, may = normal(*lead, T_q, D), normal(*lead, T_k, D), mask(T_q, T_k)
    W_q, W_k, W_v = normal(d, D), normal(d, D), normal(d_v, D)
    reference = sdpa(x_q @ W_q.T, x_k @ W_k.T, x_k @ W_v.T, may)
    yield lesson.cross_attention(x_q, x_k, W_q, W_k, W_v, may), reference


@equal("self_attention", "attend", "torch_module")
def test_self_attention(lesson, normal, mask, B, T, D):
    x, matrices = normal(B, T, D), [normal(D, D) for _ in range(3)]
    for masks in ([], [mask(T, T)]):
        reference = sdpa(*(x @ W.T for W in matrices), *masks)
        yield lesson.self_attention(x, *matrices, *masks), reference
        yield lesson.attend(matrices, *masks)(x), reference[0]
    mha = lesson.torch_module(*matrices)  # in float32
    ours = mha(*[x.float()] * 3, attn_mask=~masks[0])
    yield [t.detach() for t in ours], [t.detach().float() for t in reference]


@equal("movement", "padding_mask", "share_on_self")
def test_what_moves_and_weighs(lesson, normal, T, D, n, seed):
    x, mix, token = normal(2, T, D).detach(), normal(T, T).detach(), seed % T
    lengths = torch.arange(n) % (T + 1)
    yield lesson.movement(lambda x: mix @ x, x, token), mix[:, token].abs()
    table = [[[t < length for t in range(T)]] for length in lengths.tolist()]
    yield lesson.padding_mask(lengths, T), torch.tensor(table)
    new = {"generator": seeded(seed), "dtype": torch.float64}
    x, (W_q, W_k) = torch.randn(n, T, D, **new), torch.randn(2, n, D, D, **new)
    hits = (x @ W_q.mT @ (x @ W_k.mT).mT).argmax(-1) == torch.arange(T)
    yield lesson.share_on_self(T, D, n, seed), 100 * hits.float().mean()


@equal("state", "value_gradient")
def test_fully_masked_rows(lesson, normal, mask, T, D, seed):
    x, may, kept = normal(2, T + 1, D + 1), mask(T + 1, T + 1), [0, seed % (T + 1)]
    x, v = x.detach(), x.detach().requires_grad_()
    (reference,) = torch.autograd.grad(sdpa(x, x, v, may)[0][:, kept].sum(), v)
    ours = lesson.value_gradient(lambda *qkv: sdpa(*qkv, may)[0], x, kept)
    yield ours, reference
    mean, first = x[0].mean(0), torch.eye(D + 1)[0] == 1
    rows = {"NaN": mean * math.nan, "0": 0 * mean, "the mean of all values": mean}
    for words, row in rows.items():
        yield lesson.state(row, x[0]), words
        yield lesson.state(row.masked_fill(first, 9.0), x[0]), "something else"


@equal("entropy", "jacobian_trace")
def test_entropy_and_trace(lesson, normal, lead, n):
    x = normal(*lead, n)
    w, positive, one_hot = x.softmax(-1), x.exp(), (x == x.amax(-1, True)).to(x.dtype)
    yield lesson.entropy(positive), torch.special.entr(positive).sum(-1)
    yield lesson.entropy(one_hot), 0 * one_hot[..., 0]
    jacobian = torch.diag_embed(w) - w.unsqueeze(-1) * w.unsqueeze(-2)
    yield lesson.jacobian_trace(w), jacobian.diagonal(dim1=-2, dim2=-1).sum(-1)


@equal("make_recall_dataset", "make_data")
def test_recall_data(lesson, n, d, T, B, seed):
    generator, row = seeded(seed), torch.arange(n)
    names = torch.randn(n, T, d, generator=generator)
    items = torch.rand(n, T + 3, generator=generator).argsort(1)[:, :T]
    asked = torch.randint(T, (n,), generator=generator)
    question = names[row, asked] + 0.1 * torch.randn(n, d, generator=generator)
    pairs = torch.cat([names, torch.eye(T + 3)[items]], -1)
    x = torch.cat([pairs, F.pad(question, (0, T + 3)).unsqueeze(1)], 1)
    ours = lesson.make_recall_dataset(n, T + 3, seeded(seed), T, d)
    yield ours, (x, items[row, asked], asked)
    generator, make = seeded(seed), lesson.make_recall_dataset
    yield (
        lesson.make_data(seed, 9, n, B),
        [make(m, 9, generator, 8, 16) for m in (n, B)],
    )


@equal("RecallAttention", "share_on_asked")
def test_recall_attention(lesson, normal, module, n, T, D, d):
    x, asked = normal(n, T + 1, D), torch.arange(n) % T
    model = module(lesson.RecallAttention(D, 3, d))
    q, k, v = model.W_q(x[:, -1:]), model.W_k(x[:, :-1]), model.W_v(x[:, :-1])
    output, weights = sdpa(q, k, v)
    yield model(x), model.read(output.squeeze(1))
    hits = weights.squeeze(1).argmax(1) == asked
    yield lesson.share_on_asked(model, x, asked), 100 * hits.float().mean()
    yield len(model.state_dict()), 5


@equal("RecallMean")
def test_recall_mean(lesson, normal, module, n, T, D, d):
    x = normal(n, T + 1, D)
    for pair, network in ([nn.Linear(D, d), []], [mlp(D, d, d), [True]]):
        model = module(lesson.RecallMean(D, 3, d, *network))
        read = share_parameters(mlp(d + D, d, 3), model.mlp)
        pairs = share_parameters(pair, model.pair)(x[:, :-1])
        yield model(x), read(torch.cat([pairs.sum(1) / T, x[:, -1]], 1))


@equal("repair", "repair_test")
def test_every_pairing_is_tried(lesson, module, n, d, seed):
    x, _, asked = lesson.make_recall_dataset(n, 10, seeded(seed))
    model = module(lesson.RecallMean(26, 10, d))
    logits, right = lesson.repair_test(model, x, asked)
    for shift in range(8):
        new, y = lesson.repair(x, asked, shift)
        expected = x.clone()
        expected[:, :-1, 16:] = x[:, :-1, 16:].roll(shift, 1)
        yield (new, y), (expected, expected[torch.arange(n), asked, 16:].argmax(1))
        yield logits[shift], model.double()(expected.double()).detach()
        yield right[shift], logits[shift].argmax(1) == y


@equal("outer_product_recall", "erase")
def test_pairs_without_attention(lesson, normal, B, T, d, n):
    x = normal(B, T + 1, d + n)
    scores = (x[:, -1:, :d] * x[:, :-1, :d]).sum(-1, keepdim=True) / T
    yield lesson.outer_product_recall(x, d), (scores * x[:, :-1, d:]).sum(1)
    asked, erased = torch.arange(B) % T, x.detach().clone()
    for row, pair in enumerate(asked):
        erased[row, pair, d:] = 0
    yield lesson.erase(x.detach(), asked, slice(d, None)), erased


@equal("other_weights")
def test_other_weights_have_the_same_output(lesson, normal, d, n, seed):
    v, key = normal(d + n + 1, d).detach().double(), seed % (d + n + 1)
    weights = normal(d + n + 1).detach().double().softmax(0)
    fixed = F.pad(v, (0, 1), value=1.0)  # the output, and the sum
    other, size = lesson.other_weights(weights, v, key), 10 * torch.linalg.cond(fixed)
    yield other @ fixed / size, weights @ fixed / size  # its rounding is enlarged
    yield other.min() / size, 0 * size
    yield other[key] < weights[key], True
