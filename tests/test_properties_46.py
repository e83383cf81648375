"""Properties of the functions of Lesson 46: heads, positions and the block."""

import math
from unittest.mock import patch

import torch
import torch.nn as nn
from hypothesis import strategies as st

from parity import assert_gradients_equal, gradients, make_input
from strategies import (
    assert_close,
    assert_gradients_hold,
    attention_module,
    dtypes,
    heads,
    holds_for,
    permutation,
    randomised,
    seeds,
    sizes,
    wide_heads,
)

LESSON = ["46"]


def make_layer(H, d_head, FF, seed, dtype=torch.float64):
    layer = nn.TransformerEncoderLayer(H * d_head, H, FF, dropout=0.0, batch_first=True)
    return randomised(layer, seed, dtype)


def make_block(lesson, layer):
    mha, FF = layer.self_attn, layer.linear1.out_features
    block = lesson.EncoderBlock(mha.embed_dim, mha.num_heads, FF)
    block.to(layer.linear1.weight.dtype).load_state_dict(layer.state_dict())
    return block


@holds_for(
    "one_head",
    "attention",
    faults=[
        ("46", "one_head", "h * d_head, (h + 1) * d_head", "h, h + d_head"),
        ("46", "one_head", "mha.embed_dim // mha.num_heads", "mha.num_heads"),
        ("46", "one_head", "return attention(q, k, v)", "return attention(k, q, v)"),
    ],
    size=heads,
    B=sizes,
    T=sizes,
    dtype=dtypes,
    seed=seeds,
)
def test_heads_are_pytorchs_and_add_up(lesson, size, B, T, dtype, seed):
    mha = attention_module(*size, seed, dtype)
    x = make_input(B, T, mha.embed_dim, dtype=dtype, seed=seed)
    reference, weights = mha(x, x, x, average_attn_weights=False)
    total = mha.out_proj.bias
    for h, W_o in enumerate(mha.out_proj.weight.split(size[1], dim=1)):
        output, head_weights = lesson.one_head(x, mha, h)
        assert output.shape == (B, T, size[1])
        assert head_weights.shape == (B, T, T)
        assert_close(head_weights, weights[:, h])
        total = total + output @ W_o.T
    assert_close(total, reference)


# ---- positions -----------------------------------------------------------------


@holds_for(
    "positional_encoding",
    "pe_scalar",
    "pe_table",
    faults=[
        ("46", "positional_encoding", "two_i / D", "two_i / (D + 1)"),
        (
            "46",
            "positional_encoding",
            "(T, D, dtype=torch.float64)\n",
            "(T, D, dtype=torch.float32)\n",
        ),
        (
            "46",
            "positional_encoding",
            "pe[:, 0::2] = torch.sin",
            "pe[:, 0::2] = torch.cos",
        ),
        ("46", "pe_scalar", "column // 2", "column / 2"),
        ("46", "pe_table", "for pos in range(T)", "for pos in range(1, T + 1)"),
    ],
    T=st.integers(1, 60),
    D=st.integers(1, 17),
    place=seeds,
)
def test_positional_encoding_is_the_papers_formula(lesson, T, D, place):
    """In scalars, in the rows before it, and in either format."""
    pe = lesson.positional_encoding(T, D, torch.float64)
    assert pe.shape == (T, D)
    assert_close(lesson.pe_table(T, D), pe)
    pos, column = place % T, place % D
    angle = pos / math.pow(10000.0, (column - column % 2) / D)
    expected = (math.sin, math.cos)[column % 2](angle)
    assert math.isclose(lesson.pe_scalar(pos, column, D), expected, abs_tol=1e-12)
    assert math.isclose(pe[pos, column].item(), expected, abs_tol=1e-12)
    assert torch.equal(lesson.positional_encoding(T + 3, D, torch.float64)[:T], pe)
    assert torch.equal(lesson.positional_encoding(T, D), pe.float())
    assert torch.equal(lesson.positional_encoding(T, D, torch.float32), pe.float())


