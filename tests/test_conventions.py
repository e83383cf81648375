"""The conventions table of notation.md: each row is so, of ours and of PyTorch.

One test a row: which convention PyTorch follows. That the lessons' functions are equal
to PyTorch's is held in tests/lessons.
"""

import inspect
import itertools
import math
import re
from unittest.mock import patch

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.checking import Maker, assert_equal, share_parameters
from tools.notebooks import LESSON_NAMES, ROOT, load, path_of

lesson_45, lesson_46, lesson_47 = map(load, ("45", "46", "47"))
sdpa = F.scaled_dot_product_attention
B, T, D, H, FF, V = 2, 5, 12, 4, 20, 7
D_HEAD = D // H


def normal(*shape, seed=2):
    """Return standard normal numbers, the same for the same seed."""
    return Maker(seed, torch.float64).normal(*shape).detach()


def drawn(module):
    """Return the module in float64, each parameter redrawn."""
    return Maker(1, torch.float64).module(module)


def layer_of(heads=H, kind=nn.TransformerEncoderLayer, **options):
    """Return a randomised layer of PyTorch's, batch first, without dropout."""
    return drawn(kind(D, heads, FF, **{"dropout": 0, "batch_first": True, **options}))


def encoder_of(heads=H, norm=None, nested=True, **options):
    """Return a randomised nn.TransformerEncoder of two layers."""
    layer = layer_of(heads, **options)
    return drawn(nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=nested))


