"""The conventions table of notation.md: each row is so, of ours and of PyTorch.

One test a row, named after its first cell, in the order of the table, so that
`pytest -k conventions` reads as the table does. "Ours" are the functions of
the lessons. The numbers are such that another convention gives another result,
which each test shows too: a row that any convention would pass holds nothing.

Where a test holds what this version of torch happens to do, and no promise of
its documentation, its docstring says "version-dependent".
"""

import ast
import copy
import inspect
import itertools
import math
import re
from pathlib import Path

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from check_notebooks import ROOT
from lesson_code import LESSON_FILES, load_lesson
from parity import assert_equal, gradients, make_input

lesson_37, lesson_45, lesson_46, lesson_47 = map(load_lesson, ("37", "45", "46", "47"))

# no two of them equal: an axis taken for another shows
B, T, D, H, FF = 2, 5, 12, 4, 20
D_HEAD = D // H
EMPTY = float("-inf")


def assert_differs(a, b, by=1e-2):
    """Another convention gives another result, far beyond rounding."""
    assert (a - b).abs().max() > by


def make_attention(heads=H, seed=1, **options):
    """A randomised nn.MultiheadAttention in float64, batch first."""
    options = {"batch_first": True, "dtype": torch.float64, **options}
    return lesson_46.randomize_(nn.MultiheadAttention(D, heads, **options), seed)


def make_layer(heads=H, seed=2, kind=nn.TransformerEncoderLayer, **options):
    """A randomised layer of PyTorch's in float64, batch first, no dropout."""
    options = {"dropout": 0.0, "batch_first": True, "dtype": torch.float64, **options}
    return lesson_46.randomize_(kind(D, heads, FF, **options), seed)


def make_encoder(heads=H, L=2, seed=3, norm=None, nested=True, **options):
    """A randomised nn.TransformerEncoder of L layers."""
    encoder = nn.TransformerEncoder(
        make_layer(heads, **options), L, norm=norm, enable_nested_tensor=nested
    )
    return lesson_46.randomize_(encoder, seed)


def make_without_packing(reason, **options):
    """An nn.TransformerEncoder that says why it will not pack real tokens."""
    with pytest.warns(UserWarning, match=reason):
        return make_encoder(**options)


def load(module, state):
    """Our module, in float64, with the parameters of PyTorch's."""
    module.double().load_state_dict(state.state_dict())
    return module


def random_mask(*shape, seed=4):
    """A Boolean mask without an empty row, True for about half."""
    mask = make_input(*shape, seed=seed) > 0
    return mask | torch.eye(*shape[-2:]).bool()


def additive(may):
    """The float mask that says what `may` says: 0 or minus infinity."""
    return torch.zeros(may.shape, dtype=torch.float64).masked_fill(~may, EMPTY)


def moved_before(function, x, token):
    """Whether outputs before `token` move when that token changes."""
    changed = x.clone()
    changed[:, token] += 1.0
    return bool((function(changed) != function(x))[:, :token].any())


def masked_block(x, layer, mask=None):
    """Lesson 46's lines of the block, with a mask; x: (B, T, D)."""
    part = lesson_46.multihead_attention(x, layer.self_attn, mask)
    x = lesson_46.layer_norm(x + part, layer.norm1)
    part = lesson_46.feed_forward(x, layer.linear1, layer.linear2)
    return lesson_46.layer_norm(x + part, layer.norm2)


def default(function, argument):
    """The default value that `function` documents for an argument."""
    return inspect.signature(function).parameters[argument].default


# ---- one test a row ------------------------------------------------------------


def test_conventions_vectors():
    """Rows times W.T, with W as nn.Linear stores it: (out, in)."""
    assert nn.Linear(D, FF).weight.shape == (FF, D)
    x = make_input(T, D)
    q, k, v = (nn.Linear(D, D, bias=False).double() for _ in range(3))
    for seed, linear in enumerate((q, k, v)):
        lesson_46.randomize_(linear, seed)
    matrices = q.weight, k.weight, v.weight
    reference = F.scaled_dot_product_attention(q(x), k(x), v(x))
    assert_equal(lesson_45.self_attention(x, *matrices)[0], reference)
    columns = [W.T for W in matrices]  # square, so this runs
    assert_differs(lesson_45.self_attention(x, *columns)[0], reference)

    linear1 = lesson_46.randomize_(nn.Linear(D, FF).double(), 5)
    linear2 = lesson_46.randomize_(nn.Linear(FF, D).double(), 6)
    reference = linear2(F.relu(linear1(x)))
    assert_equal(lesson_46.feed_forward(x, linear1, linear2), reference)