@holds_for(
    "positional_encoding",
    "shift_matrix",
    "offset_product",
    faults=[
        ("46", "positional_encoding", "two_i / D", "two_i / (D - 1)"),
        (
            "46",
            "shift_matrix",
            "R[2 * i + 1, 2 * i + 1] = -sin, cos",
            "R[2 * i + 1, 2 * i + 1] = sin, cos",
        ),
        ("46", "shift_matrix", "range(D // 2)", "range(min(D // 2, 4))"),
        ("46", "offset_product", "2 * i / D", "i / D"),
    ],
    half=st.integers(1, 8),
    k=st.integers(0, 200),
    more=st.integers(-60, 60),
    T=st.integers(1, 40),
)
def test_positions_shift_by_rotations(lesson, half, k, more, T):
    """PE(pos + k) = R_k PE(pos), with |PE|^2 = D/2; shifts add up."""
    D = 2 * half
    pe = lesson.positional_encoding(T + k, D, torch.float64)
    R = lesson.shift_matrix(k, D)
    assert_close(pe[:T] @ R.T, pe[k:])
    assert_close(R @ R.T, torch.eye(D).double())
    assert_close(lesson.shift_matrix(more, D) @ R, lesson.shift_matrix(k + more, D))
    assert_close(lesson.shift_matrix(-k, D), R.T)
    assert_close(pe.square().sum(dim=1), torch.full((T + k,), D / 2).double())
    products = (pe[:T] * pe[k:]).sum(dim=1)
    expected = torch.tensor(lesson.offset_product(k, D), dtype=torch.float64)
    assert_close(products, expected.expand(T))
    assert math.isclose(lesson.offset_product(0, D), half)
    assert lesson.offset_product(-k, D) == lesson.offset_product(k, D)


# ---- the block -------------------------------------------------------------------


@holds_for(
    "others_move",
    "train_eval_gap",
    faults=[
        ("46", "others_move", "[1:]", "[:1]"),
        ("46", "others_move", "tokens.clone()", "tokens"),
        ("46", "train_eval_gap", "norm.eval()", "norm.train()"),
    ],
    N=st.integers(2, 6),
    D=st.integers(2, 6),
    seed=seeds,
)
def test_what_moves_under_a_norm(lesson, N, D, seed):
    """By a known amount where the tokens' mean is added, or dropped in eval."""
    tokens = make_input(N, D, seed=seed)
    before = tokens.clone()
    layer = randomised(nn.LayerNorm(D), seed)
    assert lesson.others_move(layer, tokens) == 0
    assert lesson.train_eval_gap(layer, tokens) == 0

    class AddMean(nn.Module):
        def forward(self, x):
            return x + x.mean(dim=0) if self.training else x

    change = ((2 * tokens[0] + 1) / N).abs().max().item()
    assert math.isclose(lesson.others_move(AddMean(), tokens), change, rel_tol=1e-9)
    gap = tokens.mean(dim=0).abs().max().item()
    assert math.isclose(lesson.train_eval_gap(AddMean(), tokens), gap, rel_tol=1e-9)
    assert torch.equal(tokens, before)


