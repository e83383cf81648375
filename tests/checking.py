"""Hold functions of the lessons to a reference on drawn inputs.

    @equal("attention")
    def test_attention(lesson, normal, T_q, T_k, d, d_v):
        q, k, v = normal(T_q, d), normal(T_k, d), normal(T_k, d_v)
        yield lesson.attention(q, k, v)[0], F.scaled_dot_product_attention(q, k, v)

A parameter's name says what it is: drawn for each example (`DRAWN`), a method of
`Maker`, the `lesson`'s functions, or its `number`. Both of each pair that is yielded
must be equal: values, and gradients by all numbers that the maker made. In
lesson_NN.py a check is about that lesson, elsewhere about all with such functions.
"""

import importlib
import inspect
from functools import partial
from types import SimpleNamespace

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tools.notebooks import LESSON_NAMES, load

LIMIT = {torch.float32: 1e-5, torch.float64: 1e-12}
SEARCH = settings(
    derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
)
DRAWN = {
    **dict.fromkeys(["B", "T", "T_q", "T_k", "D", "FF"], st.integers(1, 6)),
    **dict.fromkeys(["d", "d_v", "n"], st.integers(1, 6)),
    **dict.fromkeys(["H", "d_head"], st.integers(1, 4)),
    **dict.fromkeys(["L", "P", "C", "rows", "cols"], st.integers(1, 3)),
    **dict.fromkeys(["causal", "use_pos", "training"], st.booleans()),
    "d_wide": st.integers(4, 5),  # layer norm enlarges the rounding of narrow tokens
    "lead": st.lists(st.integers(1, 3), max_size=2).map(tuple),
    "scale": st.sampled_from([0.5, 1.0, 4.0]),
    "noise": st.sampled_from([0.0, 0.1, 2.0]),
    "dtype": st.sampled_from(list(LIMIT)),
    "seed": st.integers(0, 9999),
}
CHECKS = []


def seeded(seed: int) -> torch.Generator:
    """Return a new generator."""
    return torch.Generator().manual_seed(seed)


class Maker:
    """Random tensors and modules of one example; gradients are taken by `leaves`."""

    def __init__(self, seed, dtype):
        self.generator, self.dtype, self.leaves = seeded(seed), dtype, []

    def normal(self, *shape):
        """Return standard normal numbers."""
        x = torch.randn(shape, generator=self.generator, dtype=torch.float64)
        self.leaves.append(x.to(self.dtype).requires_grad_())
        return self.leaves[-1]

    def module(self, module):
        """Return the module with all parameters redrawn, biases and norms included."""
        for parameter in module.to(self.dtype).parameters():
            parameter.data = 0.5 * self.normal(*parameter.shape).detach()
            self.leaves[-1] = parameter
        return module

    def mask(self, *shape):
        """Return a Boolean tensor, about half True, and no row without any."""
        mask = torch.rand(shape, generator=self.generator) > 0.5
        place = torch.randint(shape[-1], shape[:-1], generator=self.generator)
        return mask.scatter(-1, place.unsqueeze(-1), True)


def sdpa(q, k, v, mask=None):
    """Return the output and the weights of PyTorch's attention."""
    unit = torch.eye(k.shape[-2], dtype=k.dtype).expand(*k.shape[:-1], -1)
    return [F.scaled_dot_product_attention(q, k, x, mask) for x in (v, unit)]


def mlp(*widths, activation=nn.ReLU):
    """Return linear layers of these widths, an activation between any two."""
    pairs = zip(widths, widths[1:], strict=False)
    parts = [part for pair in pairs for part in (nn.Linear(*pair), activation())]
    return nn.Sequential(*parts[:-1])


def share_parameters(ours, theirs):
    """Return `ours` with the state and the very parameters of a module named alike."""
    ours.to(next(theirs.parameters()).dtype).load_state_dict(theirs.state_dict())
    for name, parameter in theirs.named_parameters():
        owner, _, last = name.rpartition(".")
        setattr(ours.get_submodule(owner), last, parameter)
    return ours