def test_conventions_axes():
    """(B, T, D); without batch_first PyTorch takes the first axis for tokens."""
    x = make_input(B, T, D)
    for module in (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.Transformer):
        assert default(module, "batch_first") is False
    mha = make_attention()
    ours = lesson_46.multihead_attention(x, mha)
    assert_equal(ours, mha(x, x, x)[0])
    tokens_first = make_attention(batch_first=False)
    tokens_first.load_state_dict(mha.state_dict())
    swapped = x.transpose(0, 1)  # (T, B, D)
    reference = tokens_first(swapped, swapped, swapped)[0].transpose(0, 1)
    assert_equal(ours, reference)
    assert_differs(tokens_first(x, x, x)[0], ours)  # runs, and is wrong


def test_conventions_scale_of_the_scores():
    """One over the root of a head's width, not of the model's."""
    q, k, v = (make_input(B, H, T, D_HEAD, seed=seed) for seed in range(3))
    ours, _ = lesson_45.attention(q, k, v)
    sdpa = F.scaled_dot_product_attention
    assert_equal(ours, sdpa(q, k, v))
    assert_equal(ours, sdpa(q, k, v, scale=1 / math.sqrt(D_HEAD)))
    assert_differs(ours, sdpa(q, k, v, scale=1 / math.sqrt(D)))

    mha, x = make_attention(), make_input(B, T, D)
    ours, reference = lesson_46.multihead_attention(x, mha), mha(x, x, x)[0]
    assert_equal(ours, reference)
    wider = copy.deepcopy(mha)  # scores scaled by sqrt(D) for sqrt(d_head)
    with torch.no_grad():
        wider.in_proj_weight[:D] *= math.sqrt(D_HEAD / D)
        wider.in_proj_bias[:D] *= math.sqrt(D_HEAD / D)
    assert_differs(ours, wider(x, x, x)[0])


def test_conventions_width_of_a_head():
    """D / H: heads share the width. Another number of heads, another result."""
    x, mha = make_input(B, T, D), make_attention()
    assert mha.head_dim == D_HEAD
    q, k, v = lesson_47.split_heads(x, mha)
    assert q.shape == k.shape == v.shape == (B, H, T, D_HEAD)
    head, weights = lesson_46.one_head(x, mha, H - 1)
    assert head.shape == (B, T, D_HEAD) and weights.shape == (B, T, T)
    _, reference = mha(x, x, x, average_attn_weights=False)
    assert_equal(weights, reference[:, H - 1])
    fewer = make_attention(heads=2)
    fewer.load_state_dict(mha.state_dict())  # the same shapes
    assert_differs(lesson_46.multihead_attention(x, fewer), mha(x, x, x)[0])
    with pytest.raises(AssertionError, match="divisible by num_heads"):
        nn.MultiheadAttention(D, 5)


def test_conventions_order_in_in_proj_weight():
    """q, k, v, and in each head after head: no other order gives the result."""
    x, mha = make_input(B, T, D), make_attention()
    assert mha.in_proj_weight.shape == (3 * D, D)
    ours = lesson_46.multihead_attention(x, mha)
    assert_equal(ours, mha(x, x, x)[0])
    assert_equal(lesson_47.multihead_attention(x, mha), ours)

    rows = torch.arange(3 * D).view(3, H, D_HEAD)
    others = [rows[list(order)] for order in itertools.permutations(range(3))][1:]
    others += [
        rows.view(3, D_HEAD, H).transpose(1, 2),  # heads interleaved
        rows.view(H, 3, D_HEAD).transpose(0, 1),  # q, k, v within each head
    ]
    for other in others:
        reordered = copy.deepcopy(mha)
        with torch.no_grad():
            reordered.in_proj_weight.copy_(mha.in_proj_weight[other.flatten()])
            reordered.in_proj_bias.copy_(mha.in_proj_bias[other.flatten()])
        assert_differs(reordered(x, x, x)[0], ours)


def test_conventions_biases_in_projections():
    """All four or none; but for the key's, each can be seen in the output."""
    x, mha = make_input(B, T, D), make_attention()
    biases = mha.in_proj_bias, mha.out_proj.bias
    assert [bias.shape for bias in biases] == [(3 * D,), (D,)]
    assert_equal(lesson_46.multihead_attention(x, mha), mha(x, x, x)[0])
    for part in ("q", "v", "out"):
        without = copy.deepcopy(mha)
        q, _, v = without.in_proj_bias.chunk(3)
        with torch.no_grad():
            {"q": q, "v": v, "out": without.out_proj.bias}[part].zero_()
        assert_differs(lesson_46.multihead_attention(x, without), mha(x, x, x)[0])

    W_q, W_k, W_v = mha.in_proj_weight.chunk(3)
    plain = lesson_45.torch_module(W_q, W_k, W_v).double()
    assert plain.in_proj_bias is None and plain.out_proj.bias is None
    with torch.no_grad():  # torch_module is float32: copy without rounding
        plain.in_proj_weight.copy_(mha.in_proj_weight)
    ours, _ = lesson_45.self_attention(x, W_q, W_k, W_v)
    assert_equal(ours, plain(x, x, x)[0])