@holds_for(
    "EncoderBlock",
    "multihead_attention",
    "layer_norm",
    "feed_forward",
    faults=[
        (
            "46",
            "EncoderBlock",
            "x = layer_norm(x, self.norm1)",
            "x = layer_norm(x, self.norm2)",
        ),
        ("46", "EncoderBlock", "x = x + feed_forward(x,", "x = feed_forward(x,"),
        (
            "46",
            "EncoderBlock",
            "multihead_attention(x, self",
            "multihead_attention(layer_norm(x, self.norm1), self",
        ),
    ],
    size=wide_heads,
    FF=sizes,
    L=st.integers(1, 2),
    B=st.integers(1, 3),
    T=sizes,
    dtype=dtypes,
    seed=seeds,
)
def test_a_stack_of_blocks_is_pytorchs_encoder(lesson, size, FF, L, B, T, dtype, seed):
    layers = [make_layer(*size, FF, seed + i, dtype) for i in range(L)]
    blocks = nn.Sequential(*(make_block(lesson, layer) for layer in layers))
    theirs = nn.Sequential(*layers)
    x = make_input(B, T, size[0] * size[1], dtype=dtype, seed=seed).requires_grad_()
    ours, reference = blocks(x), theirs(x)
    assert_close(ours, reference)
    names = [name for name, _ in blocks.named_parameters()]
    assert_gradients_equal(
        gradients(ours, x, *blocks.parameters()),
        gradients(reference, x, *map(theirs.get_parameter, names)),
    )


@holds_for(
    "EncoderBlock",
    faults=[
        (
            "46",
            "multihead_attention",
            "(q, k, v, mask)",
            "(q, k, v, torch.ones(T, T).tril().bool())",
        ),
        (
            "46",
            "layer_norm",
            "x.mean(dim=-1, keepdim=True)",
            "x.mean((0, -1), keepdim=True)",
        ),
        ("46", "feed_forward", "return hidden", "return hidden.flip(0)"),
    ],
    size=wide_heads,
    B=st.integers(2, 4),
    T=st.integers(2, 6),
    seed=seeds,
)
def test_a_block_keeps_order_of_tokens_and_rows_apart(lesson, size, B, T, seed):
    block = make_block(lesson, make_layer(*size, 5, seed))
    x, order = make_input(B, T, size[0] * size[1], seed=seed), permutation(T, seed)
    output = block(x)
    assert_close(block(x[:, order]), output[:, order])
    assert torch.equal(block(torch.cat([x[:1], 3 * x[1:] + 1]))[0], output[0])
    assert_close(block(x[:1])[0], output[0])


@holds_for(
    "EncoderBlock",
    "feed_forward",
    "one_head",
    examples=3,
    faults=[
        ("46", "EncoderBlock", "x = x + feed", "x = x.detach() + feed"),
        ("46", "feed_forward", "F.relu(x @", "F.relu(x.detach() @"),
        ("46", "one_head", "k = x @", "k = x.detach() @"),
    ],
    H=st.integers(1, 2),
    T=st.integers(2, 4),
    seed=seeds,
)
def test_gradients_of_a_block(lesson, H, T, seed):
    block = make_block(lesson, make_layer(H, 4, 3, seed))
    mha, x = block.self_attn, make_input(1, T, 4 * H, seed=seed)
    assert_gradients_hold(lambda *_: block(x), x, *block.parameters())
    assert_gradients_hold(lambda x: lesson.one_head(x, mha, H - 1)[0], x)
    assert_gradients_hold(
        lambda x: lesson.feed_forward(x, block.linear1, block.linear2), x
    )


# ---- the experiment ----------------------------------------------------------------


@holds_for(
    "make_order_dataset",
    faults=[
        ("46", "make_order_dataset", "pos_a < pos_b", "pos_a > pos_b"),
        ("46", "make_order_dataset", "order[:, 1]", "order[:, 0]"),
        (
            "46",
            "make_order_dataset",
            "torch.rand(n, T, generator=generator)",
            "torch.rand(n, T)",
        ),
        ("46", "make_order_dataset", "noise * torch", "0.1 * torch"),
    ],
    n=st.integers(1, 12),
    T=st.integers(2, 7),
    D=st.integers(2, 6),
    noise=st.sampled_from([0.0, 0.1, 1.0]),
    seed=seeds,
)
def test_order_data_hold_a_and_b_once(lesson, n, T, D, noise, seed):
    """Where the noise is taken away again, which does not depend on A and B."""

    def draw(A, B):
        generator = torch.Generator().manual_seed(seed)
        return lesson.make_order_dataset(n, A, B, T, generator, noise)

    A, B = torch.eye(D)[:2]
    x, y = draw(A, B)
    assert x.shape == (n, T, D) and y.shape == (n,)
    background, _ = draw(0 * A, 0 * B)
    generator = torch.Generator().manual_seed(seed)
    assert torch.equal(background, noise * torch.randn(n, T, D, generator=generator))
    added = (x - background).round()
    assert torch.equal(added.sum(dim=1), (A + B).expand(n, D))
    first = added[:, :, 0].argmax(dim=1) < added[:, :, 1].argmax(dim=1)
    assert torch.equal(first.float(), y)
    assert (added.sum(dim=-1).amax(dim=1) == 1).all()  # at different places
    assert all(torch.equal(a, b) for a, b in zip((x, y), draw(A, B)))


