"""Lesson 46: what its checks need to know, and its functions held to PyTorch's."""

import copy
import math
from unittest.mock import patch

import torch
import torch.nn as nn
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


@equal("one_head")
def test_one_head(lesson, normal, module, B, T, H, d_head):
    x, D = normal(B, T, H * d_head), H * d_head
    mha = module(nn.MultiheadAttention(D, H, batch_first=True))
    outputs, weights = zip(*(lesson.one_head(x, mha, h) for h in range(H)), strict=True)
    ours, reference = mha(x, x, x, average_attn_weights=False)
    yield mha.out_proj(torch.cat(outputs, dim=-1)), ours
    yield torch.stack(weights, dim=1), reference


positional = ["positional_encoding", "pe_scalar", "pe_table"]


@equal(*positional, T=st.integers(1, 60), D=st.integers(1, 17))
def test_positional_encoding(lesson, T, D):
    def code(pos, column):  # Vaswani et al., 2017, section 3.5
        angle = pos / 10000 ** ((column - column % 2) / D)
        return math.cos(angle) if column % 2 else math.sin(angle)

    table = [[code(pos, column) for column in range(D)] for pos in range(T)]
    table = torch.tensor(table, dtype=torch.float64)
    yield lesson.positional_encoding(T, D, torch.float64), table
    yield lesson.positional_encoding(T, D), table.float()
    yield lesson.pe_table(T, D), table
    yield lesson.pe_scalar(T - 1, D - 1, D), table[-1, -1]


shifts = {"half": st.integers(1, 8), "k": st.integers(-99, 99)}


@equal("shift_matrix", "offset_product", **shifts)
def test_shifts(lesson, half, k, T):
    codes = lesson.positional_encoding(T + 199, 2 * half, torch.float64)
    here, there = codes[99 : 99 + T], codes[99 + k : 99 + k + T]
    yield here @ lesson.shift_matrix(k, 2 * half).T, there
    yield lesson.offset_product(k, 2 * half), (here * there).sum(1)[0]


class AddMean(nn.Module):
    def forward(self, x):
        return x + x.mean(0) if self.training else x


@equal("others_move", "train_eval_gap", n=st.integers(2, 6))
def test_what_moves(lesson, normal, n, D):
    tokens = normal(n, D).detach()
    before, change = tokens.clone(), (2 * tokens[0] + 1) / n
    yield lesson.others_move(AddMean(), tokens), change.abs().max()
    yield lesson.train_eval_gap(AddMean(), tokens), tokens.mean(0).abs().max()
    yield tokens, before


@equal("EncoderBlock", d_head=st.integers(4, 5))
def test_encoder_block(lesson, normal, module, B, T, H, d_head, FF):
    D, x = H * d_head, normal(B, T, H * d_head)
    layer = nn.TransformerEncoderLayer(D, H, FF, dropout=0.0, batch_first=True)
    block = share_parameters(lesson.EncoderBlock(D, H, FF), module(layer))
    with without_forward_of(nn.MultiheadAttention, nn.LayerNorm, nn.Linear):
        ours = block(x)
    yield ours, layer(x)


noises = st.sampled_from([0.0, 0.1, 1.0])


@equal("make_order_dataset", T=st.integers(2, 7), D=st.integers(2, 6), noise=noises)
def test_order_dataset(lesson, n, T, D, noise, seed):
    def draw(A, B):
        return lesson.make_order_dataset(n, A, B, T, seeded(seed), noise)

    A, B = torch.eye(D)[:2]
    (x, y), (background, _) = draw(A, B), draw(0 * A, 0 * B)
    yield background, noise * torch.randn(n, T, D, generator=seeded(seed))
    added = (x - background).round()
    yield added.sum(1), (A + B).expand(n, D)
    yield added.sum(-1).amax(1), torch.ones(n)  # at different places
    yield y, (added[..., 0].argmax(1) < added[..., 1].argmax(1)).float()


@equal("make_data", T=st.integers(2, 7))
def test_data(lesson, n, B, T, D, seed):
    generator = seeded(seed)
    two = torch.randn(2, D, generator=generator)
    for ours, count in zip(lesson.make_data(seed, D, T, n, B), (n, B), strict=True):
        reference = lesson.make_order_dataset(count, *two, T, generator)
        yield from zip(ours, reference, strict=True)


flags = {"positions": st.booleans(), "causal": st.booleans()}


@equal("TinyAttnClassifier", "TokenMLPClassifier", **flags)
def test_classifiers(lesson, normal, module, B, T, H, d_head, positions, causal, dtype):
    D, x = H * d_head, normal(B, T, H * d_head)
    plain = module(lesson.TokenMLPClassifier(D, T))
    ours = module(lesson.TinyAttnClassifier(positions, D, H, T, causal))
    coded = x + lesson.positional_encoding(T, D).to(dtype)
    y, hidden = coded if positions else x, torch.ones(T, T).triu(1).bool()
    mixed, _ = ours.mha(y, y, y, attn_mask=hidden if causal else None)
    yield ours.mha.num_heads, H
    yield ours(x), ours.mlp(mixed.mean(1)).squeeze(-1)
    yield plain(x), plain.mlp(plain.token_mlp(coded).mean(1)).squeeze(-1)
    for model in (ours, plain):  # no constant is saved
        yield len(model.state_dict()), len(list(model.parameters()))


@equal("mirror_test", examples=10, T=st.integers(2, 6), B=st.integers(1, 3))
def test_mirror(lesson, module, n, B, T, seed):
    two, generator = torch.eye(4)[:2], seeded(seed)
    data = [lesson.make_order_dataset(n, *two, T, generator) for _ in range(B)]
    models = [module(lesson.TinyAttnClassifier(True, 4, 2, T)).float() for _ in data]
    datasets = [(None, test) for test in data]  # a global of the lesson
    with patch.dict(lesson.mirror_test.__globals__, datasets=datasets), torch.no_grad():
        *ours, right = lesson.mirror_test([(model, 0, 0) for model in models])
        inputs = [x.double() for x, _ in data]
        models = [model.double() for model in models]
        yield ours[0], torch.cat([m(x) for m, x in zip(models, inputs)])
        yield ours[1], torch.cat([m(x.flip(1)) for m, x in zip(models, inputs)])
    y = torch.cat([y for _, y in data]) == 1
    yield right, ((ours[0] > 0) == y).sum() + ((ours[1] > 0) == ~y).sum()


@equal("fit")
def test_fit(lesson, normal, module, n, D):
    x, y = normal(n, D).detach(), torch.arange(n).to(normal(1).dtype) % 2
    ours = module(nn.Sequential(nn.Linear(D, 1), nn.Flatten(0)))
    theirs = copy.deepcopy(ours)
    lesson.fit(ours, x, y, epochs=3, lr=0.1)
    loss = nn.BCEWithLogitsLoss()
    train_with_adam(theirs, [0.1] * 3, lambda: loss(theirs(x), y))
    yield ours(x).detach(), theirs(x).detach()