def test_conventions_returned_weights():
    """Ours: every head's. PyTorch's module returns their mean by default."""
    x, mha = make_input(B, T, D), make_attention()
    _, ours = lesson_47.attention(*lesson_47.split_heads(x, mha))
    assert ours.shape == (B, H, T, T)
    _, each = mha(x, x, x, average_attn_weights=False)
    _, mean = mha(x, x, x)
    assert_equal(ours, each)
    assert_equal(ours.mean(dim=1), mean)
    assert_differs(ours, mean.unsqueeze(1))
    assert mha(x, x, x, need_weights=False)[1] is None
    assert isinstance(F.scaled_dot_product_attention(x, x, x), torch.Tensor)


def test_conventions_boolean_mask():
    """True = may attend, and the opposite in nn.MultiheadAttention."""
    x, mha, may = make_input(B, T, D), make_attention(), random_mask(T, T)
    may[:, 0], may[range(T), [1, 2, 3, 4, 1]] = True, False  # ~may has no empty row
    q, k, v = lesson_47.split_heads(x, mha)
    ours, _ = lesson_45.attention(q, k, v, may)
    sdpa = F.scaled_dot_product_attention
    assert_equal(ours, sdpa(q, k, v, attn_mask=may))
    assert_differs(ours, sdpa(q, k, v, attn_mask=~may))

    ours = lesson_46.multihead_attention(x, mha, may)
    assert_equal(ours, mha(x, x, x, attn_mask=~may)[0])
    assert_differs(ours, mha(x, x, x, attn_mask=may)[0])

    layer = make_layer()
    ours = masked_block(x, layer, may)
    assert_equal(ours, layer(x, src_mask=~may))
    assert_differs(ours, layer(x, src_mask=may))


def test_conventions_additive_mask():
    """Added to the scaled scores: 0 or minus infinity, or any number."""
    x, may = make_input(B, T, D), random_mask(T, T)
    mha = make_attention(heads=1)
    q, k, v = (part.squeeze(1) for part in lesson_47.split_heads(x, mha))
    sdpa = F.scaled_dot_product_attention
    ours, _ = lesson_45.attention(q, k, v, may)
    assert_equal(ours, sdpa(q, k, v, attn_mask=additive(may)))
    assert_equal(mha.out_proj(ours), mha(x, x, x, attn_mask=additive(may))[0])
    zeros_and_ones = may.double()  # the trap: nothing is hidden
    assert_differs(ours, sdpa(q, k, v, attn_mask=zeros_and_ones))
    with pytest.raises(TypeError):  # ours refuses it
        lesson_45.attention(q, k, v, additive(may))

    bias = make_input(T, T, seed=8)
    scores = q @ k.transpose(1, 2) / math.sqrt(D)
    after, before = scores + bias, scores + bias / math.sqrt(D)
    for reference in (
        mha.out_proj(sdpa(q, k, v, attn_mask=bias)),
        mha(x, x, x, attn_mask=bias)[0],
    ):
        assert_equal(mha.out_proj(after.softmax(dim=-1) @ v), reference)
        assert_differs(mha.out_proj(before.softmax(dim=-1) @ v), reference)


def test_conventions_causal_mask():
    """Up to and including the token itself; ~causal for PyTorch's module."""
    for lesson in (lesson_45, lesson_46):
        mask = lesson.causal_mask(T)
        for query, key in itertools.product(range(T), repeat=2):
            assert mask[query, key] == (key <= query)
    x, mha = make_input(B, T, D), make_attention()
    ours = lesson_46.multihead_attention(x, mha, mask)
    assert_equal(ours, mha(x, x, x, attn_mask=~mask)[0])
    square = nn.Transformer.generate_square_subsequent_mask(T, dtype=torch.float64)
    assert torch.equal(square, additive(mask))  # float, to be added
    assert_differs(ours, mha(x, x, x, attn_mask=~mask.T)[0])
    without_itself = mask.tril(diagonal=-1)
    without_itself[0, 0] = True  # or row 0 would be empty
    assert_differs(ours, mha(x, x, x, attn_mask=~without_itself)[0])


def test_conventions_padding_mask():
    """True = real token; the opposite in key_padding_mask."""
    x, mha = make_input(B, T, D), make_attention()
    lengths = torch.tensor([3, 4])
    real = lesson_45.padding_mask(lengths, T)
    assert real.shape == (B, 1, T)
    assert real.squeeze(1).tolist() == [
        [True, True, True, False, False],
        [True, True, True, True, False],
    ]
    heads = real.unsqueeze(1)  # (B, 1, 1, T)
    ours = lesson_46.multihead_attention(x, mha, heads)
    real = real.squeeze(1)  # (B, T)
    assert_equal(ours, mha(x, x, x, key_padding_mask=~real)[0])
    assert_differs(ours, mha(x, x, x, key_padding_mask=real)[0])
    assert_equal(ours[:1, :3], mha(*[x[:1, :3]] * 3)[0])  # as it is alone

    layer = make_layer()
    ours = masked_block(x, layer, heads)
    assert_equal(ours, layer(x, src_key_padding_mask=~real))
    assert_differs(ours, layer(x, src_key_padding_mask=real))


