"""Lesson 45: what its checks need to know, and its functions held to PyTorch's."""

import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from hypothesis import strategies as st

from tests.checking import equal, seeded, sizes, train_with_adam

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
EXEMPT = {
    "heat_map": "draws a figure",
    "train_eval": "trains: an experiment, judged by printed bands",
}

# Functions held to PyTorch's on drawn inputs stand below.
sdpa = F.scaled_dot_product_attention


@equal("soft_lookup", temperature=st.sampled_from([0.5, 1.0, 7.0]))
def test_soft_lookup(lesson, normal, n, d, d_v, temperature):
    q, k, v = normal(d), normal(n, d), normal(n, d_v)
    scaled, unit = q.unsqueeze(0) * math.sqrt(d) / temperature, torch.eye(n).to(q)
    reference = sdpa(scaled, k, v)[0], sdpa(scaled, k, unit)[0]
    yield lesson.soft_lookup(q, k, v, temperature), reference


@equal("direction", a=st.integers(-720, 720), b=st.floats(-720, 720))
def test_direction(lesson, a, b):
    turned = [[math.cos(math.radians(t)), math.sin(math.radians(t))] for t in (a, b)]
    yield lesson.direction([a, b]), torch.tensor(turned, dtype=torch.float64)


@equal("cross_attention", "self_attention", "attend", "torch_module")
def test_projections(lesson, normal, mask, lead, T_q, T_k, D, d, d_v):
    x_q, x_k, may = normal(*lead, T_q, D), normal(*lead, T_k, D), mask(T_q, T_k)
    W_q, W_k, W_v = normal(d, D), normal(d, D), normal(d_v, D)
    q, k, v = F.linear(x_q, W_q), F.linear(x_k, W_k), F.linear(x_k, W_v)
    ours, weights = lesson.cross_attention(x_q, x_k, W_q, W_k, W_v, may)
    yield ours, sdpa(q, k, v, may)
    yield weights, sdpa(q, k, torch.eye(T_k).to(x_q).expand(*lead, -1, -1), may)
    x, matrices, may = (
        normal(2, T_q, D),
        [normal(D, D) for _ in range(3)],
        mask(T_q, T_q),
    )
    q, k, v = (F.linear(x, W) for W in matrices)
    yield lesson.self_attention(x, *matrices, may)[0], sdpa(q, k, v, may)
    yield lesson.attend(matrices, may)(x), sdpa(q, k, v, may)
    yield lesson.attend(matrices)(x), sdpa(q, k, v)
    mha, x = lesson.torch_module(*matrices), x.detach().float()
    matrices = [W.detach().float() for W in matrices]
    reference = lesson.self_attention(x, *matrices, may)
    yield [t.detach() for t in mha(x, x, x, attn_mask=~may)], reference


@equal("movement")
def test_movement(lesson, normal, T, D, seed):
    x, mix = normal(2, T, D).detach(), normal(T, T).detach()
    before, token = x.clone(), seed % T
    yield lesson.movement(lambda x: mix @ x, x, token), mix[:, token].abs()
    yield x, before


@equal("padding_mask", lengths=st.lists(sizes, min_size=1, max_size=4))
def test_padded_sequences_are_what_they_are_alone(lesson, normal, lengths, n):
    T = max(lengths) + n - 1
    x, matrices = normal(len(lengths), T, 3), [normal(3, 3) for _ in range(3)]
    mask = lesson.padding_mask(torch.tensor(lengths), T)
    yield mask, torch.tensor([[[t < length for t in range(T)]] for length in lengths])
    padded = lesson.attend(matrices, mask)(x)
    for row, length in enumerate(lengths):
        q, k, v = (F.linear(x[row, :length], W) for W in matrices)
        yield padded[row, :length], sdpa(q, k, v)


