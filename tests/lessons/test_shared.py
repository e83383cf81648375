"""Functions that several lessons repeat, each copy held to PyTorch's own."""

import ast
import contextlib
import inspect
import io
import math
import statistics

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from hypothesis import strategies as st

from tests.checking import LIMIT, checks_of, equal, seeded
from tools.notebooks import EXERCISE_NAMES, LESSON_NAMES, data_of, load, path_of, read

ACTIVATIONS = {"47": nn.GELU}  # elsewhere nn.ReLU
CLASSES = ["45", "47"]  # labels are numbers of classes, elsewhere 0.0 or 1.0


def takes_mask(function):
    return "mask" in inspect.signature(function).parameters


def print_of(function, *arguments):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        function(*arguments)
    return printed.getvalue()


@equal("attention")
def test_attention(lesson, normal, lead, T_q, T_k, d, d_v, dtype):
    q, k, v = normal(*lead, T_q, d), normal(*lead, T_k, d), normal(*lead, T_k, d_v)
    unit = torch.eye(T_k, dtype=dtype).expand(*lead, T_k, T_k)
    ours, weights = lesson.attention(q, k, v)
    yield ours, F.scaled_dot_product_attention(q, k, v)
    yield weights, F.scaled_dot_product_attention(q, k, unit)


@equal("attention")
def test_masked_attention(lesson, normal, mask, lead, T_q, T_k, d, d_v, seed):
    if takes_mask(lesson.attention):
        q, k, v = normal(*lead, T_q, d), normal(*lead, T_k, d), normal(*lead, T_k, d_v)
        may, hidden = mask(T_q, T_k), seed % T_k
        ours, weights = lesson.attention(q, k, v, may)
        yield ours, F.scaled_dot_product_attention(q, k, v, may)
        yield weights.masked_fill(may, 0), torch.zeros_like(weights)
        other = [t.index_fill(-2, torch.tensor(hidden), 9.0) for t in (k, v)]
        rows = ~may[:, hidden]  # what is hidden from a query moves nothing
        yield (lesson.attention(q, *other, may)[0] == ours)[..., rows, :].all(), True
        may[0] = False  # a row that sees nothing is NaN, and no other
        empty = lesson.attention(q, k, v, may)[0].isnan().all(-1)
        yield empty, (~may.any(-1)).expand(*lead, T_q)


@equal("causal_mask")
def test_causal_mask(lesson, T):
    places = torch.arange(T)
    yield lesson.causal_mask(T), places <= places.unsqueeze(1)


@equal("multihead_attention")
def test_multihead_attention(lesson, normal, module, mask, B, T, H, d_head):
    x, D = normal(B, T, H * d_head), H * d_head
    mha, may = module(nn.MultiheadAttention(D, H, batch_first=True)), mask(T, T)
    ours = lesson.multihead_attention(x, mha)
    yield ours, mha(x, x, x)[0]
    other = torch.cat([x[:1], 3 * x[1:] + 1])  # a row knows nothing of the others
    yield (lesson.multihead_attention(other, mha)[0] == ours[0]).all(), True
    if takes_mask(lesson.multihead_attention):
        masked = lesson.multihead_attention(x, mha, may)
        yield masked, mha(x, x, x, attn_mask=~may)[0]


@equal("layer_norm", D=st.integers(4, 9), eps=st.sampled_from([1e-5, 1e-2]))
def test_layer_norm(lesson, normal, module, lead, D, eps):
    x, norm = normal(*lead, D), module(nn.LayerNorm(D, eps=eps))
    yield lesson.layer_norm(x, norm), norm(x)


@equal("feed_forward")
def test_feed_forward(lesson, number, normal, module, lead, D, FF):
    activation = ACTIVATIONS.get(number, nn.ReLU)()
    net = module(nn.Sequential(nn.Linear(D, FF), activation, nn.Linear(FF, D)))
    x = normal(*lead, D)
    yield lesson.feed_forward(x, net[0], net[2]), net(x)


@equal("count_parameters")
def test_count_parameters(lesson, d_head, H, FF):
    D = d_head * H
    layer = nn.TransformerEncoderLayer(D, H, FF)
    yield lesson.count_parameters(layer), 4 * D**2 + 2 * D * FF + FF + 9 * D
    yield lesson.count_parameters(nn.Sequential(nn.ReLU(), nn.BatchNorm1d(D))), 2 * D