LAYERS = (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
X, LAYER = normal(B, T, D), layer_of()
MHA = drawn(nn.MultiheadAttention(D, H, batch_first=True))
FAST = "_transformer_encoder_layer_fwd"  # what a layer calls on its other path


def project(heads):
    """Return what MHA makes of the outputs of its heads (B, H, T, d_head)."""
    return MHA.out_proj(heads.transpose(1, 2).flatten(2))


def block(x, layer, mask=None):
    """Return what a post-norm layer makes of x (B, T, D), with Lesson 46's mask."""
    y = layer.norm1(x + lesson_46.multihead_attention(x, layer.self_attn, mask))
    return layer.norm2(y + layer.linear2(layer.linear1(y).relu()))


def modes(module, **options):
    """Return the outputs in training, in evaluation, and there without gradients."""
    results = [module.train()(X, **options), module.eval()(X, **options)]
    with torch.no_grad():
        return [*results, module(X, **options)]


# ---- the rows, by theme: (row, what it says, what PyTorch or a lesson gives) ---------


def heads():
    yield "vectors", X @ LAYER.linear1.weight.T + LAYER.linear1.bias, LAYER.linear1(X)

    modules = [nn.Transformer(D, H, 1, 1), nn.MultiheadAttention(D, H)]
    modules += [layer(D, H).self_attn for layer in LAYERS]
    assert not any(module.batch_first for module in modules)
    (theirs, mean), x = MHA(X, X, X), X.transpose(0, 1)  # (T, B, D)
    yield "axes", theirs.transpose(0, 1), share_parameters(modules[1], MHA)(x, x, x)[0]

    rows = zip(MHA.in_proj_weight.chunk(3), MHA.in_proj_bias.chunk(3), strict=True)
    parts = ((X @ W.T + b).unflatten(-1, (H, D_HEAD)) for W, b in rows)
    q, k, v = (part.transpose(1, 2) for part in parts)  # (B, H, T, d_head)
    weights = (q @ k.mT / math.sqrt(D_HEAD)).softmax(-1)  # (B, H, T, T)
    yield "scale of the scores", weights @ v, sdpa(q, k, v)
    yield "order in in_proj_weight", project(weights @ v), theirs
    yield "width of a head", q, lesson_47.split_heads(X, MHA)[0]
    with pytest.raises(AssertionError, match="divisible by num_heads"):
        nn.MultiheadAttention(D, 5)

    plain = lesson_45.torch_module(*torch.zeros(3, D, D))
    for bias, module in ((True, modules[1]), (False, plain)):
        biases = [module.in_proj_bias, module.out_proj.bias]
        yield "biases in projections", [bias] * 2, [b is not None for b in biases]

    yield "returned weights", weights, MHA(X, X, X, average_attn_weights=False)[1]
    yield "returned weights", weights.mean(dim=1), mean
    yield "returned weights", isinstance(sdpa(q, k, v), torch.Tensor), True


def masks():
    may = (normal(T, T, seed=4) > 0) | torch.eye(T).bool()  # about half, no row empty
    causal, bias = lesson_46.causal_mask(T), normal(T, T, seed=8)
    q, k, v = lesson_47.split_heads(X, MHA)
    scores = q @ k.mT / math.sqrt(D_HEAD)
    hidden = scores.masked_fill(~may, -math.inf).softmax(-1) @ v
    by_mask, by_hint = (MHA(X, X, X, attn_mask=~m)[0] for m in (may, causal))
    yield "boolean mask", hidden, sdpa(q, k, v, may)
    yield "boolean mask", project(hidden), by_mask
    yield "boolean mask", block(X, LAYER, may), LAYER(X, src_mask=~may)

    with pytest.raises(TypeError):  # ours refuses it
        lesson_45.attention(X, X, X, bias)
    added = (scores + bias).softmax(-1) @ v
    yield "additive mask", added, sdpa(q, k, v, bias)
    yield "additive mask", project(added), MHA(X, X, X, attn_mask=bias)[0]

    yield "causal mask", lesson_46.multihead_attention(X, MHA, causal), by_hint

    real = lesson_45.padding_mask(torch.tensor([3, 4]), T).unsqueeze(1)  # (B, 1, 1, T)
    ours, padding = lesson_46.multihead_attention(X, MHA, real), ~real.flatten(1)
    yield "padding mask", ours, MHA(X, X, X, key_padding_mask=padding)[0]
    theirs = LAYER(X, src_key_padding_mask=padding)
    yield "padding mask", block(X, LAYER, real), theirs

    q, corner = X[:, :3], torch.ones(3, T).tril().bool()  # the top left one
    yield "is_causal", sdpa(q, X, X, corner), sdpa(q, X, X, is_causal=True)
    with pytest.raises(RuntimeError, match="Need attn_mask"):
        MHA(X, X, X, is_causal=True)
    # It believes the mask where it is asked for weights, and else the hint.
    for need_weights, believed in ((True, by_mask), (False, by_hint)):
        options = {"attn_mask": ~may, "is_causal": True, "need_weights": need_weights}
        yield "is_causal", believed, MHA(X, X, X, **options)[0]

    row, causal[3] = "fully masked row", False
    yield row, math.nan * X[:, 3], lesson_45.attention(X, X, X, causal)[0][:, 3]
    yield row, 0 * X[:, 3], sdpa(X, X, X, causal)[:, 3]
    for need_weights, attended in ((True, math.nan), (False, 0)):
        theirs, _ = MHA(X, X, X, attn_mask=~causal, need_weights=need_weights)
        yield row, MHA.out_proj(attended * X[:, 3]), theirs[:, 3]


def positions_and_norms():
    angle = [[p / 10000 ** (2 * i / D) for i in range(D // 2)] for p in range(T)]
    angle = torch.tensor(angle, dtype=torch.float64)
    interleaved = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
    yield "sinusoid", interleaved, lesson_46.positional_encoding(T, D, torch.float64)
    assert not [name for name in dir(nn) if "position" in name.lower()]

    eps, new, x = 1e-2, 0.3, 1.0 + 0.1 * normal(T, D)  # a variance of the size of eps
    batch = drawn(nn.BatchNorm1d(D, eps, momentum=new))
    for axis, norm in ((1, drawn(nn.LayerNorm(D, eps))), (0, batch)):
        root = (x.var(axis, keepdim=True, correction=0) + eps).sqrt()
        normed = (x - x.mean(axis, keepdim=True)) / root
        yield "variance in a norm", normed * norm.weight + norm.bias, norm(x)
    running = 1 - new + new * x.var(dim=0)
    yield "running variance of batch norm", running, batch.running_var

    assert not any(layer(D, H).norm_first for layer in LAYERS)
    ours = share_parameters(lesson_46.EncoderBlock(D, H, FF), LAYER)
    yield "place of the norm", ours(X), LAYER(X)

    encoder = encoder_of(H, nn.LayerNorm(D), False, norm_first=True, activation="gelu")
    blocks = [lesson_47.PreNormBlock(D, H, FF) for _ in encoder.layers]
    blocks = [*map(share_parameters, blocks, encoder.layers)]
    yield "pre-norm", blocks[0](X), encoder.layers[0](X)
    yield "final norm", lesson_47.encode(X, blocks, encoder.norm), encoder(X)
    assert encoder_of().norm is None
    whole = nn.Transformer(D, H, 1, 1)
    assert not whole.encoder.layers[0].norm_first
    assert {type(whole.encoder.norm), type(whole.decoder.norm)} == {nn.LayerNorm}


def layers():
    relu, gelu = (layer_of(**o).activation for o in ({}, {"activation": "gelu"}))
    yield "activation", X.clamp(min=0), relu(X)
    yield "activation", X * (1 + torch.erf(X / math.sqrt(2))) / 2, gelu(X)

    layer = nn.TransformerEncoderLayer(D, H, FF)
    rates = [m.p for m in layer.modules() if isinstance(m, nn.Dropout)]
    yield "dropout", [0.1] * 4, [*rates, layer.self_attn.dropout]
    for place, part, names in (  # where all is dropped, it is as if these were 0
        ("self_attn.dropout", "self_attn.out_proj", ["weight"]),
        ("dropout1.p", "self_attn.out_proj", ["weight", "bias"]),
        ("dropout.p", "linear2", ["weight"]),
        ("dropout2.p", "linear2", ["weight", "bias"]),
    ):
        dropping, without = layer_of(), layer_of()
        module, attribute = place.split(".")
        setattr(dropping.get_submodule(module), attribute, 1.0)
        for name in names:
            without.get_parameter(f"{part}.{name}").data.zero_()
        yield "dropout", without(X), dropping(X)

    vit = lesson_47.ViT(8, 4, 1, D, H, FF, 2, 3)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    for stack, alike in ((encoder.layers, True), (vit.blocks, False)):
        first, last = (layer.linear1.weight for layer in stack)
        assert first is not last  # copied, not shared
        yield "layers of a stack", torch.equal(first, last), alike

    row, real = "train, eval and no_grad", torch.arange(T) < torch.tensor([[3], [4]])
    for heads, hidden in itertools.product((H, 3), (None, ~real)):
        with patch.object(torch, FAST, wraps=getattr(torch, FAST)) as fast:
            training, *others = modes(layer_of(heads), src_key_padding_mask=hidden)
        yield row, fast.call_count, 1 if heads % 2 == 0 else 0
        yield from ((row, training, other) for other in others)

    for encoder, mask, packs in (
        (encoder_of(), real, True),
        (encoder_of(norm=nn.LayerNorm(D)), real, True),
        (encoder_of(), real.flip(1), False),  # padding at the front
        (encoder_of(nested=False), real, False),
        (encoder_of(heads=3), real, False),
        (encoder_of(norm_first=True), real, False),
    ):
        numbers, evaluation, no_grad = modes(encoder, src_key_padding_mask=~mask)
        yield "output at padding", numbers, evaluation
        if packs:
            zeros = (encoder.norm or nn.Identity())(torch.zeros_like(X))
            numbers = numbers.where(mask.unsqueeze(-1), zeros)
        yield "output at padding", numbers, no_grad

    row, memory, later = "encoder, decoder, decoder-only", normal(B, 7, D), X.clone()
    later[:, 3] += 1.0
    layer = layer_of(kind=nn.TransformerDecoderLayer)
    decoder, encoder = drawn(nn.TransformerDecoder(layer, 2)), encoder_of(nested=False)
    for causal in (None, lesson_46.causal_mask(T)):
        hidden, encoded = None if causal is None else ~causal, X
        for layer in encoder.layers:  # with a causal mask: decoder-only
            encoded = block(encoded, layer, causal)
        yield row, encoded, encoder(X, mask=hidden)
        decoded = decoder(X, memory, tgt_mask=hidden)
        by_memory = decoded - decoder(X, memory.flip(0), tgt_mask=hidden)
        by_later = (decoded - decoder(later, memory, tgt_mask=hidden))[:, :3]
        moved = [(change.abs() > 1e-9).any() for change in (by_memory, by_later)]
        yield row, [True, causal is None], moved


def vocabulary():
    uses = [n for n in LESSON_NAMES if "nn.Embedding" in path_of(n).read_text("utf-8")]
    assert uses == ["46"], "the table names them"
    embedding, output = nn.Embedding(V, D), nn.Linear(D, V, bias=False)
    ids = torch.tensor([[3, 0, 6, 3, 1], [2, 2, 5, 4, 0]])  # (B, T)
    yield "embedding scale", embedding.weight[ids], embedding(ids)
    model = nn.ModuleList([embedding, output])
    yield "weight tying", 2 * V * D, lesson_46.count_parameters(model)
    output.weight = embedding.weight
    yield "weight tying", V * D, lesson_46.count_parameters(model)


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
    cases = [*theme()]
    assert {name for name, *_ in cases} <= ROWS.keys(), "no row of the table"
    cases = [map(torch.as_tensor, pair) for name, *pair in cases if name == row]
    assert cases
    for expected, result in cases:
        assert_equal(result.detach(), expected.detach())