@holds_for(
    "make_data",
    "make_order_dataset",
    lessons=LESSON,
    faults=[
        ("46", "make_data", "(n_test, A, B,", "(n_test, B, A,"),
        ("46", "make_data", "manual_seed(seed)", "manual_seed(0)"),
    ],
    n=st.tuples(sizes, sizes),
    T=st.integers(2, 7),
    D=sizes,
    seed=seeds,
)
def test_data_are_two_draws_from_one_generator(lesson, n, T, D, seed):
    data = lesson.make_data(seed, D, T, *n)
    generator = torch.Generator().manual_seed(seed)
    A, B = torch.randn(2, D, generator=generator)
    for ours, count in zip(data, n, strict=True):
        reference = lesson.make_order_dataset(count, A, B, T, generator)
        assert all(torch.equal(a, b) for a, b in zip(ours, reference, strict=True))
    assert not (data[0][0][:, None] == data[1][0]).flatten(2).all(dim=-1).any()


@holds_for(
    "TinyAttnClassifier",
    "positional_encoding",
    "causal_mask",
    "multihead_attention",
    "TokenMLPClassifier",
    examples=60,
    faults=[
        ("46", "TinyAttnClassifier", "x = x + self.pe", "x = x * self.pe"),
        ("46", "TinyAttnClassifier", "self.mha, self.mask", "self.mha"),
        ("46", "TinyAttnClassifier", "x.mean(dim=1)", "x.sum(dim=1)"),
        (
            "46",
            "TokenMLPClassifier",
            "self.token_mlp(x + self.pe)",
            "self.token_mlp(x) + self.pe",
        ),
        ("46", "causal_mask", "tril()", "triu()"),
    ],
    size=heads,
    B=sizes,
    T=sizes,
    use_pos=st.booleans(),
    causal=st.booleans(),
    seed=seeds,
)
def test_the_classifiers_are_what_they_say(lesson, size, B, T, use_pos, causal, seed):
    """From PyTorch's attention; without positions and mask in any order."""
    D, H = size[0] * size[1], size[0]
    model = lesson.TinyAttnClassifier(use_pos, D, H, T, causal)
    randomised(model, seed)
    x = make_input(B, T, D, seed=seed)
    pe = lesson.positional_encoding(T, D).double()
    mask = torch.ones(T, T).triu(1).bool() if causal else None  # True: ignore
    coded = x + pe if use_pos else x
    attended, _ = model.mha(coded, coded, coded, attn_mask=mask)
    assert_close(model(x), model.mlp(attended.mean(dim=1)).squeeze(-1))
    if not use_pos and not causal:
        assert_close(model(x[:, permutation(T, seed)]), model(x))
    token_mlp = randomised(lesson.TokenMLPClassifier(D, T), seed)
    hidden = token_mlp.token_mlp((x + pe).flatten(0, 1)).view(B, T, D)
    expected = token_mlp.mlp(hidden.sum(dim=1) / T).squeeze(-1)
    assert_close(token_mlp(x), expected)
    other = torch.cat([x[:1], 3 * x[1:] + 1])
    for classifier in (model, token_mlp):
        assert torch.equal(classifier(other)[0], classifier(x)[0])


