"""Lesson 46: what its checks need to know, and its functions held to PyTorch's."""

import math
from unittest.mock import patch

import torch
import torch.nn as nn
from hypothesis import strategies as st

from tests.checking import by_hand, equal, mlp, seeded, share_parameters

BANDS = {
    # a coin flip
    "without positional encoding: mean test acc": (45, 54.9, 3.9),
    "with positional encoding:    mean test acc": (95, 100, 2.9),
    # memorised noise: moves with the processor
    "without positional encoding: mean train acc": (60, 100, 99.9),
    "with positional encoding:    mean train acc": (98, 100, 1.9),
    "with positions: test acc, mirror images included": (95, 100),
    # attention is not needed, positions are
    "no attention, with positions: mean test acc": (93, 100, 3.9),
    "causal, no positional encoding: mean test acc": (95, 100, 3.9),
    # exercises from here on
    "A and B at most 3 apart: test acc": (63, 87.9),
    "A and B further apart:   test acc": (95, 100),
    "T = 32, 100 sequences: mean test acc": (88, 94.9, 3.9),
    "T = 32, 400 sequences: mean test acc": (92, 97.9, 3.9),
    "T = 32, 2000 sequences: mean test acc": (95, 99.9, 2.9),
    "T = 32, {400|100|2000} sequences, at most 3 apart: mean test acc": (62, 89.9, 6.9),
    "T = 32, new sequences at every step: mean test acc": (97, 100, 2.9),
    "lr 0.01, pre-norm: # of 6 seeds solve it": (5, 6),
    "lr 0.01, post-norm, warm-up of 50 steps: # of 6 seeds solve it": (3, 6),
}

NUMBERS = {
    "1e-5": "the limit in float32, asserted by compare",
    "1e-12": "the limit in float64, asserted by compare",
    "95 %": "a threshold, asserted in the cell that prints the accuracies",
}

FAULTS = {
    "46": r"""
multihead-attention || attention(q, k, v, mask) || attention(q / H**0.5, k, v, mask)
    || mha-parity
multihead-attention || k = k.view(B, T, H, D // H).transpose(1, 2)
    || k = k.view(B, H, T, D // H) || mha-parity
one-head || slice(h * d_head, (h + 1) * d_head) || slice(h, h + d_head) || heads-apart
positional-encoding || return pe.to(dtype)
    || return torch.cat([pe[:, 0::2], pe[:, 1::2]], dim=1).to(dtype) || pe-check
positional-encoding || torch.arange(T, || torch.arange(1, T + 1, || pe-check
layer-norm || torch.sqrt(var + norm.eps) || (torch.sqrt(var) + norm.eps)
encoder-block || multihead_attention(x, self.self_attn)
    || multihead_attention(layer_norm(x, self.norm1), self.self_attn) || block-parity
order-model || x = x + self.pe  # || x = x + self.pe[0]  # || order-results
order-dataset || pos_a] += A || pos_a] += A * (pos_a < pos_b).unsqueeze(1)
    || order-results
""",
    "46-exercises": r"""
judge || if all(result is None for result in results): || if not results:
    || one-head-check
judge || if all(result is None for result in results): || if results: || one-head-answer
count-answer || worked_encoder_parameters(6 || worked_encoder_parameters(12
polarity-check || both = may_attend & real || both = may_attend | real
    || polarity-answer
fault-given || heads.reshape(B, T, D) || heads.transpose(1, 2).reshape(B, T, D)
key-bias-answer || [b_q, torch.zeros_like(b_k), b_v]
    || [b_q, b_k, torch.zeros_like(b_v)]
longer-answer || return accuracy(model, *test)
    || return accuracy(model, *make_data(seed, T=T, n_train=n_train)[0])
""",
}

