"""Functions that several lessons repeat, each copy held to PyTorch's own."""

import contextlib
import copy
import inspect
import io
import math
import re
import statistics

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from hypothesis import strategies as st

from tests.checking import LIMIT, checks_of, equal, mlp, sdpa, seeded
from tools.faults import Notebook
from tools.notebooks import LESSON_NAMES, data_of

ACTIVATIONS = {"47": nn.GELU}  # elsewhere nn.ReLU
CLASSES = ["45", "47"]  # labels are numbers of classes, elsewhere 0.0 or 1.0


def takes_mask(function):
    return "mask" in inspect.signature(function).parameters


@equal("attention")
def test_attention(lesson, normal, mask, lead, T_q, T_k, d, d_v, seed):
    q, k, v = normal(*lead, T_q, d), normal(*lead, T_k, d), normal(*lead, T_k, d_v)
    yield lesson.attention(q, k, v), sdpa(q, k, v)
    if takes_mask(lesson.attention):
        may, key = mask(T_q, T_k), seed % T_k
        ours = lesson.attention(q, k, v, may)
        yield ours, sdpa(q, k, v, may)
        others = [x.index_fill(-2, torch.tensor(key), 9.0) for x in (k, v)]
        moved = (lesson.attention(q, *others, may)[0] != ours[0]).any(-1)
        yield (moved & ~may[:, key]).any(), False  # by a key that is hidden
        may[0] = False  # a row that sees nothing is NaN, and no other
        empty = lesson.attention(q, k, v, may)[0].isnan().all(-1)
        yield empty, (~may.any(-1)).expand(*lead, T_q)


@equal("causal_mask")
def test_causal_mask(lesson, T):
    yield lesson.causal_mask(T), torch.arange(T) <= torch.arange(T).unsqueeze(1)


@equal("multihead_attention")
def test_multihead_attention(lesson, normal, module, mask, B, T, H, d_head):
    D, may = H * d_head, mask(T, T)
    x, mha = normal(B, T, D), module(nn.MultiheadAttention(D, H, batch_first=True))
    ours = lesson.multihead_attention(x, mha)
    yield ours, mha(x, x, x)[0]
    other = torch.cat([x[:1], 3 * x[1:] + 1])  # row 0 knows nothing of the others
    yield (lesson.multihead_attention(other, mha)[0] == ours[0]).all(), True
    if takes_mask(lesson.multihead_attention):
        reference, _ = mha(x, x, x, attn_mask=~may)
        yield lesson.multihead_attention(x, mha, may), reference


@equal("layer_norm", D=st.integers(4, 9), eps=st.sampled_from([1e-5, 1e-2]))
def test_layer_norm(lesson, normal, module, lead, D, eps):
    x, norm = normal(*lead, D), module(nn.LayerNorm(D, eps=eps))
    yield lesson.layer_norm(x, norm), norm(x)


@equal("feed_forward")
def test_feed_forward(lesson, number, normal, module, lead, D, FF):
    net = mlp(D, FF, D, activation=ACTIVATIONS.get(number, nn.ReLU))
    x, net = normal(*lead, D), module(net)
    yield lesson.feed_forward(x, net[0], net[2]), net(x)


@equal("count_parameters")
def test_count_parameters(lesson, d_head, H, FF):
    D = d_head * H
    layer = nn.TransformerEncoderLayer(D, H, FF)
    yield lesson.count_parameters(layer), 4 * D**2 + 2 * D * FF + FF + 9 * D
    yield lesson.count_parameters(nn.Sequential(nn.ReLU(), nn.BatchNorm1d(D))), 2 * D


@equal("randomize_")
def test_randomize(lesson, D, seed, scale):
    for std in ([], [scale]):
        model, generator = nn.Sequential(nn.Linear(2, D), nn.LayerNorm(D)), seeded(seed)
        yield lesson.randomize_(model, seed, *std) is model, True
        for p in model.state_dict().values():
            drawn = torch.randn(p.shape, generator=generator)
            yield p, (scale if std else 0.5) * drawn