@equal("state", T_k=st.integers(2, 6), d_v=st.integers(2, 5))
def test_state(lesson, normal, T_k, d_v):
    v = normal(T_k, d_v).detach()
    mean, other = v.mean(0), torch.eye(d_v)[0] == 1
    rows = {"NaN": mean * math.nan, "0": 0 * mean, "the mean of all values": mean}
    for words, row in rows.items():
        yield lesson.state(row, v), words
        yield lesson.state(row.masked_fill(other, 9.0), v), "something else"
    for number in (0.0, math.nan):
        yield lesson.state(mean.masked_fill(other, number), v), "something else"


@equal("value_gradient")
def test_value_gradient(lesson, normal, mask, B, T, D, seed):
    x, may, kept = normal(B, T, D).detach(), mask(T, T), list(range(T))[: 1 + seed % T]
    v = x.clone().requires_grad_()
    (reference,) = torch.autograd.grad(sdpa(x, x, v, may)[:, kept].sum(), v)
    yield lesson.value_gradient(lambda *qkv: sdpa(*qkv, may), x, kept), reference


@equal("entropy", "jacobian_trace")
def test_entropy_and_trace(lesson, normal, lead, n):
    w = normal(*lead, n).softmax(-1)
    one_hot = F.one_hot(w.argmax(-1), n).to(w.dtype)
    yield lesson.entropy(w), torch.special.entr(w).sum(-1)
    yield lesson.entropy(one_hot), 0 * one_hot[..., 0]
    jacobian = torch.diag_embed(w) - w.unsqueeze(-1) * w.unsqueeze(-2)
    yield lesson.jacobian_trace(w), jacobian.diagonal(dim1=-2, dim2=-1).sum(-1)


@equal("score_statistics", d=st.integers(1, 40), scaled=st.booleans())
def test_score_statistics(lesson, d, scaled, n, T_k, seed):
    generator, n, T_k = seeded(seed), n + 1, T_k + 1
    q = torch.randn(n, d, generator=generator, dtype=torch.float64)
    k = torch.randn(n, T_k, d, generator=generator, dtype=torch.float64)
    scores = torch.einsum("nd,nkd->nk", q, k) / (math.sqrt(d) if scaled else 1)
    w = scores.softmax(1)
    reference = w.amax(1), torch.special.entr(w).sum(1), 1 - (w * w).sum(1)
    means = [rows.mean() for rows in reference]
    yield lesson.score_statistics(d, scaled, n, T_k, seed), [scores.var(), *means]


@equal("make_recall_dataset", "make_data")
def test_recall_data(lesson, n, d, T, seed):
    generator, n_items = seeded(seed), T + 3
    names = torch.randn(n, T, d, generator=generator)
    items = torch.rand(n, n_items, generator=generator).argsort(1)[:, :T]
    asked = torch.randint(T, (n,), generator=generator)
    noise = 0.1 * torch.randn(n, d, generator=generator)
    x, y, pair = lesson.make_recall_dataset(n, n_items, seeded(seed), T, d)
    yield pair, asked
    for row, (i, token) in enumerate(zip(asked.tolist(), noise, strict=True)):
        yield y[row], items[row, i]
        yield x[row, :-1], torch.cat([names[row], torch.eye(n_items)[items[row]]], 1)
        yield x[row, -1], torch.cat([names[row, i] + token, torch.zeros(n_items)])
    generator = seeded(seed)
    reference = [lesson.make_recall_dataset(m, 9, generator) for m in (n, T)]
    yield lesson.make_data(seed, 9, n, T), reference


@equal("RecallAttention", "RecallMean", "share_on_asked", network=st.booleans())
def test_recall_models(lesson, normal, module, n, T, D, d, network, seed):
    x, asked = normal(n, T + 1, D), torch.arange(n) % T
    model = module(lesson.RecallAttention(D, 3, d))
    q, k, v = model.W_q(x[:, -1:]), model.W_k(x[:, :-1]), model.W_v(x[:, :-1])
    yield model(x), model.read(sdpa(q, k, v).squeeze(1))
    hits = (q @ k.mT).squeeze(1).argmax(1) == asked
    yield lesson.share_on_asked(model, x, asked), 100 * hits.float().mean()
    model = module(lesson.RecallMean(D, 3, d, network))
    mean = torch.stack([model.pair(x[:, t]) for t in range(T)]).mean(0)
    yield model(x), model.mlp(torch.cat([mean, x[:, -1]], 1))
    yield len(list(model.pair.modules())), 4 if network else 1


