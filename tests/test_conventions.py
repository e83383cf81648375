"""The conventions table of notation.md: each row is so, of ours and of PyTorch.

One test a row. Each also shows that another convention gives other numbers: a row that
any would pass holds nothing.
"""

import copy
import inspect
import itertools
import math
import re
from functools import partial
from unittest.mock import patch

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


LAYERS = (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
X, MHA, LAYER = normal(B, T, D), attention_of(), layer_of()
FAST = "_transformer_encoder_layer_fwd"  # what a layer calls on its other path


def output_after(change):
    """Return what a copy of MHA gives after a change of in_proj and the last bias."""
    mha = copy.deepcopy(MHA)
    with torch.no_grad():
        change(mha.in_proj_weight, mha.in_proj_bias, mha.out_proj.bias)
    return mha(X, X, X)[0]


def block(x, layer, mask=None):
    """Return what Lesson 46's lines make of x (B, T, D), with a mask."""
    attended = lesson_46.multihead_attention(x, layer.self_attn, mask)
    return feed(lesson_46.layer_norm(x + attended, layer.norm1), layer)


def feed(x, layer):
    """Return what the last part of a block makes of x."""
    fed = lesson_46.feed_forward(x, layer.linear1, layer.linear2)
    return lesson_46.layer_norm(x + fed, layer.norm2)


def modes(module, **options):
    """Return the outputs in training, in evaluation, and there without gradients."""
    results = [module.train()(X, **options), module.eval()(X, **options)]
    with torch.no_grad():
        return [*results, module(X, **options)]


# ---- the rows, by theme: (row, ours, PyTorch's, what other conventions give) ---------


def heads():
    assert nn.Linear(D, FF).weight.shape == (FF, D)
    maps = [drawn(nn.Linear(D, D, bias=False), seed) for seed in range(3)]
    W = [linear.weight for linear in maps]
    ours, _ = lesson_45.self_attention(X, *W)
    columns, _ = lesson_45.self_attention(X, *(w.T for w in W))  # square, so it runs
    yield "vectors", ours, sdpa(*(linear(X) for linear in maps)), columns

    modules = [nn.Transformer(D, H, 1, 1), nn.MultiheadAttention(D, H)]
    modules += [layer(D, H).self_attn for layer in LAYERS]
    assert not any(module.batch_first for module in modules)
    ours, (theirs, mean) = lesson_46.multihead_attention(X, MHA), MHA(X, X, X)
    tokens_first = like(MHA, attention_of(batch_first=False))
    x = X.transpose(0, 1)  # (T, B, D)
    reference = tokens_first(x, x, x)[0].transpose(0, 1)
    yield "axes", ours, reference, tokens_first(X, X, X)[0]  # runs, and is wrong

    def scale_by_D(weight, bias, out):
        for parameter in (weight, bias):
            parameter[:D] *= math.sqrt(D_HEAD / D)

    q, k, v = (normal(B, H, T, D_HEAD, seed=seed) for seed in range(3))
    other = sdpa(q, k, v, scale=1 / math.sqrt(D))
    yield "scale of the scores", lesson_45.attention(q, k, v)[0], sdpa(q, k, v), other
    yield "scale of the scores", ours, theirs, output_after(scale_by_D)

    weights = MHA(X, X, X, average_attn_weights=False)[1]  # (B, H, T, T)
    head, of_head = lesson_46.one_head(X, MHA, H - 1)
    q, k, v = lesson_47.split_heads(X, MHA)
    assert head.shape == (B, T, D_HEAD) and q.shape == (B, H, T, D_HEAD)
    fewer = like(MHA, attention_of(heads=2))  # the same shapes
    yield "width of a head", of_head, weights[:, H - 1]
    yield "width of a head", ours, theirs, lesson_46.multihead_attention(X, fewer)
    with pytest.raises(AssertionError, match="divisible by num_heads"):
        nn.MultiheadAttention(D, 5)

    def reorder(order, weight, bias, out):
        for parameter in (weight, bias):
            parameter.copy_(parameter[order.flatten()])

    rows = torch.arange(3 * D).view(3, H, D_HEAD)
    orders = [rows[list(order)] for order in itertools.permutations(range(3))][1:]
    orders.append(rows.view(3, D_HEAD, H).transpose(1, 2))  # heads interleaved
    orders.append(rows.view(H, 3, D_HEAD).transpose(0, 1))  # q, k, v within each head
    others = [output_after(partial(reorder, order)) for order in orders]
    for lesson in (lesson_46, lesson_47):
        result = lesson.multihead_attention(X, MHA)
        yield "order in in_proj_weight", result, theirs, *others

    changes = (  # but for the key's, each can be seen in the output
        lambda weight, bias, out: bias[:D].zero_(),
        lambda weight, bias, out: bias[2 * D :].zero_(),
        lambda weight, bias, out: out.zero_(),
    )
    yield "biases in projections", ours, theirs, *map(output_after, changes)
    x, W = X.float(), MHA.in_proj_weight.float().chunk(3)
    plain = lesson_45.torch_module(*W)
    assert plain.in_proj_bias is None and plain.out_proj.bias is None
    yield "biases in projections", lesson_45.self_attention(x, *W)[0], plain(x, x, x)[0]

    _, ours = lesson_47.attention(q, k, v)
    yield "returned weights", ours, weights, mean.unsqueeze(1)
    yield "returned weights", ours.mean(dim=1), mean
    assert MHA(X, X, X, need_weights=False)[1] is None
    assert isinstance(sdpa(X, X, X), torch.Tensor)


def masks():
    may = (normal(T, T, seed=4) > 0) | torch.eye(T).bool()  # about half, no row empty
    may[:, 0], may[range(T), [1, 2, 3, 4, 1]] = True, False  # nor in ~may
    q, k, v = lesson_47.split_heads(X, MHA)
    ours, _ = lesson_45.attention(q, k, v, may)
    yield "boolean mask", ours, sdpa(q, k, v, may), sdpa(q, k, v, ~may)
    theirs = [MHA(X, X, X, attn_mask=mask)[0] for mask in (~may, may)]
    by_mask = lesson_46.multihead_attention(X, MHA, may)
    yield "boolean mask", by_mask, *theirs
    theirs = (LAYER(X, src_mask=mask) for mask in (~may, may))
    yield "boolean mask", block(X, LAYER, may), *theirs

    additive = torch.where(may, 0.0, -math.inf).double()
    with pytest.raises(TypeError):  # ours refuses it
        lesson_45.attention(X, X, X, additive)
    zeros_and_ones = sdpa(q, k, v, may.double())
    yield "additive mask", ours, sdpa(q, k, v, additive), zeros_and_ones
    scores, bias, root = q @ k.transpose(2, 3), normal(T, T, seed=8), D_HEAD**0.5
    sums = (scores / root + bias, (scores + bias) / root)
    after, before = (term.softmax(-1) @ v for term in sums)
    yield "additive mask", after, sdpa(q, k, v, bias), before
    after, before = (
        MHA.out_proj(x.transpose(1, 2).flatten(2)) for x in (after, before)
    )
    yield "additive mask", after, MHA(X, X, X, attn_mask=bias)[0], before

    for lesson in (lesson_45, lesson_46):
        causal = lesson.causal_mask(T)
        assert torch.equal(causal, torch.arange(T) <= torch.arange(T).unsqueeze(1))
    without_itself = causal.tril(diagonal=-1)
    without_itself[0, 0] = True  # or row 0 would be empty
    inverted = (~causal, ~causal.T, ~without_itself)
    theirs = [MHA(X, X, X, attn_mask=mask)[0] for mask in inverted]
    by_hint = lesson_46.multihead_attention(X, MHA, causal)
    yield "causal mask", by_hint, *theirs
    square = nn.Transformer.generate_square_subsequent_mask(T)  # float, to be added
    assert torch.equal(square, torch.where(causal, 0.0, -math.inf))

    real = lesson_45.padding_mask(torch.tensor([3, 4]), T)
    assert real.tolist() == [[[True] * n + [False] * (T - n)] for n in (3, 4)]
    per_head, real = real.unsqueeze(1), real.squeeze(1)  # (B, 1, 1, T), (B, T)
    ours = lesson_46.multihead_attention(X, MHA, per_head)
    theirs = [MHA(X, X, X, key_padding_mask=mask)[0] for mask in (~real, real)]
    yield "padding mask", ours, *theirs
    yield "padding mask", ours[:1, :3], MHA(*[X[:1, :3]] * 3)[0]  # as it is alone
    theirs = [LAYER(X, src_key_padding_mask=mask) for mask in (~real, real)]
    yield "padding mask", block(X, LAYER, per_head), *theirs

    q, v, square = normal(B, 3, D, seed=3), normal(B, T, D, seed=6), torch.ones(3, T)
    corners = [square.tril(diagonal).bool() for diagonal in (0, T - 3)]  # top, bottom
    ours, other = (lesson_45.attention(q, X, v, mask)[0] for mask in corners)
    yield "is_causal", ours, sdpa(q, X, v, is_causal=True), other
    with pytest.raises(RuntimeError, match="Need attn_mask"):
        MHA(X, X, X, is_causal=True)
    # It believes the mask where it is asked for weights, and else the hint.
    hinted = {"attn_mask": ~may, "is_causal": True}
    yield "is_causal", by_mask, MHA(X, X, X, **hinted)[0], by_hint
    yield "is_causal", by_hint, MHA(X, X, X, need_weights=False, **hinted)[0], by_mask

    seeing, causal[3] = [0, 1, 2, 4], False
    ours, theirs = lesson_45.attention(X, X, X, causal)[0], sdpa(X, X, X, causal)
    assert ours[:, 3].isnan().all() and (theirs[:, 3] == 0).all()
    yield "fully masked row", ours[:, seeing], theirs[:, seeing]
    ours, mha = lesson_46.multihead_attention(X, MHA, causal), copy.deepcopy(MHA)
    for need_weights, fast in itertools.product((True, False), repeat=2):
        mha.train(not fast)
        with torch.set_grad_enabled(not fast):
            theirs, _ = mha(X, X, X, attn_mask=~causal, need_weights=need_weights)
        yield "fully masked row", ours[:, seeing], theirs[:, seeing]
        if need_weights or fast:
            assert theirs[:, 3].isnan().all()
        else:  # what the output projection makes of 0
            assert torch.equal(theirs[:, 3], mha.out_proj.bias.expand(B, D))


def positions_and_norms():
    angle = [[p / 10000 ** (2 * i / D) for i in range(D // 2)] for p in range(T)]
    angle = torch.tensor(angle, dtype=torch.float64)
    pe = lesson_46.positional_encoding(T, D, torch.float64)
    concatenated = torch.cat([angle.sin(), angle.cos()], dim=1)
    interleaved = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
    yield "sinusoid", pe, interleaved, concatenated
    yield "sinusoid", pe[:, [*range(0, D, 2), *range(1, D, 2)]], concatenated
    assert not [name for name in dir(nn) if "position" in name.lower()]

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
            yield "variance in a norm", result, norm(x), *others

    row, new, x = "running variance of batch norm", 0.3, normal(T, D)
    theirs = nn.BatchNorm1d(D, momentum=new).double()
    ours = like(theirs, lesson_37.BatchNorm(D, momentum=new))
    yield row, ours(x), theirs(x)
    biased, unbiased = (x.var(dim=0, correction=c) for c in (0, 1))
    weighed = (unbiased, new), (biased, new), (unbiased, 1 - new)
    right, *others = [1 - weight + weight * var for var, weight in weighed]
    yield row, right, theirs.running_var, *others
    yield row, ours.running_var, theirs.running_var
    assert lesson_37.BatchNorm(1).momentum == nn.BatchNorm1d(1).momentum

    assert not any(layer(D, H).norm_first for layer in LAYERS)
    ours = like(LAYER, lesson_46.EncoderBlock(D, H, FF))
    other = like(LAYER, layer_of(norm_first=True))
    yield "place of the norm", ours(X), LAYER(X), other(X)

    pre, post = (layer_of(norm_first=n, activation="gelu") for n in (True, False))
    modules = like(pre, lesson_47.PreNormBlock(D, H, FF)), pre, like(pre, post)
    yield "pre-norm", *(module(X) for module in modules)
    # Nothing is done after the addition: without its parts a block passes X on.
    with torch.no_grad():
        for module in modules:
            for part in (module.self_attn.out_proj, module.linear2):
                part.weight.zero_(), part.bias.zero_()
    assert torch.equal(modules[0](X), X)
    yield "pre-norm", X, pre(X), post(X)

    encoder = encoder_of(H, nn.LayerNorm(D), False, norm_first=True, activation="gelu")
    blocks = [like(layer, lesson_47.PreNormBlock(D, H, FF)) for layer in encoder.layers]
    ours, theirs = lesson_47.encode(X, blocks, encoder.norm), encoder(X)
    encoder.norm = None
    yield "final norm", ours, theirs, encoder(X)
    assert nn.TransformerEncoder(pre, 1, enable_nested_tensor=False).norm is None
    post = encoder_of(nested=False)
    blocks = [like(layer, lesson_46.EncoderBlock(D, H, FF)) for layer in post.layers]
    yield "final norm", nn.Sequential(*blocks)(X), post(X)
    whole = nn.Transformer(D, H, 1, 1)
    assert not whole.encoder.layers[0].norm_first
    assert {type(whole.encoder.norm), type(whole.decoder.norm)} == {nn.LayerNorm}


def layers():
    up, down, hidden = LAYER.linear1, LAYER.linear2, LAYER.linear1(X)
    relu = down(hidden.clamp(min=0))
    gelu = down(hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2)
    by_tanh = down(F.gelu(hidden, approximate="tanh"))
    yield "activation", lesson_46.feed_forward(X, up, down), relu, gelu
    yield "activation", lesson_47.feed_forward(X, up, down), gelu, by_tanh
    yield "activation", down(layer_of().activation(hidden)), relu
    yield "activation", down(layer_of(activation="gelu").activation(hidden)), gelu

    layer = nn.TransformerEncoderLayer(D, H, FF)
    rates = [m.p for m in layer.modules() if isinstance(m, nn.Dropout)]
    assert rates == [0.1] * 3 and layer.self_attn.dropout == 0.1
    ours = lesson_46.EncoderBlock(D, H, FF), lesson_47.PreNormBlock(D, H, FF)
    modules = [module for block in ours for module in block.modules()]
    assert not any(getattr(module, "dropout", 0) for module in modules)
    assert not any(isinstance(module, nn.Dropout) for module in modules)
    norm1, norm2, bias = LAYER.norm1, LAYER.norm2, LAYER.self_attn.out_proj.bias
    attended = lesson_46.multihead_attention(X, LAYER.self_attn)
    y = lesson_46.layer_norm(X + attended, norm1)
    expected = {  # where everything is dropped, p = 1, nothing is left to chance
        "self_attn": feed(lesson_46.layer_norm(X + bias, norm1), LAYER),
        "dropout1": feed(lesson_46.layer_norm(X, norm1), LAYER),
        "dropout": lesson_46.layer_norm(y + LAYER.linear2.bias, norm2),
        "dropout2": lesson_46.layer_norm(y, norm2),
    }
    for place, result in expected.items():
        dropping = layer_of()
        attribute = "dropout" if place == "self_attn" else "p"
        setattr(dropping.get_submodule(place), attribute, 1.0)
        others = [other for name, other in expected.items() if name != place]
        yield "dropout", result, dropping(X), *others, LAYER(X)
        yield "dropout", block(X, LAYER), dropping.eval()(X)

    row, vit = "layers of a stack", lesson_47.ViT(8, 4, 1, D, H, FF, 2, 3)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    first, last = (layer.linear1.weight for layer in encoder.layers)
    assert first is not last  # copied, not shared
    yield row, first, last
    first, last = (block.linear1.weight for block in vit.blocks)
    yield row, first, first, last  # ours start different

    row, end = "train, eval and no_grad", torch.arange(T) < torch.tensor([[3], [4]])
    padded = {"src_key_padding_mask": ~end}
    for heads, norm_first in itertools.product((H, 3), (False, True)):
        layer = layer_of(heads, norm_first=norm_first)
        for options in ({}, padded):
            with patch.object(torch, FAST, wraps=getattr(torch, FAST)) as fast:
                training, *evaluation = modes(layer, **options)
            assert fast.call_count == (1 if heads % 2 == 0 else 0)
            yield from ((row, result, training) for result in evaluation)
    yield row, training, layer(X, **padded), layer(X)  # the mask is no idle one
    for module in ours:
        first, *others = modes(drawn(module))
        assert all(torch.equal(first, other) for other in others)
    torch.manual_seed(0)
    training, evaluation, no_grad = modes(layer_of(dropout=0.5), **padded)
    yield row, no_grad, evaluation, training

    for encoder, real, packs in (
        (encoder_of(), end, True),
        (encoder_of(norm=nn.LayerNorm(D)), end, True),
        (encoder_of(), end.flip(1), False),  # padding at the front
        (encoder_of(nested=False), end, False),
        (encoder_of(heads=3), end, False),
        (encoder_of(norm_first=True), end, False),
    ):
        numbers, evaluation, no_grad = modes(encoder, src_key_padding_mask=~real)
        zeros = (encoder.norm or nn.Identity())(torch.zeros_like(numbers))
        right, other = (zeros, numbers) if packs else (numbers, zeros)
        yield "output at padding", evaluation, numbers
        yield "output at padding", no_grad[real], numbers[real]
        yield "output at padding", no_grad[~real], right[~real], other[~real]

    row, memory = "encoder, decoder, decoder-only", normal(B, T + 2, D, seed=9)
    layer = layer_of(kind=nn.TransformerDecoderLayer)
    decoder, encoder = drawn(nn.TransformerDecoder(layer, 2)), encoder_of(nested=False)
    later = X.clone()
    later[:, 3] += 1.0
    for causal in (None, lesson_46.causal_mask(T)):
        theirs, encoded = None if causal is None else ~causal, X
        for layer in encoder.layers:  # with a causal mask: decoder-only
            encoded = block(encoded, layer, causal)
        yield row, encoded, encoder(X, mask=theirs)
        decoded = decoder(X, memory, tgt_mask=theirs)
        yield row, decoded, decoded, decoder(X, memory.flip(0), tgt_mask=theirs)
        moved = decoder(later, memory, tgt_mask=theirs), encoder(later, mask=theirs)
        for before, after in zip((decoded, encoded), moved, strict=True):
            sees_later = (after - before)[:, :3].abs().max() > 1e-9
            assert sees_later == (causal is None)


def vocabulary():
    uses = [n for n in LESSON_NAMES if "nn.Embedding" in path_of(n).read_text("utf-8")]
    assert uses == [], "the table says: none yet"
    embedding, output = nn.Embedding(V, D), nn.Linear(D, V, bias=False)
    model = drawn(nn.ModuleList([embedding, output]))
    ids = torch.tensor([[3, 0, 6, 3, 1], [2, 2, 5, 4, 0]])  # (B, T)
    rows = F.one_hot(ids, V).double() @ embedding.weight  # (B, T, D)
    yield "embedding scale", rows, embedding(ids), math.sqrt(D) * rows
    yield "weight tying", embedding.weight, embedding.weight, output.weight
    with torch.no_grad():
        output.weight.copy_(embedding.weight)  # equal numbers are not yet shared
    assert lesson_46.count_parameters(model) == 2 * V * D
    apart = gradients(output(embedding(ids)), [embedding.weight, output.weight])
    output.weight = embedding.weight
    assert lesson_46.count_parameters(model) == V * D
    (tied,) = gradients(output(embedding(ids)), [embedding.weight])
    yield "weight tying", tied, sum(apart)


# ---- one test a row ------------------------------------------------------------------

THEMES = (heads, masks, positions_and_norms, layers, vocabulary)
TEXT = (ROOT / "notation.md").read_text(encoding="utf-8").replace("`", "")
TABLE = TEXT.split("\n## Conventions\n")[1].partition("\n## ")[0]
ROWS = dict(re.findall(r"^\| (.+?) \|(.*)\|$", TABLE, re.MULTILINE)[1:])


@pytest.mark.filterwarnings("ignore::UserWarning")  # of nested tensors, or of none
@pytest.mark.parametrize("row", ROWS)
def test_row(row):
    *cells, link = ROWS[row].split("|")
    assert len(cells) == 2 and all(map(str.strip, cells)), "a cell says nothing"
    assert re.search(r"\[.+\]\(.+#.+\)", link), "no link to a section"
    (theme,) = [t for t in THEMES if f'"{row}"' in inspect.getsource(t)]
    cases = 0
    for name, ours, reference, *others in theme():
        assert name in ROWS, f"{name} is no row of the table"
        if name == row:
            cases += 1
            assert_equal(ours.detach(), reference.detach())
            assert all((x - reference).abs().max() > 1e-4 for x in others)
    assert cases
