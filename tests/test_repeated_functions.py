"""Functions that several lessons repeat, because each must run alone: every
copy is held to PyTorch's own, by the same tests.

`lesson` is each notebook that defines all the functions a test names.
"""

import math

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from lesson_code import LESSON_FILES, NOTEBOOKS, load_lesson
from parity import assert_equal, assert_gradients_equal, dtypes, gradients, make_input

NAMES = [path.stem[:2] if path in LESSON_FILES else path.stem for path in NOTEBOOKS]


def lessons_with(*names):
    """Parametrise a test with the lessons that define all these functions."""
    lessons = {name: load_lesson(name) for name in NAMES}
    having = {
        name: lesson
        for name, lesson in lessons.items()
        if all(hasattr(lesson, function) for function in names)
    }
    return pytest.mark.parametrize("lesson", having.values(), ids=having.keys())


@lessons_with("compare")
def test_compare_prints_the_largest_difference(lesson, capsys):
    lesson.compare("max abs diff", torch.tensor([0.0, 2e-6]), torch.zeros(2))
    assert capsys.readouterr().out == "max abs diff: 2.00e-06\n"


@lessons_with("compare")
@pytest.mark.parametrize("wrong", [2e-5, -2e-5, math.nan, math.inf], ids=str)
def test_compare_rejects(lesson, wrong):
    with pytest.raises(AssertionError):
        lesson.compare("diff", torch.tensor([0.0, wrong]), torch.zeros(2))


@lessons_with("compare")
def test_compare_is_stricter_in_float64(lesson):
    zeros = torch.zeros(2).double()
    with pytest.raises(AssertionError):
        lesson.compare("diff", zeros + 1e-11, zeros)


@lessons_with("randomize_")
def test_randomize_reaches_every_parameter(lesson):
    torch.manual_seed(0)
    layer = lesson.randomize_(nn.TransformerEncoderLayer(16, 4, 32), seed=1)
    for name, parameter in layer.named_parameters():
        assert 0.2 < parameter.std() < 0.9, name
        assert parameter.abs().min() > 0, name


@lessons_with("report")
def test_report_prints_mean_and_standard_deviation(lesson, capsys):
    lesson.report("x", [90.0, 100.0])
    assert capsys.readouterr().out == "x = 95.0%  (+/- 7.1%)\n"


@lessons_with("attention")
@dtypes
@pytest.mark.parametrize("lead", [(), (2,), (2, 3)], ids=str)
@pytest.mark.parametrize("T_q, T_k, d, d_v", [(1, 1, 1, 1), (3, 5, 8, 6), (6, 2, 7, 3)])
def test_attention(lesson, lead, T_q, T_k, d, d_v, dtype):
    q = make_input(*lead, T_q, d, dtype=dtype, seed=0).requires_grad_()
    k = make_input(*lead, T_k, d, dtype=dtype, seed=1).requires_grad_()
    v = make_input(*lead, T_k, d_v, dtype=dtype, seed=2).requires_grad_()
    output, weights = lesson.attention(q, k, v)
    reference = F.scaled_dot_product_attention(q, k, v)
    assert_equal(output, reference)
    assert weights.shape == (*lead, T_q, T_k)
    assert_equal(weights.sum(dim=-1), torch.ones(*lead, T_q, dtype=dtype))
    assert_gradients_equal(gradients(output, q, k, v), gradients(reference, q, k, v))


@lessons_with("layer_norm", "randomize_")
@dtypes
@pytest.mark.parametrize("lead", [(), (3,), (2, 5)], ids=str)
@pytest.mark.parametrize("D", [2, 5, 16])
def test_layer_norm(lesson, lead, D, dtype):
    norm = lesson.randomize_(nn.LayerNorm(D, dtype=dtype), seed=1)
    x = make_input(*lead, D, dtype=dtype).requires_grad_()
    ours, reference = lesson.layer_norm(x, norm), norm(x)
    assert_equal(ours, reference)
    inputs = [x, *norm.parameters()]
    assert_gradients_equal(gradients(ours, *inputs), gradients(reference, *inputs))


@lessons_with("layer_norm", "randomize_")
def test_layer_norm_has_eps_inside_the_root(lesson):
    """With nearly constant tokens eps decides, so a misplaced one shows."""
    norm = lesson.randomize_(nn.LayerNorm(8, eps=1e-2).double(), seed=1)
    x = 1.0 + 1e-2 * make_input(4, 8)
    assert_equal(lesson.layer_norm(x, norm), norm(x))