@equal("randomize_", std=st.sampled_from([0.1, 2.0]))
def test_randomize(lesson, D, seed, std):
    generator, standard = seeded(seed), seeded(seed)
    one, two = (nn.Sequential(nn.Linear(2, D), nn.LayerNorm(D)) for _ in range(2))
    assert lesson.randomize_(one, seed, std) is one
    lesson.randomize_(two, seed)
    for p, q in zip(one.parameters(), two.parameters(), strict=True):
        yield p.detach(), std * torch.randn(p.shape, generator=generator)
        yield q.detach(), 0.5 * torch.randn(q.shape, generator=standard)


@equal(
    "compare",
    examples=80,
    gap=st.sampled_from([0.0, 0.9, 1.1, 1e6, math.nan, math.inf]),
    sign=st.sampled_from([-1, 1]),
    place=st.sampled_from([0, -1]),
)
def test_compare(lesson, dtype, T, n, gap, sign, place):
    reference = 1000 * torch.ones(T, n, dtype=dtype)
    reference[place, place] = math.nan if math.isnan(gap) else 0.25
    ours = reference.clone()
    ours[place, place] += sign * gap * LIMIT[dtype]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        with contextlib.nullcontext() if gap < 1 else pytest.raises(AssertionError):
            lesson.compare("x", ours, reference)
    label = "x, float64" if dtype == torch.float64 else "x"
    difference = (ours - reference)[place, place].abs()
    yield printed.getvalue() == f"{label}: {difference:.2e}\n", True


@equal(
    "report", values=st.lists(st.integers(0, 100).map(float), min_size=2, max_size=5)
)
def test_report(lesson, values):
    mean, deviation = statistics.mean(values), statistics.stdev(values)
    line = f"x = {mean:.1f}%  (+/- {deviation:.1f}%)\n"
    yield print_of(lesson.report, "x", values) == line, True


@equal("accuracy")
def test_accuracy(lesson, number, normal, n, d):
    logits, right = normal(n, d + 1).detach(), normal(n, d + 1).detach().argmax(-1)
    hits = [max(row) == row[i] for row, i in zip(logits.tolist(), right.tolist())]
    if number not in CLASSES:
        logits, right = logits[:, 0], (right == 0).float()
        hits = [(a > 0) == (b == 1) for a, b in zip(logits.tolist(), right.tolist())]
    model = nn.Flatten(0) if logits.dim() == 1 else nn.Identity()
    yield lesson.accuracy(model, logits, right), 100 * sum(hits) / n


@pytest.mark.parametrize("number", LESSON_NAMES)
def test_accuracies_rest_on_2000_fresh_items(number):
    n_test = inspect.signature(load(number).make_data).parameters["n_test"]
    assert n_test.default >= 2000


def code_of(name):
    """Return each function and class of a notebook, without its docstring."""
    found = {}
    for cell in read(path_of(name)).cells:
        for node in ast.parse(cell.source).body if cell.cell_type == "code" else []:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                node.body = node.body[ast.get_docstring(node) is not None :]
                found[node.name] = ast.dump(node)
    return found


@pytest.mark.parametrize("number", LESSON_NAMES)
def test_every_function_is_held_or_exempt(number):
    checks, exempt = checks_of(number), data_of(number).get("EXEMPT", {})
    held = {function for check in checks for function in check.functions}
    own = [c for c in checks if c.pairs.__module__.endswith(f"lesson_{number}")]
    assert own, f"tests/lessons/lesson_{number}.py has no check made by `equal`"
    missing = sorted(set(code_of(number)) - held - set(exempt))
    assert not missing, (
        f"Lesson {number}: neither held by `equal` nor exempt: {missing}"
    )
    needless = sorted(set(exempt) & held | set(exempt) - set(code_of(number)))
    assert not needless, f"Lesson {number}: needlessly exempt: {needless}"


@pytest.mark.parametrize("name", EXERCISE_NAMES)
def test_exercises_repeat_functions_unchanged(name):
    lessons = [code_of(number) for number in LESSON_NAMES]
    for function, code in code_of(name).items():
        known = [lesson[function] for lesson in lessons if function in lesson]
        assert code in known or not known, f"{name}: {function} is not the lesson's"