GAPS = st.sampled_from([0.0, 0.9, -0.9, 1.1, -1.1, 1e6, math.nan, math.inf])


@equal("compare", examples=80, gap=GAPS, place=st.sampled_from([0, -1]))
def test_compare(lesson, dtype, T, n, gap, place):
    reference = 1000 * torch.ones(T, n, dtype=dtype)
    reference[place, place] = math.nan if math.isnan(gap) else 0.25
    ours = reference.clone()
    ours[place, place] += gap * LIMIT[dtype]
    fails = contextlib.nullcontext() if abs(gap) < 1 else pytest.raises(AssertionError)
    with contextlib.redirect_stdout(io.StringIO()) as printed, fails:
        lesson.compare("x", ours, reference)
    label = "x, float64" if dtype == torch.float64 else "x"
    difference = (ours - reference)[place, place].abs()
    yield printed.getvalue(), f"{label}: {difference:.2e}\n"


@equal("report", values=st.lists(st.integers(0, 100), min_size=2, max_size=5))
def test_report(lesson, values):
    mean, deviation = statistics.mean(values), statistics.stdev(values)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        lesson.report("x", [float(value) for value in values])
    yield printed.getvalue(), f"x = {mean:.1f}%  (+/- {deviation:.1f}%)\n"


@equal("accuracy")
def test_accuracy(lesson, number, normal, n, d):
    logits, y = normal(n, d + 1).detach(), torch.arange(n) % (d + 1)
    hits = [max(row) == row[i] for row, i in zip(logits.tolist(), y, strict=True)]
    if number not in CLASSES:
        logits, y = logits[:, 0], (y == 0).float()
        hits = [(a > 0) == (b == 1) for a, b in zip(logits, y, strict=True)]
    yield lesson.accuracy(nn.Sequential(), logits, y), 100 * sum(hits) / n


STEPS = {"45": 200, "46": 300, "47": 200}


@equal("fit", examples=3)
def test_fit(lesson, number, n, seed):
    x, y = torch.randn(n, 4, generator=seeded(seed)), torch.arange(n) % 2
    theirs, loss, given = nn.Linear(4, 3), F.cross_entropy, []
    if number not in CLASSES:
        theirs, y = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)), y.float()
        loss = F.binary_cross_entropy_with_logits
    ours, optimizer = copy.deepcopy(theirs), torch.optim.Adam(theirs.parameters(), 0.01)
    generator, rows = seeded(seed), slice(None)
    for step in range(STEPS[number]):
        if number == "47":  # warm-up, decay, and batches
            rate, given = min((step + 1) / 4000, 0.01) * (1 - step / 200), [seed]
            optimizer.param_groups[0]["lr"] = rate
            rows = torch.randint(n, (64,), generator=generator)
        optimizer.zero_grad()
        loss(theirs(x[rows]), y[rows]).backward()
        optimizer.step()
    yield lesson.fit(ours, x, y, *given).state_dict(), theirs.state_dict()


@pytest.mark.parametrize("number", LESSON_NAMES)
def test_every_function_is_held_or_exempt(number):
    notebook, checks = Notebook(number), checks_of(number)
    drawing = "\n".join(c.source for c in notebook.cells if "plt." in c.source)
    figures = re.findall(r"^(?:def|class) (\w+)", drawing, re.MULTILINE)
    defined = notebook.definitions.keys() - set(figures)
    own = [c for c in checks if c.pairs.__module__.endswith(f"lesson_{number}")]
    assert own, f"tests/lessons/lesson_{number}.py has no check made by @equal"
    held = {function for check in checks for function in check.functions}
    exempt = set(" ".join(data_of(number).get("EXEMPT", {}).values()).split())
    free = sorted(defined - held - exempt)
    assert not free, f"Lesson {number}: neither held by @equal nor in EXEMPT: {free}"
    needless = sorted(exempt - (defined - held))
    assert not needless, f"Lesson {number}: needlessly in EXEMPT: {needless}"
