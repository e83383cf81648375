"""Lesson 46: what its checks need to know, and its functions held to PyTorch's."""

import math
from unittest.mock import patch

import torch
import torch.nn as nn
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
@equal("one_head")
def test_one_head(lesson, normal, module, B, T, H, d_head):
    D, x = H * d_head, normal(B, T, H * d_head)
    mha = module(nn.MultiheadAttention(D, H, batch_first=True))
    outputs, weights = zip(*(lesson.one_head(x, mha, h) for h in range(H)), strict=True)
    ours = mha.out_proj(torch.cat(outputs, -1)), torch.stack(weights, 1)
    yield ours, mha(x, x, x, average_attn_weights=False)


def code(pos, column, D):
    """Return one number of a code (Vaswani et al., 2017, section 3.5)."""
    angle = pos / 10000 ** ((column - column % 2) / D)
    return math.cos(angle) if column % 2 else math.sin(angle)


@equal("positional_encoding", "pe_scalar", "pe_table", D=st.integers(1, 17))
def test_positional_encoding(lesson, n, T, D):
    T = 9 * n + T
    table = [[code(pos, column, D) for column in range(D)] for pos in range(T)]
    table = torch.tensor(table, dtype=torch.float64)
    yield lesson.positional_encoding(T, D, torch.float64), table
    yield lesson.positional_encoding(T, D), table.float()
    yield lesson.pe_table(T, D), table
    yield lesson.pe_scalar(T - 1, D - 1, D), table[-1, -1]


@equal("shift_matrix", "offset_product", k=st.integers(-99, 99))
def test_shifts(lesson, n, T, k):
    codes = lesson.positional_encoding(T + 199, 2 * n, torch.float64)
    here, there = codes[99 : 99 + T], codes[99 + k : 99 + k + T]
    yield here @ lesson.shift_matrix(k, 2 * n).T, there
    yield lesson.offset_product(k, 2 * n), (here * there).sum(1)[0]


class AddMean(nn.Module):
    def forward(self, x):
        return x + x.mean(0) if self.training else x


@equal("others_move", "train_eval_gap")
def test_what_moves(lesson, normal, n, D):
    tokens = normal(n + 1, D).detach()
    before, change = tokens.clone(), (2 * tokens[0] + 1) / (n + 1)
    yield lesson.others_move(AddMean(), tokens), change.abs().max()
    yield lesson.train_eval_gap(AddMean().eval(), tokens), tokens.mean(0).abs().max()
    yield tokens, before


@equal("EncoderBlock")
def test_encoder_block(lesson, normal, module, B, T, H, d_wide, FF):
    D, x = H * d_wide, normal(B, T, H * d_wide)
    layer = nn.TransformerEncoderLayer(D, H, FF, dropout=0.0, batch_first=True)
    block = share_parameters(lesson.EncoderBlock(D, H, FF), module(layer))
    yield by_hand(block)(x), layer(x)


@equal("make_order_dataset", "make_data")
def test_order_data(lesson, n, B, T, D, noise, seed):
    generator, two = seeded(seed), torch.eye(D + 1)[:2]
    x = noise * torch.randn(n, T + 1, D + 1, generator=generator)
    orders = torch.rand(n, T + 1, generator=generator).argsort(1).tolist()
    for row, order in zip(x, orders, strict=True):
        row[order[0]] += two[0]
        row[order[1]] += two[1]
    y = torch.tensor([float(order[0] < order[1]) for order in orders])
    ours = lesson.make_order_dataset(n, *two, T + 1, seeded(seed), noise)
    yield ours, (x, y)
    generator = seeded(seed)
    two = torch.randn(2, D, generator=generator)
    draws = [lesson.make_order_dataset(m, *two, T + 1, generator, 0.1) for m in (n, B)]
    yield lesson.make_data(seed, D, T + 1, n, B), draws
    yield [x.shape for x, _ in lesson.make_data(seed)], [(400, 8, 16), (2000, 8, 16)]


@equal("TinyAttnClassifier", "TokenMLPClassifier")
def test_classifiers(lesson, normal, module, B, T, H, d_head, use_pos, causal, dtype):
    D, x, later = H * d_head, normal(B, T, H * d_head), torch.ones(T, T).triu(1).bool()
    model = module(lesson.TinyAttnClassifier(use_pos, D, H, T, causal))
    coded = x + lesson.positional_encoding(T, D).to(dtype)
    y, hidden = coded if use_pos else x, later if causal else None
    mixed, _ = model.mha(y, y, y, attn_mask=hidden)
    read = share_parameters(mlp(D, 16, 1), model.mlp)
    yield model(x), read(mixed.mean(1)).squeeze(-1)
    yield (model.mha.num_heads, len(model.state_dict())), (H, 8)  # no constant is saved
    default = lesson.TinyAttnClassifier(True)
    yield (default.pe.shape, default.mask is None), ((8, 16), True)
    model = module(lesson.TokenMLPClassifier(D, T))
    token_mlp = share_parameters(mlp(D, 32, D), model.token_mlp)
    read = share_parameters(mlp(D, 16, 1), model.mlp)
    yield model(x), read(token_mlp(coded).mean(1)).squeeze(-1)
    yield len(model.state_dict()), 8


@equal("mirror_test")
def test_mirror(lesson, module, dtype, n, L, T, seed):
    generator, two = seeded(seed), torch.eye(4)[:2]
    data = [lesson.make_order_dataset(n, *two, T + 1, generator) for _ in range(L)]
    models = [module(lesson.TinyAttnClassifier(True, 4, 2, T + 1)) for _ in data]
    datasets = [(None, test) for test in data]  # a global of the lesson
    with patch.dict(lesson.mirror_test.__globals__, datasets=datasets):
        *ours, right = lesson.mirror_test([(model, 0, 0) for model in models])
    yield all(p.dtype == dtype for m in models for p in m.parameters()), True
    both = [(m.double(), x.double()) for m, (x, _) in zip(models, data, strict=True)]
    logits = torch.cat([model(x) for model, x in both]).detach()
    mirrored = torch.cat([model(x.flip(1)) for model, x in both]).detach()
    yield ours, [logits, mirrored]
    y = torch.cat([y for _, y in data]) == 1
    yield right, ((logits > 0) == y).sum() + ((mirrored > 0) == ~y).sum()


@equal("fit", "train_eval", examples=5)
def test_training(lesson, n, use_pos, causal, seed):
    data = (x, y), test = lesson.make_data(seed, 12, 5, n, 9)
    theirs = lesson.TinyAttnClassifier(use_pos, 12, T=5, causal=causal)  # from `seed`
    loss = nn.BCEWithLogitsLoss()
    train_with_adam(theirs, [0.02] * 3, lambda: loss(theirs(x), y))
    options = [3, 0.02, True] if causal else [3, 0.02]
    ours, *accuracies = lesson.train_eval(use_pos, seed, data, *options)
    yield ours.state_dict(), theirs.state_dict()
    yield accuracies, [lesson.accuracy(theirs, x, y), lesson.accuracy(theirs, *test)]