@equal("repair", "repair_test")
def test_the_mean_of_pairs_is_right_at_most_once(lesson, module, n, d, seed):
    x, _, asked = lesson.make_recall_dataset(n, 10, seeded(seed))
    model, before = module(lesson.RecallMean(26, 10, d)), x.clone()
    logits, right = lesson.repair_test(model, x, asked)
    yield logits, logits[:1].expand(8, n, 10)  # it cannot tell pairings apart
    yield (right.sum(0) <= 1).all(), True
    double = copy.deepcopy(model).double()
    for shift in range(8):
        items = torch.stack([before[:, (t - shift) % 8, 16:] for t in range(8)], 1)
        new, y = lesson.repair(x, asked, shift)
        yield new[:, :-1], torch.cat([before[:, :-1, :16], items], -1)
        yield (new[:, -1], x), (before[:, -1], before)
        yield y, items[torch.arange(n), asked].argmax(1)
        yield logits[shift], double(new.double()).detach()
        yield right[shift], logits[shift].argmax(1) == y


@equal("outer_product_recall", "erase")
def test_pairs_without_attention(lesson, normal, B, T, d, n):
    x = normal(B, T + 1, d + n)
    names, items = x[:, :-1, :d], x[:, :-1, d:]
    scores = (x[:, -1:, :d] * names).sum(-1, keepdim=True) / T
    yield lesson.outer_product_recall(x, d), (scores * items).sum(1)
    asked, erased = torch.arange(B) % T, x.detach().clone()
    for row, pair in enumerate(asked.tolist()):
        erased[row, pair, d:] = 0
    yield lesson.erase(x.detach(), asked, slice(d, None)), erased


@equal("other_weights", d_v=st.integers(1, 4), n=st.integers(2, 6))
def test_other_weights_have_the_same_output(lesson, normal, d_v, n, seed):
    v, key = normal(d_v + n, d_v).detach().double(), seed % (d_v + n)
    weights = normal(d_v + n).detach().double().softmax(0)
    other = lesson.other_weights(weights, v, key)
    size = 10 * torch.linalg.cond(F.pad(v, (0, 1), value=1.0))  # enlarges rounding
    ours = torch.cat([other @ v, other.sum()[None], other.min()[None]])
    reference = torch.cat([weights @ v, torch.tensor([1.0, 0.0])])
    yield ours / size, reference / size
    yield other[key] < weights[key], True


@equal("share_on_self", examples=10)
def test_share_on_self(lesson, n, T, D, seed):
    generator = seeded(seed)
    x = torch.randn(n, T, D, generator=generator, dtype=torch.float64)
    W_q, W_k = torch.randn(2, n, D, D, generator=generator, dtype=torch.float64)
    scores = torch.einsum("nte,nse->nts", x @ W_q.mT, x @ W_k.mT)
    hits = scores.argmax(-1) == torch.arange(T)
    yield lesson.share_on_self(T, D, n, seed), 100 * hits.float().mean()


@equal("fit")
def test_fit(lesson, normal, module, n, D):
    x, y = normal(n, D).detach(), torch.arange(n) % 3
    ours, loss = module(nn.Linear(D, 3)), nn.CrossEntropyLoss()
    theirs = copy.deepcopy(ours)
    lesson.fit(ours, x, y, epochs=3, lr=0.1)
    train_with_adam(theirs, [0.1] * 3, lambda: loss(theirs(x), y))
    yield ours.state_dict(), theirs.state_dict()
