"""The conventions table of notation.md: each row is so, of ours and of PyTorch.

One test a row, named after its first cell, in the order of the table. Each also shows
that another convention gives other numbers: a row that any would pass holds nothing.
What is said of `is_causal` in a module, of rows without a key, of PyTorch's other path
and of output at padding is what this version of torch does, and may change.
"""

import copy
import inspect
import itertools
import math
import re

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.checking import assert_equal, gradients
from tools.notebooks import LESSON_NAMES, ROOT, load, path_of

lesson_37, lesson_45, lesson_46, lesson_47 = map(load, ("37", "45", "46", "47"))
sdpa = F.scaled_dot_product_attention
# No two of them are equal: an axis taken for another shows.
B, T, D, H, FF, V = 2, 5, 12, 4, 20, 7
D_HEAD = D // H


def assert_only(ours, reference, *others, by=1e-2):
    """Hold ours to the reference, and see that other conventions give other numbers."""
    assert_equal(ours.detach(), reference.detach())
    for other in others:
        assert (other - reference).abs().max() > by


def normal(*shape, seed=2):
    """Return standard normal numbers in float64, the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def drawn(module, seed=1):
    """Return the module in float64, each parameter redrawn."""
    return lesson_46.randomize_(module.double(), seed)


def like(other, module):
    """Return the module, in float64, with the parameters of another."""
    module.double().load_state_dict(other.state_dict())
    return module


def attention_of(heads=H, **options):
    """Return a randomised nn.MultiheadAttention, batch first."""
    return drawn(nn.MultiheadAttention(D, heads, **{"batch_first": True, **options}))


def layer_of(heads=H, kind=nn.TransformerEncoderLayer, **options):
    """Return a randomised layer of PyTorch's, batch first, without dropout."""
    return drawn(kind(D, heads, FF, **{"dropout": 0, "batch_first": True, **options}))


def encoder_of(heads=H, norm=None, nested=True, **options):
    """Return a randomised nn.TransformerEncoder of two layers."""
    layer = layer_of(heads, **options)
    return drawn(nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=nested))


X, MHA, LAYER = normal(B, T, D), attention_of(), layer_of()


def outputs_after(*changes):
    """Return what copies of MHA give after changes of in_proj and the last bias."""
    outputs = []
    for change in changes:
        mha = copy.deepcopy(MHA)
        with torch.no_grad():
            change(mha.in_proj_weight, mha.in_proj_bias, mha.out_proj.bias)
        outputs.append(mha(X, X, X)[0])
    return outputs


def additive(may):
    """Return the float mask that says what `may` says: 0 or minus infinity."""
    return torch.zeros(may.shape, dtype=torch.float64).masked_fill(~may, -math.inf)


def block(x, layer, mask=None):
    """Return what Lesson 46's lines make of x (B, T, D), with a mask."""
    attended = lesson_46.multihead_attention(x, layer.self_attn, mask)
    return feed(lesson_46.layer_norm(x + attended, layer.norm1), layer, layer.norm2)


def feed(x, layer, norm):
    """Return what the last part of a block makes of x."""
    fed = lesson_46.feed_forward(x, layer.linear1, layer.linear2)
    return lesson_46.layer_norm(x + fed, norm)


def default(function, argument):
    """Return the default value that a function documents for an argument."""
    return inspect.signature(function).parameters[argument].default


# ---- one test a row ------------------------------------------------------------------


def test_vectors():
    """Rows times W.T, with W as nn.Linear stores it: (out, in)."""
    assert nn.Linear(D, FF).weight.shape == (FF, D)
    maps = [drawn(nn.Linear(D, D, bias=False), seed) for seed in range(3)]
    W = [linear.weight for linear in maps]
    ours, _ = lesson_45.self_attention(X, *W)
    columns, _ = lesson_45.self_attention(X, *(w.T for w in W))  # square, so it runs
    assert_only(ours, sdpa(*(linear(X) for linear in maps)), columns)
    up, down = LAYER.linear1, LAYER.linear2
    assert_only(lesson_46.feed_forward(X, up, down), down(F.relu(up(X))))