@holds_for(
    "TinyAttnClassifier",
    "TokenMLPClassifier",
    examples=3,
    faults=[
        ("46", "TinyAttnClassifier", "x.mean(dim=1)", "x.detach().mean(dim=1)"),
        ("46", "TokenMLPClassifier", "x.mean(dim=1)", "x.detach().mean(dim=1)"),
    ],
    causal=st.booleans(),
    seed=seeds,
)
def test_gradients_of_the_classifiers(lesson, causal, seed):
    models = [
        lesson.TinyAttnClassifier(True, D=4, H=2, T=3, causal=causal),
        lesson.TokenMLPClassifier(D=4, T=3),
    ]
    x = make_input(2, 3, 4, seed=seed)
    for model in models:
        randomised(model, seed)
        assert_gradients_hold(lambda *_: model(x), x, *model.parameters())


@holds_for(
    "mirror_test",
    "TinyAttnClassifier",
    examples=10,
    faults=[
        ("46", "mirror_test", "x.flip(1)", "x.flip(0)"),
        ("46", "mirror_test", "(y < 0.5)", "(y > 0.5)"),
        ("46", "mirror_test", "right += ((logits", "right = ((logits"),
    ],
    n=sizes,
    T=st.integers(2, 6),
    runs=st.integers(1, 3),
    use_pos=st.booleans(),
    seed=seeds,
)
def test_of_a_sequence_and_its_mirror_image_one_is_right(
    lesson, n, T, runs, use_pos, seed
):
    """Without positions exactly one, whatever the weights."""
    A, B = make_input(2, 4, dtype=torch.float32, seed=seed)
    models, datasets = [], []
    for run in range(runs):
        generator = torch.Generator().manual_seed(seed + run)
        data = lesson.make_order_dataset(n, A, B, T, generator)
        model = lesson.TinyAttnClassifier(use_pos, D=4, H=2, T=T)
        models.append((randomised(model, seed + run, torch.float32), 0, 0))
        datasets.append((None, data))
    # the function reads the lesson's data sets
    names = lesson.mirror_test.__globals__
    with patch.dict(names, datasets=datasets), torch.no_grad():
        logits, mirrored, right = lesson.mirror_test(models)
        assert logits.shape == mirrored.shape == (runs * n,)
        assert logits.dtype == torch.float64
        if not use_pos:
            assert_close(mirrored, logits)
            assert right == runs * n
        expected, again = [], []
        for (model, *_), (_, (x, _)) in zip(models, datasets):
            model = model.double()
            expected += [model(row.unsqueeze(0).double()) for row in x]
            turned = [row[torch.arange(T - 1, -1, -1)].unsqueeze(0) for row in x]
            again += [model(row.double()) for row in turned]
    assert_close(logits, torch.cat(expected))
    assert_close(mirrored, torch.cat(again))
    y = torch.cat([y for _, (_, y) in datasets]) == 1
    assert right == ((logits > 0) == y).sum() + ((mirrored > 0) != y).sum()


@holds_for(
    "accuracy",
    lessons=LESSON,
    faults=[
        ("46", "accuracy", "(model(x) > 0)", "(model(x) > 0.5)"),
        ("46", "accuracy", "100 *", "1 *"),
    ],
    n=st.integers(1, 20),
    seed=seeds,
)
def test_accuracy_counts(lesson, n, seed):
    x = make_input(n, seed=seed)
    y = (make_input(n, seed=seed + 1) > 0).double()
    right = sum((a > 0) == (b == 1) for a, b in zip(x.tolist(), y.tolist()))
    acc = lesson.accuracy(nn.Identity(), x, y)
    assert math.isclose(acc, 100 * right / n, rel_tol=1e-6)
