"""What the property tests share: the search, what it draws, and a register.

A property is a test that holds for all inputs of a kind. `holds_for` makes one
of a function: it names the functions of a lesson that the property is about,
the inputs to draw, and at least one fault that the property must reject. The
register lets `test_properties.py` ask whether every function has a property,
and whether every property rejects its faults.

The examples are the same for the same code. To look further, at five times as
many others:

    PROPERTY_SEARCH=5 pytest tests -k properties --hypothesis-seed=1
"""

import ast
import copy
import os
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace

import nbformat
import pytest
import torch
from hypothesis import HealthCheck, given, register_random, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers

from lesson_code import LESSON_FILES, lesson_path, load_lesson
from parity import LIMIT

LESSONS = [path.stem[:2] for path in LESSON_FILES]
FURTHER = int(os.environ.get("PROPERTY_SEARCH", "0"))
EXAMPLES = 30
SEARCH = settings(
    derandomize=not FURTHER,
    database=None,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow],
)
# Hypothesis also tries numbers that stand in the modules imported so far, which
# other tests decide (and keeps them in a folder): without, a test draws the same
# alone and in company
assert providers._get_local_constants
providers._get_local_constants = providers.Constants


class TorchRandom:
    """PyTorch's global generator: each example finds it in the same state.

    What it was before comes back afterwards.
    """

    seed = staticmethod(torch.manual_seed)
    getstate = staticmethod(torch.get_rng_state)
    setstate = staticmethod(torch.set_rng_state)


TORCH_RANDOM = TorchRandom()  # Hypothesis holds no reference of its own
register_random(TORCH_RANDOM)


# ---- the register ------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """A mistake in a lesson's function: `new` in the place of `old`."""

    lesson: str
    function: str
    old: str
    new: str


@dataclass(frozen=True)
class Property:
    """A check(lesson, **drawn) that holds for everything that is drawn."""

    check: object
    functions: tuple
    lessons: tuple
    faults: tuple
    examples: int
    draws: dict

    @property
    def name(self):
        """Unlike the function's, it is one property's alone."""
        where = self.check.__module__.removeprefix("test_properties_")
        return f"{where}-{self.check.__name__.removeprefix('test_')}"

    def searched(self, **options):
        """The check as a function of the lesson, which tries the examples."""
        options = {"max_examples": self.examples * max(FURTHER, 1), **options}
        check = given(**self.draws)(self.check)
        return settings(SEARCH, **options)(check)


class Lesson(SimpleNamespace):
    """A lesson's functions; shown by the lesson's name in a report."""

    def __repr__(self):
        return f"Lesson {self.number}"


@cache
def lesson_called(name):
    return Lesson(**vars(load_lesson(name)), number=name)


PROPERTIES = []


def holds_for(*functions, faults, lessons=None, takes=(), examples=EXAMPLES, **draws):
    """Make a check a property of these functions, in each lesson with all of them.

    faults: one or more tuples as in Fault.
    lessons: these only; takes: parameters which the first function must have.
    draws: a strategy for each argument of the check but `lesson`.
    """
    having = tuple(
        name
        for name in lessons or LESSONS
        if all(hasattr(load_lesson(name), function) for function in functions)
        and set(takes) <= parameters(getattr(load_lesson(name), functions[0]))
    )

    def register(check):
        planted = tuple(Fault(*fault) for fault in faults)
        new = Property(check, functions, having, planted, examples, draws)
        PROPERTIES.append(new)
        objects = [lesson_called(name) for name in having]
        return pytest.mark.parametrize("lesson", objects, ids=having)(new.searched())

    return register


def parameters(function):
    """The names of a function's parameters; of a class none."""
    code = getattr(function, "__code__", None)
    return set(code.co_varnames[: code.co_argcount]) if code else set()