def test_axes():
    """(B, T, D); without batch_first PyTorch takes the first axis for tokens."""
    for module in (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.Transformer):
        assert default(module, "batch_first") is False
    ours = lesson_46.multihead_attention(X, MHA)
    assert_only(ours, MHA(X, X, X)[0])
    tokens_first = like(MHA, attention_of(batch_first=False))
    swapped = X.transpose(0, 1)  # (T, B, D)
    reference = tokens_first(swapped, swapped, swapped)[0].transpose(0, 1)
    assert_only(ours, reference, tokens_first(X, X, X)[0])  # runs, and is wrong


def test_scale_of_the_scores():
    """One over the root of a head's width, not of the model's."""
    q, k, v = (normal(B, H, T, D_HEAD, seed=seed) for seed in range(3))
    ours, _ = lesson_45.attention(q, k, v)
    assert_only(ours, sdpa(q, k, v), sdpa(q, k, v, scale=1 / math.sqrt(D)))
    assert_only(ours, sdpa(q, k, v, scale=1 / math.sqrt(D_HEAD)))

    def scale_by_D(weight, bias, out):
        weight[:D] *= math.sqrt(D_HEAD / D)
        bias[:D] *= math.sqrt(D_HEAD / D)

    others = outputs_after(scale_by_D)
    assert_only(lesson_46.multihead_attention(X, MHA), MHA(X, X, X)[0], *others)


def test_width_of_a_head():
    """D / H: heads share the width. Another number of heads, another result."""
    head, weights = lesson_46.one_head(X, MHA, H - 1)
    assert head.shape == (B, T, D_HEAD)
    q, k, v = lesson_47.split_heads(X, MHA)
    assert q.shape == k.shape == v.shape == (B, H, T, D_HEAD)
    assert_only(weights, MHA(X, X, X, average_attn_weights=False)[1][:, H - 1])
    fewer = like(MHA, attention_of(heads=2))  # the same shapes
    other = lesson_46.multihead_attention(X, fewer)
    assert_only(lesson_46.multihead_attention(X, MHA), MHA(X, X, X)[0], other)
    with pytest.raises(AssertionError, match="divisible by num_heads"):
        nn.MultiheadAttention(D, 5)


def test_order_in_in_proj_weight():
    """q, k, v, and in each head after head: no other order gives the result."""
    rows = torch.arange(3 * D).view(3, H, D_HEAD)
    orders = [rows[list(order)] for order in itertools.permutations(range(3))][1:]
    orders += [
        rows.view(3, D_HEAD, H).transpose(1, 2),  # heads interleaved
        rows.view(H, 3, D_HEAD).transpose(0, 1),  # q, k, v within each head
    ]

    def reorder(order):
        def change(weight, bias, out):
            weight.copy_(weight[order.flatten()])
            bias.copy_(bias[order.flatten()])

        return change

    others = outputs_after(*map(reorder, orders))
    for lesson in (lesson_46, lesson_47):
        assert_only(lesson.multihead_attention(X, MHA), MHA(X, X, X)[0], *others)


def test_biases_in_projections():
    """All four or none; but for the key's, each can be seen in the output."""
    others = outputs_after(
        lambda weight, bias, out: bias[:D].zero_(),
        lambda weight, bias, out: bias[2 * D :].zero_(),
        lambda weight, bias, out: out.zero_(),
    )
    assert_only(lesson_46.multihead_attention(X, MHA), MHA(X, X, X)[0], *others)
    W = MHA.in_proj_weight.chunk(3)
    plain = lesson_45.torch_module(*W).double()
    assert plain.in_proj_bias is None and plain.out_proj.bias is None
    plain.in_proj_weight = MHA.in_proj_weight  # torch_module rounds to float32
    assert_only(lesson_45.self_attention(X, *W)[0], plain(X, X, X)[0])


def test_returned_weights():
    """Ours: every head's. PyTorch's module returns their mean by default."""
    _, ours = lesson_47.attention(*lesson_47.split_heads(X, MHA))
    _, mean = MHA(X, X, X)
    assert_only(ours, MHA(X, X, X, average_attn_weights=False)[1], mean.unsqueeze(1))
    assert_only(ours.mean(dim=1), mean)
    assert MHA(X, X, X, need_weights=False)[1] is None
    assert isinstance(sdpa(X, X, X), torch.Tensor)


MAY = (normal(T, T, seed=4) > 0) | torch.eye(T).bool()  # about half, no row empty
MAY[:, 0], MAY[range(T), [1, 2, 3, 4, 1]] = True, False  # nor in ~MAY