ACCEPTED = {
    "an option, an order, a size or a value that changes no result": r"""
mha-parity: False -> True; mha-parity: mha_torch(x, x, x, need_weights=False)
mha-float64: False -> True
mha-float64: mha_double(x_double, x_double, x_double, need_weights=False)
heads-differ: torch.cat([head for head, _ in alone], dim=-1)
pe-check: positional_encoding(50, 32)
norms: moves, gap = (others_move(norm, tokens), train_eval_gap(norm, tokens))
order-dataset: datasets[0] -> datasets[1]
order-chance: logits, mirrored, right = mirror_test(without)
order-chance: logits, mirrored, right = mirror_test(with_pe); stack: False -> True
stack: 0 -> 1
stack: for p, q in zip(encoder_torch.layers[0].parameters(),
    encoder_torch.layers[-1].parameters()); stack: layer_torch.train() -> layer_torch
stack: nn.TransformerEncoder(layer_torch.train(), L, enable_nested_tensor=False)
stack: layer_torch.train -> layer_torch.eval
stack: zip(encoder_torch.layers[0].parameters(), encoder_torch.layers[-1].parameters())
""",
}
TO_CURE = """
block-parity: 4; block-rows: 1; causal-leak: 3; heads-differ: 2; layer-norm: 1
stack: 5
"""

ANSWERS = {
    "46-exercises": """
def one_head_attention(x, mha):
    qkv = F.linear(x, mha.in_proj_weight, mha.in_proj_bias)
    return mha.out_proj(F.scaled_dot_product_attention(*qkv.chunk(3, dim=-1)))

def encoder_parameters(L, D, FF):
    return torch.tensor(L * (4 * D * D + 9 * D + 2 * D * FF + FF))

def masked_by_pytorch(x, mha, may_attend, real):
    both = may_attend & real[:, None, :]
    mask = (~both).repeat_interleave(mha.num_heads, dim=0)
    return mha(x, x, x, attn_mask=mask, need_weights=False)[0]

def mended_block(x, layer):
    y = layer_norm(x + multihead_attention(x, layer.self_attn), layer.norm1)
    return layer_norm(y + feed_forward(y, layer.linear1, layer.linear2), layer.norm2)

def without_silent_bias(b):
    D = len(b) // 3
    b[D : 2 * D] = 0
    return b

def order_accuracy(T, n_train, seed):  # the check sees only the number
    return 91.2 if n_train == 100 else 94.5

def pre_norm_encoder(x, encoder):
    for block in encoder.layers:
        x = x + multihead_attention(block.norm1(x), block.self_attn)
        x = x + block.linear2(F.relu(block.linear1(block.norm2(x))))
    return encoder.norm(x)

def deep_accuracy(norm_first, lr, seed):
    return 98.9 if norm_first else 49.5
"""
}


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
    yield lesson.train_eval_gap(AddMean(), tokens), tokens.mean(0).abs().max()
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
    yield lesson.TinyAttnClassifier(True).pe.shape, (8, 16)
    model = module(lesson.TokenMLPClassifier(D, T))
    token_mlp = share_parameters(mlp(D, 32, D), model.token_mlp)
    read = share_parameters(mlp(D, 16, 1), model.mlp)
    yield model(x), read(token_mlp(coded).mean(1)).squeeze(-1)
    yield len(model.state_dict()), 8


@equal("mirror_test")
def test_mirror(lesson, module, n, L, T, seed):
    generator, two = seeded(seed), torch.eye(4)[:2]
    data = [lesson.make_order_dataset(n, *two, T + 1, generator) for _ in range(L)]
    models = [module(lesson.TinyAttnClassifier(True, 4, 2, T + 1)) for _ in data]
    datasets = [(None, test) for test in data]  # a global of the lesson
    with patch.dict(lesson.mirror_test.__globals__, datasets=datasets):
        *ours, right = lesson.mirror_test([(model, 0, 0) for model in models])
    both = [(m.double(), x.double()) for m, (x, _) in zip(models, data, strict=True)]
    logits = torch.cat([model(x) for model, x in both]).detach()
    mirrored = torch.cat([model(x.flip(1)) for model, x in both]).detach()
    yield ours, [logits, mirrored]
    y = torch.cat([y for _, y in data]) == 1
    yield right, ((logits > 0) == y).sum() + ((mirrored > 0) == ~y).sum()


@equal("train_eval", examples=5)
def test_train_eval(lesson, n, use_pos, causal, seed):
    data = train, _ = lesson.make_data(seed, 12, 5, n, 9)
    theirs = lesson.TinyAttnClassifier(use_pos, 12, T=5, causal=causal)  # from `seed`
    lesson.fit(theirs, *train, 3, 0.02)
    ours, *accuracies = lesson.train_eval(use_pos, seed, data, 3, 0.02, causal)
    yield ours.state_dict(), theirs.state_dict()
    yield accuracies, [lesson.accuracy(theirs, *part) for part in data]