@cache
def definitions(name):
    """The source of each function and class of a lesson, decorators included."""
    sources = {}
    for cell in nbformat.read(lesson_path(name), as_version=4).cells:
        if cell.cell_type != "code":
            continue
        for node in ast.parse(cell.source).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                above = [node, *node.decorator_list]
                start = min(part.lineno for part in above) - 1
                lines = cell.source.splitlines()[start : node.end_lineno]
                sources[node.name] = "\n".join(lines) + "\n"
    return sources


def put(monkeypatch, name, function, value):
    """Let a lesson, and all its functions, have `value` for `function`."""
    lesson = lesson_called(name)
    monkeypatch.setattr(lesson, function, value)
    monkeypatch.setitem(lesson.compare.__globals__, function, value)
    return lesson


def plant(monkeypatch, fault):
    """The lesson with a fault in it, until the test's end."""
    source = definitions(fault.lesson)[fault.function]
    if source.count(fault.old) != 1:
        count = source.count(fault.old)
        raise ValueError(f"stale: {fault}: stands there {count} times")
    namespace, defined = load_lesson(fault.lesson).compare.__globals__, {}
    exec(source.replace(fault.old, fault.new), namespace, defined)
    return put(monkeypatch, fault.lesson, fault.function, defined[fault.function])


# ---- what is drawn -----------------------------------------------------------

seeds = st.integers(0, 9999)
sizes = st.integers(1, 6)
dtypes = st.sampled_from([torch.float32, torch.float64])
leads = st.lists(st.integers(1, 3), max_size=2).map(tuple)
scales = st.sampled_from([0.1, 1.0, 3.0])
# (H, d_head)
heads = st.tuples(st.integers(1, 4), st.integers(1, 4))
# wide enough for a layer norm: of one number it is constant, and of two that
# happen to be close it enlarges their rounding
wide_heads = heads.filter(lambda pair: pair[0] * pair[1] >= 4)


def bits(number, width):
    return [bool(number >> place & 1) for place in range(width)]


@st.composite
def masks(draw, T_q=None, T_k=None, empty_rows=False):
    """(T_q, T_k) bool, True = may attend; each query has a key, or need not.

    T_k is T_q where neither is given.
    """
    T_q = T_q or draw(sizes)
    T_k = T_k or T_q
    row = st.integers(0 if empty_rows else 1, 2**T_k - 1)
    rows = draw(st.lists(row, min_size=T_q, max_size=T_q))
    return torch.tensor([bits(number, T_k) for number in rows])


cross_masks = st.tuples(sizes, sizes).flatmap(lambda T: masks(*T))
masks_with_empty_rows = st.tuples(sizes, sizes).flatmap(lambda T: masks(*T, True))


def permutation(n, seed):
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))


def randomised(module, seed, dtype=torch.float64):
    """All parameters from N(0, 0.5^2), without the lesson's help."""
    module = module.to(dtype)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0.0, 0.5, generator=generator)
    return module


def attention_module(H, d_head, seed, dtype=torch.float64):
    mha = torch.nn.MultiheadAttention(H * d_head, H, batch_first=True)
    return randomised(mha, seed, dtype)


def twin(module, **parameters):
    """A copy of the module with other numbers in some of its parameters."""
    module = copy.deepcopy(module)
    with torch.no_grad():
        for name, value in parameters.items():
            module.get_parameter(name).copy_(value)
    return module


# ---- what "equal" means --------------------------------------------------------


def assert_close(ours, reference, size=1.0):
    """Equal to the limit, relative to the largest of 1, `size` and the numbers."""
    limit = LIMIT[reference.dtype] * max(size, 1.0, reference.abs().max().item())
    torch.testing.assert_close(ours, reference, rtol=0, atol=limit)


def assert_gradients_hold(function, *inputs):
    """Gradients are those of finite differences; inputs: float64 tensors.

    Parameters of a module that `function` uses may be among the inputs.
    """
    inputs = [tensor.requires_grad_() for tensor in inputs]
    assert torch.autograd.gradcheck(
        lambda *_: function(*inputs), inputs, fast_mode=True, raise_exception=False
    )