def test_boolean_mask():
    """True = may attend, and the opposite in nn.MultiheadAttention."""
    q, k, v = lesson_47.split_heads(X, MHA)
    ours, _ = lesson_45.attention(q, k, v, MAY)
    assert_only(ours, sdpa(q, k, v, attn_mask=MAY), sdpa(q, k, v, attn_mask=~MAY))
    right, wrong = (MHA(X, X, X, attn_mask=mask)[0] for mask in (~MAY, MAY))
    assert_only(lesson_46.multihead_attention(X, MHA, MAY), right, wrong)
    right, wrong = (LAYER(X, src_mask=mask) for mask in (~MAY, MAY))
    assert_only(block(X, LAYER, MAY), right, wrong)


def test_additive_mask():
    """Added to the scaled scores: 0 or minus infinity, or any number."""
    mha, bias = attention_of(heads=1), normal(T, T, seed=8)
    q, k, v = (part.squeeze(1) for part in lesson_47.split_heads(X, mha))
    ours, _ = lesson_45.attention(q, k, v, MAY)
    zeros_and_ones = sdpa(q, k, v, attn_mask=MAY.double())  # nothing is hidden
    assert_only(ours, sdpa(q, k, v, attn_mask=additive(MAY)), zeros_and_ones)
    assert_only(mha.out_proj(ours), mha(X, X, X, attn_mask=additive(MAY))[0])
    with pytest.raises(TypeError):  # ours refuses it
        lesson_45.attention(q, k, v, additive(MAY))
    scores = q @ k.transpose(1, 2) / math.sqrt(D)
    terms = (bias, bias / math.sqrt(D))
    after, before = (mha.out_proj((scores + term).softmax(-1) @ v) for term in terms)
    assert_only(after, mha.out_proj(sdpa(q, k, v, attn_mask=bias)), before)
    assert_only(after, mha(X, X, X, attn_mask=bias)[0], before)


def test_causal_mask():
    """Up to and including the token itself; ~causal for PyTorch's module."""
    for lesson in (lesson_45, lesson_46):
        mask = lesson.causal_mask(T)
        assert torch.equal(mask, torch.arange(T) <= torch.arange(T).unsqueeze(1))
    without_itself = mask.tril(diagonal=-1)
    without_itself[0, 0] = True  # or row 0 would be empty
    masks = (~mask, ~mask.T, ~without_itself)
    theirs = [MHA(X, X, X, attn_mask=mask)[0] for mask in masks]
    assert_only(lesson_46.multihead_attention(X, MHA, mask), *theirs)
    square = nn.Transformer.generate_square_subsequent_mask(T, dtype=torch.float64)
    assert torch.equal(square, additive(mask))  # float, to be added


def test_padding_mask():
    """True = real token; the opposite in key_padding_mask."""
    real = lesson_45.padding_mask(torch.tensor([3, 4]), T)
    assert real.tolist() == [[[True] * n + [False] * (T - n)] for n in (3, 4)]
    heads, real = real.unsqueeze(1), real.squeeze(1)  # (B, 1, 1, T), (B, T)
    ours = lesson_46.multihead_attention(X, MHA, heads)
    right, wrong = (MHA(X, X, X, key_padding_mask=mask)[0] for mask in (~real, real))
    assert_only(ours, right, wrong)
    assert_only(ours[:1, :3], MHA(*[X[:1, :3]] * 3)[0])  # as it is alone
    right, wrong = (LAYER(X, src_key_padding_mask=mask) for mask in (~real, real))
    assert_only(block(X, LAYER, heads), right, wrong)


def test_is_causal():
    """From the top left corner; of nn.MultiheadAttention a mere hint."""
    q, v, square = normal(B, 3, D, seed=3), normal(B, T, D, seed=6), torch.ones(3, T)
    masks = [square.tril(diagonal).bool() for diagonal in (0, T - 3)]  # top, bottom
    ours, other = (lesson_45.attention(q, X, v, mask)[0] for mask in masks)
    assert_only(ours, sdpa(q, X, v, is_causal=True), other)
    with pytest.raises(RuntimeError, match="should not be set"):
        sdpa(q, X, v, attn_mask=masks[0], is_causal=True)
    with pytest.raises(RuntimeError, match="Need attn_mask"):
        MHA(X, X, X, is_causal=True)
    # It believes the mask where it is asked for weights, and else the hint.
    masks = MAY, lesson_46.causal_mask(T)
    by_mask, by_hint = (lesson_46.multihead_attention(X, MHA, mask) for mask in masks)
    hinted = {"attn_mask": ~MAY, "is_causal": True}
    assert_only(by_mask, MHA(X, X, X, **hinted)[0], by_hint)
    assert_only(by_hint, MHA(X, X, X, need_weights=False, **hinted)[0], by_mask)