def by_hand(model):
    """Return the model, with PyTorch's modules in it good for their parameters only."""
    for module in model.modules():
        if type(module).__module__.startswith("torch.nn"):
            module.forward = None
    return model


def flat(value) -> list:
    """Return the tensors, numbers and texts of nested lists, tuples and dicts."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


def gradients(output, leaves):
    """Return the gradients of a sum that weighs each number of the output otherwise."""
    weights = torch.linspace(0.5, 1.5, output.numel(), dtype=output.dtype)
    total = (output.flatten() * weights).sum()
    return torch.autograd.grad(total, leaves, retain_graph=True, materialize_grads=True)


def assert_equal(ours, reference, leaves=()):
    """Demand equality, to the format's limit relative to 1 or the largest number."""
    if isinstance(reference, str):
        assert ours == reference, f"{ours!r} for {reference!r}"
        return
    reference = torch.as_tensor(reference)
    if not isinstance(ours, torch.Tensor):
        ours = torch.as_tensor(ours, dtype=reference.dtype)
    sizes = reference.detach().double().abs().nan_to_num(posinf=0).flatten().tolist()
    limit = LIMIT.get(reference.dtype, 0) * max([1.0, *sizes])
    torch.testing.assert_close(ours, reference, rtol=0, atol=limit, equal_nan=True)
    if reference.requires_grad:
        assert ours.requires_grad, "no gradient"
        both = gradients(ours, leaves), gradients(reference, leaves)
        for gradient, expected in zip(*both, strict=True):
            assert_equal(gradient, expected)


def try_example(pairs, lesson, number, drawn):
    """Hold each of a check's pairs equal, for one example."""
    torch.manual_seed(drawn["seed"])
    make = Maker(drawn["seed"], drawn["dtype"])
    known = {"lesson": lesson, "number": number, "mask": make.mask} | drawn
    known |= {"normal": make.normal, "module": make.module}
    wanted = inspect.signature(pairs).parameters
    for pair in pairs(**{name: known[name] for name in wanted}):
        for ours, reference in zip(*map(flat, pair), strict=True):
            assert_equal(ours, reference, make.leaves)


def equal(*functions, examples=25, **draws):
    """Make a generator of pairs a test in each of its lessons."""

    def register(pairs):
        known = DRAWN | draws
        wanted = {"seed", "dtype"} | known.keys() & inspect.signature(pairs).parameters
        drawn = st.fixed_dictionaries({name: known[name] for name in sorted(wanted)})
        number = pairs.__module__.rpartition("lesson_")[2]
        names = [number] if number in LESSON_NAMES else LESSON_NAMES
        having = [n for n in names if all(hasattr(load(n), f) for f in functions)]
        assert having, f"no lesson has all of {functions}"

        def hold(number, lesson, **options):
            example = partial(try_example, pairs, lesson, number)
            search = settings(SEARCH, **{"max_examples": examples} | options)
            search(given(drawn=drawn)(lambda drawn: example(drawn)))()

        @pytest.mark.parametrize("number", having)
        def test(number):
            hold(number, load(number))

        check = {"pairs": pairs, "functions": functions, "lessons": having}
        CHECKS.append(SimpleNamespace(hold=hold, **check))
        return test

    return register


def checks_of(number):
    """Return all checks that hold in a lesson; its own file must be there."""
    for module in (f"lesson_{number}", "test_shared"):
        importlib.import_module(f"tests.lessons.{module}")
    return [check for check in CHECKS if number in check.lessons]


def first_difference(number, lesson, functions, **options) -> str:
    """Return why functions of a changed lesson are wrong, in a line, or ""."""
    options = {"phases": [Phase.generate]} | options
    for check in checks_of(number):
        if not set(check.functions).isdisjoint(functions):
            try:
                check.hold(number, lesson, **options)
            except (Exception, pytest.fail.Exception) as error:
                words = " ".join(str(error).split())[:200]
                return f"{check.pairs.__name__}: {type(error).__name__}: {words}"
    return ""