def test_conventions_is_causal():
    """From the top left corner; of nn.MultiheadAttention a mere hint.

    Version-dependent: that the module believes the hint where it is asked for
    no weights, and the mask where it is.
    """
    sdpa = F.scaled_dot_product_attention
    q, k, v = (make_input(B, n, D, seed=n) for n in (3, T, T + 1))
    v = v[:, :T]
    flag = sdpa(q, k, v, is_causal=True)
    top_left = torch.ones(3, T).tril().bool()
    bottom_right = torch.ones(3, T).tril(diagonal=T - 3).bool()
    assert_equal(lesson_45.attention(q, k, v, top_left)[0], flag)
    assert_differs(lesson_45.attention(q, k, v, bottom_right)[0], flag)
    with pytest.raises(RuntimeError, match="should not be set"):
        sdpa(q, k, v, attn_mask=top_left, is_causal=True)

    x, mha = make_input(B, T, D), make_attention()
    with pytest.raises(RuntimeError, match="Need attn_mask"):
        mha(x, x, x, is_causal=True)
    causal, other = lesson_46.causal_mask(T), random_mask(T, T)
    for need_weights, believed in ((True, other), (False, causal)):
        hinted, _ = mha(
            x, x, x, attn_mask=~other, is_causal=True, need_weights=need_weights
        )
        assert_equal(lesson_46.multihead_attention(x, mha, believed), hinted)
    assert_differs(
        lesson_46.multihead_attention(x, mha, causal),
        lesson_46.multihead_attention(x, mha, other),
    )


def test_conventions_fully_masked_row():
    """NaN from ours; from PyTorch NaN or 0, as the path has it.

    Version-dependent: all that is said here of PyTorch.
    """
    x = make_input(B, T, D, dtype=torch.float32)
    may = lesson_45.causal_mask(T)
    may[3] = False
    seeing = [0, 1, 2, 4]
    ours, _ = lesson_45.attention(x, x, x, may)
    assert ours[:, 3].isnan().all() and not ours[:, seeing].isnan().any()

    sdpa = F.scaled_dot_product_attention
    for mask in (may, additive(may).float()):
        result = sdpa(x, x, x, attn_mask=mask)
        assert (result[:, 3] == 0).all()
        assert_equal(ours[:, seeing], result[:, seeing])
    large = torch.zeros(T, T).masked_fill(~may, -1e9)  # the silent leak
    leak = sdpa(x, x, x, attn_mask=large)[:, 3]
    torch.testing.assert_close(leak, x.mean(dim=1), rtol=0, atol=1e-5)

    mha = make_attention(dtype=torch.float32)
    ours = lesson_46.multihead_attention(x, mha, may)
    for need_weights, shortcut, expected in (
        (True, False, "NaN"),
        (False, False, "bias"),  # what the output projection makes of 0
        (True, True, "NaN"),
        (False, True, "NaN"),
    ):
        mha.train(not shortcut)
        with torch.set_grad_enabled(not shortcut):
            result, _ = mha(x, x, x, attn_mask=~may, need_weights=need_weights)
        assert_equal(ours[:, seeing], result[:, seeing])
        if expected == "NaN":
            assert result[:, 3].isnan().all()
        else:
            assert torch.equal(result[:, 3], mha.out_proj.bias.expand(B, D))