def test_fully_masked_row():
    """NaN from ours; from PyTorch NaN or 0, as the path has it."""
    may, seeing = lesson_45.causal_mask(T), [0, 1, 2, 4]
    may[3] = False
    ours, _ = lesson_45.attention(X, X, X, may)
    assert ours[:, 3].isnan().all() and not ours[:, seeing].isnan().any()
    for mask in (may, additive(may)):
        theirs = sdpa(X, X, X, attn_mask=mask)
        assert (theirs[:, 3] == 0).all()
        assert_only(ours[:, seeing], theirs[:, seeing])
    x, large = X.float(), torch.zeros(T, T).masked_fill(~may, -1e9)  # a silent leak
    assert_only(x.mean(dim=1), sdpa(x, x, x, attn_mask=large)[:, 3])
    ours, mha = lesson_46.multihead_attention(X, MHA, may), copy.deepcopy(MHA)
    for need_weights, fast in itertools.product((True, False), repeat=2):
        mha.train(not fast)
        with torch.set_grad_enabled(not fast):
            theirs, _ = mha(X, X, X, attn_mask=~may, need_weights=need_weights)
        assert_only(ours[:, seeing], theirs[:, seeing])
        if need_weights or fast:
            assert theirs[:, 3].isnan().all()
        else:  # what the output projection makes of 0
            assert torch.equal(theirs[:, 3], mha.out_proj.bias.expand(B, D))


