"""Every function of every lesson has a property, and every property can fail.

The properties stand in test_properties_*.py; the register is in strategies.py.
"""

import importlib
from pathlib import Path

import pytest
import torch
from hypothesis import Phase, given, settings

from strategies import (
    LESSONS,
    PROPERTIES,
    SEARCH,
    Fault,
    definitions,
    plant,
    put,
    seeds,
    sizes,
)

for path in sorted(Path(__file__).parent.glob("test_properties_*.py")):
    importlib.import_module(path.stem)  # registers its properties

TRAINS = "trains a model: its result is an experiment, judged by printed bands"
PRINTS = "only prints: a line of text that nbval compares"
EXEMPT = {
    "37": {
        "fit_and_record": TRAINS,
        "train_eval": TRAINS,
        "report": PRINTS,
        "report_runs": PRINTS,
    },
    "45": {
        "heat_map": "only draws: the figure has an alternative text",
        "fit": TRAINS,
        "train_eval": TRAINS,
        "report": PRINTS,
    },
    "46": {"fit": TRAINS, "train_eval": TRAINS, "report": PRINTS},
    "47": {"fit": TRAINS, "train_eval": TRAINS, "report": PRINTS},
}

COVERED = {
    (lesson, function)
    for prop in PROPERTIES
    for lesson in prop.lessons
    for function in prop.functions
}


def uncovered(lesson, defined):
    """(functions with neither property nor reason, reasons that are not needed)."""
    have = {function for name, function in COVERED if name == lesson}
    exempt = set(EXEMPT.get(lesson, {}))
    return set(defined) - have - exempt, exempt & have | exempt - set(defined)


@pytest.mark.parametrize("lesson", LESSONS)
def test_every_function_has_a_property_or_a_reason(lesson):
    missing, needless = uncovered(lesson, definitions(lesson))
    assert not missing, f"Lesson {lesson}: no property for {sorted(missing)}"
    assert not needless, f"Lesson {lesson}: needless exemptions {sorted(needless)}"
    assert all(EXEMPT.get(lesson, {}).values())


def test_each_property_has_a_name_of_its_own():
    names = [prop.name for prop in PROPERTIES]
    assert len(set(names)) == len(names)


def test_a_new_function_and_a_lost_one_are_told():
    defined = set(definitions("46"))
    assert uncovered("46", defined | {"new"}) == ({"new"}, set())
    assert uncovered("46", defined - {"fit"}) == (set(), {"fit"})
    assert "attention" in uncovered("99", {"attention"})[0]


def refuse(*_, **__):
    raise AssertionError("the property calls the function")


def fails(prop, lesson):
    """The message of the first example that contradicts, unshrunk.

    Another exception is the code's, which then does not run, and passes on.
    """
    with pytest.raises((AssertionError, pytest.fail.Exception)) as caught:
        prop.searched(phases=[Phase.generate], max_examples=prop.examples)(lesson)
    return str(caught.value)


@pytest.mark.parametrize("prop", PROPERTIES, ids=lambda prop: prop.name)
def test_a_property_is_about_what_it_says(prop, monkeypatch):
    """It calls each function it is registered for, in each lesson."""
    assert prop.lessons
    for lesson in prop.lessons:
        for function in prop.functions:
            with monkeypatch.context() as patch:
                faulty = put(patch, lesson, function, refuse)
                assert "calls the function" in fails(prop, faulty)


@pytest.mark.parametrize("prop", PROPERTIES, ids=lambda prop: prop.name)
def test_a_fault_breaks_the_property(prop, monkeypatch):
    """Each has at least one, in a lesson that it is about."""
    assert prop.faults
    for fault in prop.faults:
        assert fault.lesson in prop.lessons
        with monkeypatch.context() as patch:
            fails(prop, plant(patch, fault))


def test_examples_do_not_depend_on_what_else_is_imported(tmp_path, monkeypatch):
    """Hypothesis would draw numbers from a module of the project, once imported."""

    def draw():
        drawn = []
        check = given(seed=seeds, size=sizes)(lambda **values: drawn.append(values))
        settings(SEARCH, derandomize=True, max_examples=200)(check)()
        return drawn

    before = draw()
    numbers = ", ".join(map(str, range(7000, 7100)))
    (tmp_path / "some_numbers.py").write_text(f"NUMBERS = [{numbers}]")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("some_numbers")
    assert draw() == before


def test_the_global_generator_is_the_same_for_each_example_and_left_alone():
    drawn = []
    check = given(seed=seeds)(lambda seed: drawn.append(torch.rand(()).item()))
    before = torch.get_rng_state()
    settings(SEARCH, max_examples=10)(check)()
    assert len(set(drawn)) == 1
    assert torch.equal(torch.get_rng_state(), before)


def test_a_fault_that_is_no_longer_in_the_code_is_refused(monkeypatch):
    fault = Fault("46", "attention", "sqrt(d_head)", "sqrt(D)")
    with pytest.raises(ValueError, match="stale: .*stands there 0 times"):
        plant(monkeypatch, fault)