def test_conventions_sinusoid():
    """Interleaved; all sines, then all cosines, is a permutation of columns."""
    pe = lesson_46.positional_encoding(T, D, torch.float64)
    angle = torch.tensor(
        [[pos / 10000 ** (2 * i / D) for i in range(D // 2)] for pos in range(T)],
        dtype=torch.float64,
    )
    sines, cosines = angle.sin(), angle.cos()
    assert_equal(pe, torch.stack([sines, cosines], dim=-1).flatten(1))
    concatenated = torch.cat([sines, cosines], dim=1)
    assert_differs(pe, concatenated)
    order = [*range(0, D, 2), *range(1, D, 2)]
    assert_equal(pe[:, order], concatenated)
    assert not [name for name in dir(nn) if "position" in name.lower()]


def test_conventions_variance_in_a_norm():
    """Biased, and eps inside the root, in layer norm and in batch norm."""
    eps = 1e-2
    x = 1.0 + 0.1 * make_input(T, D)  # a variance of the size of eps
    layer = lesson_46.randomize_(nn.LayerNorm(D, eps=eps).double(), 1)
    batch = lesson_46.randomize_(nn.BatchNorm1d(D, eps=eps).double(), 2)
    by_hand = load(lesson_37.BatchNorm(D, eps=eps), batch)
    ours = {
        1: [
            lesson.layer_norm(x, layer) for lesson in (lesson_37, lesson_46, lesson_47)
        ],
        0: [by_hand(x)],
    }
    for axis, norm in ((1, layer), (0, batch)):
        reference = norm(x)
        for result in ours[axis]:
            assert_equal(result, reference)
        centred = x - x.mean(dim=axis, keepdim=True)
        biased, unbiased = (
            x.var(dim=axis, keepdim=True, correction=correction)
            for correction in (0, 1)
        )
        for root, right in (
            (torch.sqrt(biased + eps), True),
            (torch.sqrt(unbiased + eps), False),
            (torch.sqrt(biased) + eps, False),
        ):
            result = centred / root * norm.weight + norm.bias
            if right:
                assert_equal(result, reference)
            else:
                assert_differs(result, reference)


def test_conventions_running_variance_of_batch_norm():
    """Unbiased, unlike the variance it divides by; momentum weighs the new."""
    momentum = 0.3
    x = make_input(T, D)
    theirs = nn.BatchNorm1d(D, momentum=momentum).double()
    ours = load(lesson_37.BatchNorm(D, momentum=momentum), theirs)
    for module in (ours, theirs):
        module(x)
    assert_equal(ours.running_var, theirs.running_var)
    assert_equal(ours.running_mean, theirs.running_mean)
    assert default(lesson_37.BatchNorm, "momentum") == nn.BatchNorm1d(1).momentum

    old = torch.ones(D).double()
    biased, unbiased = (x.var(dim=0, correction=c) for c in (0, 1))
    assert_equal(theirs.running_var, (1 - momentum) * old + momentum * unbiased)
    for other in (
        (1 - momentum) * old + momentum * biased,
        momentum * old + (1 - momentum) * unbiased,
    ):
        assert_differs(theirs.running_var, other)
    assert_equal(ours.eval()(x), theirs.eval()(x))


def test_conventions_place_of_the_norm():
    """Post-norm, PyTorch's default too."""
    for module in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer):
        assert default(module, "norm_first") is False
    x, post = make_input(B, T, D), make_layer()
    pre = make_layer(norm_first=True)
    pre.load_state_dict(post.state_dict())
    ours = load(lesson_46.EncoderBlock(D, H, FF), post)(x)
    assert_equal(ours, post(x))
    assert_differs(ours, pre(x))


def test_conventions_pre_norm():
    """Lesson 47's block is PyTorch's with norm_first=True, and no other."""
    x = make_input(B, T, D)
    pre = make_layer(norm_first=True, activation="gelu")
    post = make_layer(norm_first=False, activation="gelu")
    post.load_state_dict(pre.state_dict())
    ours = load(lesson_47.PreNormBlock(D, H, FF), pre)
    assert_equal(ours(x), pre(x))
    assert_differs(ours(x), post(x))
    # nothing is done after the addition: without its parts it passes x on
    with torch.no_grad():
        for module in (ours, pre, post):
            for part in (module.self_attn.out_proj, module.linear2):
                part.weight.zero_()
                part.bias.zero_()
    assert torch.equal(ours(x), x) and torch.equal(pre(x), x)
    assert_differs(post(x), x)


def test_conventions_final_norm():
    """After pre-norm blocks one; PyTorch adds it if it is given one."""
    x = make_input(B, T, D)
    options = {"norm_first": True, "activation": "gelu", "nested": False}
    encoder = make_encoder(norm=nn.LayerNorm(D).double(), **options)
    blocks = [load(lesson_47.PreNormBlock(D, H, FF), layer) for layer in encoder.layers]
    ours = lesson_47.encode(x, blocks, encoder.norm)
    assert_equal(ours, encoder(x))
    assert default(nn.TransformerEncoder, "norm") is None
    encoder.norm = None
    assert_differs(ours, encoder(x))

    post = make_encoder(nested=False)
    stack = [load(lesson_46.EncoderBlock(D, H, FF), layer) for layer in post.layers]
    assert_equal(nn.Sequential(*stack)(x), post(x))
    whole = nn.Transformer(D, H, 1, 1, FF, batch_first=True)
    assert not whole.encoder.layers[0].norm_first
    for half in (whole.encoder, whole.decoder):
        assert isinstance(half.norm, nn.LayerNorm)


def test_conventions_activation():
    """ReLU, PyTorch's default; GELU where it is asked for, and not by tanh."""
    x, layer = make_input(B, T, D), make_layer()
    linears = layer.linear1, layer.linear2
    hidden = layer.linear1(x)
    relu, gelu, by_tanh = (
        layer.linear2(values)
        for values in (
            hidden.clamp(min=0),
            hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2,
            F.gelu(hidden, approximate="tanh"),
        )
    )
    assert_equal(lesson_46.feed_forward(x, *linears), relu)
    assert_equal(lesson_47.feed_forward(x, *linears), gelu)
    assert_differs(relu, gelu)
    assert_differs(gelu, by_tanh, by=1e-4)

    for module, reference in ((layer, relu), (make_layer(activation="gelu"), gelu)):
        module.load_state_dict(layer.state_dict())
        assert_equal(layer.linear2(module.activation(hidden)), reference)


def test_conventions_dropout():
    """None in ours; in PyTorch's layer in four places, 0.1 in each.

    Where everything is dropped, p = 1, nothing is left to chance.
    """
    layer = nn.TransformerEncoderLayer(D, H, FF)
    places = layer.dropout, layer.dropout1, layer.dropout2
    assert [layer.self_attn.dropout, *(place.p for place in places)] == [0.1] * 4
    for block in (lesson_46.EncoderBlock(D, H, FF), lesson_47.PreNormBlock(D, H, FF)):
        assert block.self_attn.dropout == 0
        assert not [m for m in block.modules() if isinstance(m, nn.Dropout)]

    x, layer = make_input(B, T, D), make_layer()

    def by_hand(attended, feed):
        y = lesson_46.layer_norm(x + attended, layer.norm1)
        return lesson_46.layer_norm(y + feed(y), layer.norm2)

    def feed(y):
        return lesson_46.feed_forward(y, layer.linear1, layer.linear2)

    attended = lesson_46.multihead_attention(x, layer.self_attn)
    expected = {
        "self_attn": by_hand(layer.self_attn.out_proj.bias, feed),  # the weights
        "dropout1": by_hand(0.0, feed),  # what attention gave
        "dropout": by_hand(attended, lambda y: layer.linear2.bias),  # hidden numbers
        "dropout2": by_hand(attended, lambda y: 0.0),  # what was fed forward
    }
    for place, result in expected.items():
        dropping = copy.deepcopy(layer)
        module = dropping.get_submodule(place)
        setattr(module, "dropout" if place == "self_attn" else "p", 1.0)
        assert_equal(result, dropping(x))
        assert_equal(by_hand(attended, feed), dropping.eval()(x))
    assert all(
        (a - b).abs().max() > 1e-2
        for a, b in itertools.combinations([*expected.values(), layer(x)], 2)
    )


def test_conventions_layers_of_a_stack():
    """Ours start different; nn.TransformerEncoder's are copies of one layer."""
    torch.manual_seed(0)
    vit = lesson_47.ViT(8, 4, 1, D, H, FF, 2, 3)
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(D, H, FF), 2, enable_nested_tensor=False
    )
    for layers, start_equal in ((vit.blocks, False), (encoder.layers, True)):
        first, last = layers[0], layers[1]
        assert torch.equal(first.linear1.weight, last.linear1.weight) == start_equal
        assert first.linear1.weight is not last.linear1.weight  # copied, not shared


PROTOTYPE = "ignore:The PyTorch API of nested tensors:UserWarning"


def modes(module, *inputs, **options):
    """The outputs in training, in evaluation, and there without gradients."""
    results = [module.train()(*inputs, **options), module.eval()(*inputs, **options)]
    with torch.no_grad():
        results.append(module(*inputs, **options))
    return results


@pytest.fixture
def fast_path(monkeypatch):
    """A list that grows by one with each layer that takes PyTorch's fast path."""
    calls, function = [], torch._transformer_encoder_layer_fwd

    def counted(*arguments, **options):
        calls.append(1)
        return function(*arguments, **options)

    monkeypatch.setattr(torch, "_transformer_encoder_layer_fwd", counted)
    return calls


def test_conventions_train_eval_and_no_grad(fast_path):
    """The layer's other path, where it is taken, gives the same numbers.

    Version-dependent: when that path is taken. The tests of outputs hold for
    any version.
    """
    x = make_input(B, T, D)
    real = lesson_45.padding_mask(torch.tensor([3, 5]), T)  # (B, 1, T)
    padded = {"src_key_padding_mask": ~real.squeeze(1)}
    for heads, pre_norm in itertools.product((H, 3), (False, True)):
        layer = make_layer(heads, norm_first=pre_norm)
        for mask, options in ((None, {}), (real.unsqueeze(1), padded)):
            fast_path.clear()
            training, evaluation, no_grad = modes(layer, x, **options)
            assert len(fast_path) == (1 if heads % 2 == 0 else 0)
            assert_equal(evaluation, training)
            assert_equal(no_grad, training)
            if not pre_norm:
                assert_equal(masked_block(x, layer, mask), no_grad)
    assert_differs(layer(x), layer(x, **padded))  # the mask is no idle one

    for block in (lesson_46.EncoderBlock(D, H, FF), lesson_47.PreNormBlock(D, H, FF)):
        first, *others = modes(lesson_46.randomize_(block.double(), 5), x)
        assert all(torch.equal(first, other) for other in others)

    dropping = make_layer(dropout=0.5)
    torch.manual_seed(0)
    training, evaluation, no_grad = modes(dropping, x, **padded)
    assert_differs(training, evaluation)
    assert_equal(no_grad, evaluation)
    fast_path.clear()
    dropping.eval().requires_grad_(False)(x)  # nothing asks for a gradient
    assert len(fast_path) == 1


@pytest.mark.filterwarnings(PROTOTYPE)
def test_conventions_output_at_padding(fast_path):
    """Numbers, but zeros where nn.TransformerEncoder packs real tokens.

    Version-dependent: that it does, and when. Where it does not, the numbers
    at padding are ours too.
    """
    x = make_input(B, T, D)
    real = lesson_45.padding_mask(torch.tensor([3, 4]), T).squeeze(1)
    mirrored = real.flip(1)  # padding at the front

    def outputs(encoder, real):
        """Ours, and PyTorch's in training, evaluation, and without gradients."""
        ours = x
        for layer in encoder.layers:
            ours = masked_block(ours, layer, real[:, None, None, :])
        if encoder.norm:
            ours = lesson_46.layer_norm(ours, encoder.norm)
        return ours, modes(encoder, x, src_key_padding_mask=~real)

    norm = nn.LayerNorm(D).double()
    for encoder, real_tokens, packs in (
        (make_encoder(), real, True),
        (make_encoder(norm=norm), real, True),
        (make_encoder(), mirrored, False),
        (make_encoder(nested=False), real, False),
        (make_without_packing("num_heads is odd", heads=3), real, False),
    ):
        ours, (training, evaluation, no_grad) = outputs(encoder, real_tokens)
        assert_equal(ours, training)
        assert_equal(ours, evaluation)
        assert no_grad.shape == x.shape
        assert_equal(ours[real_tokens], no_grad[real_tokens])
        padding = no_grad[~real_tokens]
        if packs:
            zero = torch.zeros_like(padding)
            assert torch.equal(padding, encoder.norm(zero) if encoder.norm else zero)
            assert_differs(padding, ours[~real_tokens])
        else:
            assert_equal(ours[~real_tokens], padding)
    assert fast_path

    pre_norm = make_without_packing("norm_first was True", norm_first=True)
    for module in (pre_norm, make_layer(), make_layer(norm_first=True)):
        training, _, no_grad = modes(module, x, src_key_padding_mask=~real)
        assert_equal(training, no_grad)


def decoder_block(x, memory, layer, mask):
    """A decoder block by hand; x: (B, T, D), memory: the encoder's output."""
    part = lesson_46.multihead_attention(x, layer.self_attn, mask)
    x = lesson_46.layer_norm(x + part, layer.norm1)
    cross = layer.multihead_attn
    q, _, _ = lesson_47.split_heads(x, cross)
    _, k, v = lesson_47.split_heads(memory, cross)
    heads, _ = lesson_46.attention(q, k, v)  # (B, H, T, d_head)
    x = lesson_46.layer_norm(
        x + cross.out_proj(heads.transpose(1, 2).flatten(2)), layer.norm2
    )
    part = lesson_46.feed_forward(x, layer.linear1, layer.linear2)
    return lesson_46.layer_norm(x + part, layer.norm3)


def test_conventions_encoder_decoder_decoder_only():
    """Who has a causal mask, and who has cross-attention."""
    x, memory = make_input(B, T, D), make_input(B, T + 2, D, seed=9)
    causal = lesson_46.causal_mask(T)
    layer = make_layer(kind=nn.TransformerDecoderLayer)
    decoder = lesson_46.randomize_(nn.TransformerDecoder(layer, 2), 6)

    def decode(x, mask=causal):
        for layer in decoder.layers:
            x = decoder_block(x, memory, layer, mask)
        return x

    assert_equal(decode(x), decoder(x, memory, tgt_mask=~causal))
    assert_equal(decode(x, mask=None), decoder(x, memory))
    assert not moved_before(decode, x, 3)
    assert not moved_before(lambda x: decoder(x, memory, tgt_mask=~causal), x, 3)
    assert moved_before(lambda x: decoder(x, memory), x, 3)  # no mask, no cause
    assert_differs(decoder(x, memory.flip(0)), decoder(x, memory))

    encoder = make_encoder(nested=False)
    for mask in (None, causal):  # an encoder, and decoder-only
        ours = x
        for layer in encoder.layers:
            ours = masked_block(ours, layer, mask)
        theirs = None if mask is None else ~mask
        assert_equal(ours, encoder(x, mask=theirs))
        leaks = moved_before(lambda x: encoder(x, mask=theirs), x, 3)
        assert leaks == (mask is None)
    for layers, has_cross in ((decoder.layers, True), (encoder.layers, False)):
        assert hasattr(layers[0], "multihead_attn") == has_cross


def lessons_that_use(name):
    """The lessons in which a name stands."""
    return [p.name for p in LESSON_FILES if name in p.read_text(encoding="utf-8")]


VOCABULARY = 7


def test_conventions_embedding_scale():
    """nn.Embedding hands out its rows as they are."""
    assert lessons_that_use("nn.Embedding") == [], "the table says: none yet"
    embedding = lesson_46.randomize_(nn.Embedding(VOCABULARY, D).double(), 1)
    ids = torch.tensor([[3, 0, 6, 3, 1], [2, 2, 5, 4, 0]])  # (B, T)
    rows = F.one_hot(ids, VOCABULARY).double() @ embedding.weight  # (B, T, D)
    assert_equal(rows, embedding(ids))
    assert_differs(math.sqrt(D) * rows, embedding(ids))


def test_conventions_weight_tying():
    """Two matrices, unless the model makes them one; then V * D fewer weights."""
    assert lessons_that_use("nn.Embedding") == [], "the table says: none yet"
    model = nn.ModuleDict(
        {
            "embedding": nn.Embedding(VOCABULARY, D),
            "output": nn.Linear(D, VOCABULARY, bias=False),
        }
    ).double()
    lesson_46.randomize_(model, 1)
    weights = model.embedding.weight, model.output.weight
    assert weights[0].shape == weights[1].shape == (VOCABULARY, D)
    assert_differs(*weights)
    with torch.no_grad():
        weights[1].copy_(weights[0])  # equal numbers are not yet shared
    assert lesson_46.count_parameters(model) == 2 * VOCABULARY * D
    ids = torch.arange(T)
    apart = gradients(model.output(model.embedding(ids)), *weights)

    model.output.weight = model.embedding.weight
    assert lesson_46.count_parameters(model) == VOCABULARY * D
    (tied,) = gradients(model.output(model.embedding(ids)), model.embedding.weight)
    assert_equal(tied, apart[0] + apart[1])


# ---- table and tests agree -------------------------------------------------------

NOTATION = (ROOT / "notation.md").read_text(encoding="utf-8")
PREFIX = "test_conventions_"


def convention_rows(text):
    """The lines of the conventions table, without its head."""
    section = re.split(r"^## ", text.split("\n## Conventions\n")[1], flags=re.M)[0]
    lines = section.splitlines(keepends=True)
    return [line for line in lines if line.startswith("|")][2:]


def cells(row):
    """What stands in the cells of a row."""
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def name_of_test(row):
    """The name that the test of a row must have."""
    return PREFIX + re.sub("[^a-z0-9]+", "_", cells(row)[0].lower()).strip("_")


def names_of_tests(source):
    """The names of the tests of rows in a file, in order, repetitions included."""
    return [
        node.name
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith(PREFIX)
    ]


def disagreements(text, tests):
    """One line for each thing in which table and tests do not agree."""
    rows = convention_rows(text)
    wrong = []
    for row in rows:
        what, *others = cells(row)
        if len(others) != 3 or not all(others):
            wrong.append(f"{what}: not four cells that say something")
        elif not re.search(r"\[.+\]\(.+#.+\)", others[-1]):
            wrong.append(f"{what}: no link to the section that shows it")
    names = [name_of_test(row) for row in rows]
    wrong += [
        f"notation.md: a row, but no {name}" for name in names if name not in tests
    ]
    wrong += [f"{test}: a test, but no row" for test in tests if test not in names]
    if not wrong and names != tests:
        wrong.append("table and tests are in another order, or one stands twice")
    return wrong


TESTS = names_of_tests(Path(__file__).read_text(encoding="utf-8"))


def test_table_and_tests_agree():
    assert len(TESTS) > 20
    assert disagreements(NOTATION, TESTS) == []


ROWS = convention_rows(NOTATION)
FIRST, LAST = ROWS[0], ROWS[-1]


@pytest.mark.parametrize(
    "old, new, message",
    [
        (LAST, f"{LAST}| A `new` row | a | b | [c](d.md#e) |\n", "a_new_row"),
        (FIRST, "", f"{TESTS[0]}: a test, but no row"),
        (FIRST, FIRST + FIRST, "one stands twice"),
        (FIRST, FIRST.replace("| ", "| re-", 1), "a row, but no test_conventions_re_"),
        (FIRST, FIRST.replace("](", "] ("), "no link"),
        (FIRST, FIRST.replace(" | ", " | | ", 1), "not four cells"),
    ],
    ids=["one more", "one less", "twice", "renamed", "no link", "empty cell"],
)
def test_a_table_that_disagrees_is_refused(old, new, message):
    assert NOTATION.count(old) == 1
    found = disagreements(NOTATION.replace(old, new), TESTS)
    assert len(found) in (1, 2) and any(message in line for line in found), found


def test_another_order_is_refused():
    swapped = NOTATION.replace(FIRST, "").replace(LAST, LAST + FIRST)
    assert ["another order" in line for line in disagreements(swapped, TESTS)] == [True]


def test_a_test_that_stands_twice_is_refused():
    """The second would replace the first in silence."""
    repeated = TESTS + TESTS[:1]
    assert ["twice" in line for line in disagreements(NOTATION, repeated)] == [True]