def test_sinusoid():
    """Interleaved; all sines, then all cosines, is a permutation of columns."""
    angle = [[p / 10000 ** (2 * i / D) for i in range(D // 2)] for p in range(T)]
    angle = torch.tensor(angle, dtype=torch.float64)
    pe = lesson_46.positional_encoding(T, D, torch.float64)
    concatenated = torch.cat([angle.sin(), angle.cos()], dim=1)
    interleaved = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
    assert_only(pe, interleaved, concatenated)
    assert_only(pe[:, [*range(0, D, 2), *range(1, D, 2)]], concatenated)
    assert not [name for name in dir(nn) if "position" in name.lower()]


def test_variance_in_a_norm():
    """Biased, and eps inside the root, in layer norm and in batch norm."""
    eps = 1e-2
    x = 1.0 + 0.1 * normal(T, D)  # a variance of the size of eps
    layer, batch = drawn(nn.LayerNorm(D, eps)), drawn(nn.BatchNorm1d(D, eps))
    lessons = (lesson_37, lesson_46, lesson_47)
    of_layer = [lesson.layer_norm(x, layer) for lesson in lessons]
    of_batch = [like(batch, lesson_37.BatchNorm(D, eps=eps))(x)]
    for axis, norm, ours in ((1, layer, of_layer), (0, batch, of_batch)):
        biased, unbiased = (x.var(axis, keepdim=True, correction=c) for c in (0, 1))
        roots = ((biased + eps).sqrt(), (unbiased + eps).sqrt(), biased.sqrt() + eps)
        centred = x - x.mean(axis, keepdim=True)
        right, *others = [centred / root * norm.weight + norm.bias for root in roots]
        for result in [right, *ours]:
            assert_only(result, norm(x), *others)


def test_running_variance_of_batch_norm():
    """Unbiased, unlike the variance it divides by; momentum weighs the new."""
    new, x, one = 0.3, normal(T, D), torch.ones(D).double()
    theirs = nn.BatchNorm1d(D, momentum=new).double()
    ours = like(theirs, lesson_37.BatchNorm(D, momentum=new))
    assert_only(ours(x), theirs(x))
    assert_only(ours.running_mean, theirs.running_mean)
    biased, unbiased = (x.var(dim=0, correction=c) for c in (0, 1))
    others = one.lerp(biased, new), one.lerp(unbiased, 1 - new)
    for variance in (ours.running_var, one.lerp(unbiased, new)):
        assert_only(variance, theirs.running_var, *others)
    assert_only(ours.eval()(x), theirs.eval()(x))
    assert default(lesson_37.BatchNorm, "momentum") == nn.BatchNorm1d(1).momentum


def test_place_of_the_norm():
    """Post-norm, PyTorch's default too."""
    for module in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer):
        assert default(module, "norm_first") is False
    ours = like(LAYER, lesson_46.EncoderBlock(D, H, FF))
    assert_only(ours(X), LAYER(X), like(LAYER, layer_of(norm_first=True))(X))


def test_pre_norm():
    """Lesson 47's block is PyTorch's with norm_first=True, and no other."""
    pre, post = (layer_of(norm_first=n, activation="gelu") for n in (True, False))
    modules = like(pre, lesson_47.PreNormBlock(D, H, FF)), pre, like(pre, post)
    assert_only(*(module(X) for module in modules))
    # Nothing is done after the addition: without its parts a block passes X on.
    with torch.no_grad():
        for module in modules:
            for part in (module.self_attn.out_proj, module.linear2):
                part.weight.zero_(), part.bias.zero_()
    assert torch.equal(modules[0](X), X)
    assert_only(X, pre(X), post(X))


def test_final_norm():
    """After pre-norm blocks one; PyTorch adds it if it is given one."""
    options = {"norm_first": True, "activation": "gelu", "nested": False}
    encoder = encoder_of(norm=nn.LayerNorm(D), **options)
    blocks = [like(layer, lesson_47.PreNormBlock(D, H, FF)) for layer in encoder.layers]
    ours, theirs = lesson_47.encode(X, blocks, encoder.norm), encoder(X)
    encoder.norm = None
    assert_only(ours, theirs, encoder(X))
    assert default(nn.TransformerEncoder, "norm") is None
    post = encoder_of(nested=False)
    blocks = [like(layer, lesson_46.EncoderBlock(D, H, FF)) for layer in post.layers]
    assert_only(nn.Sequential(*blocks)(X), post(X))
    whole = nn.Transformer(D, H, 1, 1, FF, batch_first=True)
    assert not whole.encoder.layers[0].norm_first
    assert isinstance(whole.encoder.norm, nn.LayerNorm)
    assert isinstance(whole.decoder.norm, nn.LayerNorm)


def test_activation():
    """ReLU, PyTorch's default; GELU where it is asked for, and not by tanh."""
    up, down = LAYER.linear1, LAYER.linear2
    hidden = up(X)
    relu = down(hidden.clamp(min=0))
    gelu = down(hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2)
    by_tanh = down(F.gelu(hidden, approximate="tanh"))
    assert_only(lesson_46.feed_forward(X, up, down), relu, gelu)
    assert_only(lesson_47.feed_forward(X, up, down), gelu, by_tanh, by=1e-4)
    assert_only(down(layer_of().activation(hidden)), relu)
    assert_only(down(layer_of(activation="gelu").activation(hidden)), gelu)


def test_dropout():
    """None in ours; in PyTorch's layer in four places, 0.1 in each.

    Where everything is dropped, p = 1, nothing is left to chance.
    """
    layer = nn.TransformerEncoderLayer(D, H, FF)
    rates = [m.p for m in layer.modules() if isinstance(m, nn.Dropout)]
    assert rates == [0.1] * 3 and layer.self_attn.dropout == 0.1
    for ours in (lesson_46.EncoderBlock(D, H, FF), lesson_47.PreNormBlock(D, H, FF)):
        assert ours.self_attn.dropout == 0
        assert not [m for m in ours.modules() if isinstance(m, nn.Dropout)]
    attended = lesson_46.multihead_attention(X, LAYER.self_attn)
    bias, norm1, norm2 = LAYER.self_attn.out_proj.bias, LAYER.norm1, LAYER.norm2
    y = lesson_46.layer_norm(X + attended, norm1)
    expected = {
        "self_attn": feed(lesson_46.layer_norm(X + bias, norm1), LAYER, norm2),
        "dropout1": feed(lesson_46.layer_norm(X, norm1), LAYER, norm2),
        "dropout": lesson_46.layer_norm(y + LAYER.linear2.bias, norm2),
        "dropout2": lesson_46.layer_norm(y, norm2),
    }
    for place, result in expected.items():
        dropping = layer_of()
        attribute = "dropout" if place == "self_attn" else "p"
        setattr(dropping.get_submodule(place), attribute, 1.0)
        others = [other for name, other in expected.items() if name != place]
        assert_only(result, dropping(X), *others, LAYER(X))
        assert_only(block(X, LAYER), dropping.eval()(X))


def test_layers_of_a_stack():
    """Ours start different; nn.TransformerEncoder's are copies of one layer."""
    torch.manual_seed(0)
    vit = lesson_47.ViT(8, 4, 1, D, H, FF, 2, 3)
    layer = nn.TransformerEncoderLayer(D, H, FF)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    for layers, start_equal in ((vit.blocks, False), (encoder.layers, True)):
        first, last = layers[0].linear1.weight, layers[1].linear1.weight
        assert torch.equal(first, last) == start_equal
        assert first is not last  # copied, not shared


def modes(module, **options):
    """Return the outputs in training, in evaluation, and there without gradients."""
    results = [module.train()(X, **options), module.eval()(X, **options)]
    with torch.no_grad():
        return [*results, module(X, **options)]


@pytest.fixture
def fast_path(monkeypatch):
    """Return a list that grows by one with each layer on PyTorch's other path."""
    calls, function = [], torch._transformer_encoder_layer_fwd

    def counted(*arguments, **options):
        calls.append(1)
        return function(*arguments, **options)

    monkeypatch.setattr(torch, "_transformer_encoder_layer_fwd", counted)
    return calls


def test_train_eval_and_no_grad(fast_path):
    """The layer's other path, where it is taken, gives the same numbers."""
    real = lesson_45.padding_mask(torch.tensor([3, 5]), T)  # (B, 1, T)
    padded = {"src_key_padding_mask": ~real.squeeze(1)}
    for heads, pre_norm in itertools.product((H, 3), (False, True)):
        layer = layer_of(heads, norm_first=pre_norm)
        for mask, options in ((None, {}), (real.unsqueeze(1), padded)):
            fast_path.clear()
            training, *evaluation = modes(layer, **options)
            assert len(fast_path) == (1 if heads % 2 == 0 else 0)
            ours = [] if pre_norm else [block(X, layer, mask)]
            for result in [*evaluation, *ours]:
                assert_only(result, training)
    assert_only(training, layer(X, **padded), layer(X))  # the mask is no idle one
    for ours in (lesson_46.EncoderBlock(D, H, FF), lesson_47.PreNormBlock(D, H, FF)):
        first, *others = modes(drawn(ours))
        assert all(torch.equal(first, other) for other in others)
    torch.manual_seed(0)
    training, evaluation, no_grad = modes(layer_of(dropout=0.5), **padded)
    assert_only(no_grad, evaluation, training)
    fast_path.clear()
    layer_of().eval().requires_grad_(False)(X)  # nothing asks for a gradient
    assert len(fast_path) == 1


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_output_at_padding(fast_path):
    """Numbers, but zeros where nn.TransformerEncoder packs real tokens."""
    real = lesson_45.padding_mask(torch.tensor([3, 4]), T).squeeze(1)
    with pytest.warns(UserWarning, match="num_heads is odd"):
        odd = encoder_of(heads=3)
    for encoder, real_tokens, packs in (
        (encoder_of(), real, True),
        (encoder_of(norm=nn.LayerNorm(D)), real, True),
        (encoder_of(), real.flip(1), False),  # padding at the front
        (encoder_of(nested=False), real, False),
        (odd, real, False),
    ):
        ours, norm = X, encoder.norm or nn.Identity()
        for layer in encoder.layers:
            ours = block(ours, layer, real_tokens[:, None, None, :])
        ours = norm(ours)
        *others, no_grad = modes(encoder, src_key_padding_mask=~real_tokens)
        for theirs in others:
            assert_only(ours, theirs)
        assert_only(ours[real_tokens], no_grad[real_tokens])
        ours, padding = ours[~real_tokens], no_grad[~real_tokens]
        if packs:
            assert_only(norm(torch.zeros_like(padding)), padding, ours)
        else:
            assert_only(ours, padding)
    assert fast_path
    with pytest.warns(UserWarning, match="norm_first was True"):
        pre_norm = encoder_of(norm_first=True)
    for module in (pre_norm, layer_of(), layer_of(norm_first=True)):
        training, _, no_grad = modes(module, src_key_padding_mask=~real)
        assert_only(no_grad, training)


def decoder_block(x, memory, layer, mask):
    """Return what a decoder block makes of x (B, T, D) and the encoder's output."""
    attended = lesson_46.multihead_attention(x, layer.self_attn, mask)
    x, cross = lesson_46.layer_norm(x + attended, layer.norm1), layer.multihead_attn
    q, (_, k, v) = (
        lesson_47.split_heads(x, cross)[0],
        lesson_47.split_heads(memory, cross),
    )
    heads, _ = lesson_46.attention(q, k, v)  # (B, H, T, d_head)
    attended = cross.out_proj(heads.transpose(1, 2).flatten(2))
    return feed(lesson_46.layer_norm(x + attended, layer.norm2), layer, layer.norm3)


def test_encoder_decoder_decoder_only():
    """Who has a causal mask, and who has cross-attention."""
    memory, causal = normal(B, T + 2, D, seed=9), lesson_46.causal_mask(T)
    layer = layer_of(kind=nn.TransformerDecoderLayer)
    decoder, encoder = drawn(nn.TransformerDecoder(layer, 2)), encoder_of(nested=False)
    later = X.clone()
    later[:, 3] += 1.0
    for mask, theirs in ((None, None), (causal, ~causal)):
        ours = encoded = X
        for layer in decoder.layers:
            ours = decoder_block(ours, memory, layer, mask)
        for layer in encoder.layers:  # with a causal mask: decoder-only
            encoded = block(encoded, layer, mask)
        other = decoder(X, memory.flip(0), tgt_mask=theirs)
        reference = decoder(X, memory, tgt_mask=theirs)
        assert_only(ours, reference, other)
        assert_only(encoded, encoder(X, mask=theirs))
        moves = [
            decoder(later, memory, tgt_mask=theirs) - reference,
            encoder(later, mask=theirs) - encoder(X, mask=theirs),
        ]
        assert [bool(move[:, :3].any()) for move in moves] == [mask is None] * 2


def test_embedding_scale():
    """nn.Embedding hands out its rows as they are."""
    uses = [n for n in LESSON_NAMES if "nn.Embedding" in path_of(n).read_text("utf-8")]
    assert uses == [], "the table says: none yet"
    embedding = drawn(nn.Embedding(V, D))
    ids = torch.tensor([[3, 0, 6, 3, 1], [2, 2, 5, 4, 0]])  # (B, T)
    rows = F.one_hot(ids, V).double() @ embedding.weight  # (B, T, D)
    assert_only(rows, embedding(ids), math.sqrt(D) * rows)


def test_weight_tying():
    """Two matrices, unless the model makes them one; then V * D fewer weights."""
    embedding, output = nn.Embedding(V, D), nn.Linear(D, V, bias=False)
    model, ids = drawn(nn.ModuleList([embedding, output])), torch.arange(T)
    assert_only(embedding.weight, embedding.weight, output.weight)
    with torch.no_grad():
        output.weight.copy_(embedding.weight)  # equal numbers are not yet shared
    assert lesson_46.count_parameters(model) == 2 * V * D
    apart = gradients(output(embedding(ids)), [embedding.weight, output.weight])
    output.weight = embedding.weight
    assert lesson_46.count_parameters(model) == V * D
    (tied,) = gradients(output(embedding(ids)), [embedding.weight])
    assert_only(tied, sum(apart))


# ---- table and tests agree -----------------------------------------------------------


def test_table_and_tests_agree():
    text = (ROOT / "notation.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", text.split("\n## Conventions\n")[1], flags=re.M)[0]
    names = []
    for row in [line for line in section.splitlines() if line.startswith("|")][2:]:
        what, *others = (cell.strip() for cell in row.strip("|").split("|"))
        assert len(others) == 3 and all(others), f"{what}: a cell says nothing"
        assert re.search(r"\[.+\]\(.+#.+\)", others[2]), f"{what}: no link to a section"
        names.append("test_" + re.sub("[^a-z0-9]+", "_", what.lower()).strip("_"))
    tests = [name for name in globals() if name.startswith("test_")]
    assert [*names, "test_table_and_tests_agree"] == tests
