"""What the check of an exercise says: to the starter, to right answers and wrong ones.

Wrong answers need no list. Each check names usual mistakes and computes what they
give; and mutants of the worked answer are wrong, or shown to be equal to it.
"""

import ast
import copy
import io
import re
import signal
from contextlib import redirect_stdout
from unittest.mock import patch

import pytest
import torch

from tools.faults import Notebook
from tools.form import exercises_of
from tools.mutants import mutants
from tools.notebooks import EXERCISE_NAMES, LESSON_NAMES, data_of, load, path_of, read

JUDGE = ("Between", "show", "differs", "outcome", "judge")
SECONDS = 10  # of CPU, for one mutant
WRONG_KINDS = ["'words'", "torch.zeros(2, 3, 1)", "[]", "float('nan')"]

every_exercise = pytest.mark.parametrize(
    "name, starter",
    [(n, e.starter) for n in EXERCISE_NAMES for e in exercises_of(read(path_of(n)))],
)


def verdict(name, starter, code="", function=""):
    """Return in one line what a check prints about an answer.

    code: defines `function`, by default the starter's; it sees what the notebook
    imports and defines.
    """
    namespace = dict(vars(load(name)))
    exec(code, namespace)
    with redirect_stdout(io.StringIO()) as printed:
        namespace[f"check_{starter}"](namespace[function or starter])
    return " ".join(printed.getvalue().split())


def handed_to_judge(name, starter, answer=None):
    """Return the arguments with which a check of an answer calls `judge`."""
    check, calls = getattr(load(name), f"check_{starter}"), []
    with patch.dict(check.__globals__, judge=lambda *given: calls.append(given)):
        check(answer or getattr(load(name), starter))
    return calls[0]


def middle(value):
    """Return a result with the middle of each range in place of the range."""
    if isinstance(value, tuple):
        return tuple(map(middle, value))
    return (value.low + value.high) / 2 if hasattr(value, "low") else value


@every_exercise
def test_an_untouched_starter_is_not_attempted(name, starter):
    text = verdict(name, starter)
    assert re.fullmatch(r"Exercise \d+: not attempted yet; [^:]*", text)


@every_exercise
def test_another_right_answer_is_accepted(name, starter):
    code = data_of(name[:2])["ANSWERS"][name]
    assert f"def {starter}(" in code
    assert re.match(r"Exercise \d+: right\. ", verdict(name, starter, code))


@every_exercise
def test_each_mistake_is_named(name, starter):
    number, _, cases, expected, mistakes, sure = handed_to_judge(name, starter)
    assert len(mistakes) >= 3
    for words, mistake in mistakes.items():
        with redirect_stdout(io.StringIO()) as printed:
            load(name).judge(
                number,
                lambda *inputs, f=mistake: middle(f(*inputs)),
                *(cases, expected, mistakes, sure),
            )
        text = " ".join(printed.getvalue().split())
        assert f"Exercise {number}: wrong." in text
        assert text.endswith(f" mistake: {' '.join(words.split())}")


@every_exercise
@pytest.mark.parametrize("value", WRONG_KINDS)
def test_an_answer_of_a_wrong_kind_is_wrong(name, starter, value):
    code = f"def {starter}(*inputs):\n    return {value}"
    assert re.match(r"Exercise \d+: wrong\.", verdict(name, starter, code))


@every_exercise
def test_an_error_in_an_answer_is_told(name, starter):
    code = f"def {starter}(*inputs):\n    raise ValueError('lost at sea')"
    assert "an error, ValueError: lost at sea" in verdict(name, starter, code)


def worked_answers():
    """Return (name, starter, cell) of every worked answer that trains nothing."""
    for name in EXERCISE_NAMES:
        notebook = Notebook(name)
        for cell, trains in zip(notebook.cells, notebook.trains, strict=True):
            found = re.search(r"^def worked_(\w+)", cell.source, re.MULTILINE)
            if found and not trains:
                yield pytest.param(name, found[1], cell, id=f"{name}-{found[1]}")


def redrawn(inputs):
    """Return a case's inputs with other numbers in their tensors and modules."""
    inputs = copy.deepcopy(inputs)
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        for value in inputs:
            if isinstance(value, torch.nn.Module):
                for parameter in value.parameters():
                    parameter.normal_()
            elif isinstance(value, torch.Tensor) and value.is_floating_point():
                value.normal_()
    return inputs


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no time limit here")
@pytest.mark.parametrize("name, starter, cell", list(worked_answers()))
def test_mutants_of_the_worked_answer_are_wrong(name, starter, cell):
    lesson, function = load(name), f"worked_{starter}"
    _, right, cases, *_ = handed_to_judge(name, starter, getattr(lesson, function))
    tree = ast.parse(cell.source)
    tree.body = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    signal.signal(signal.SIGPROF, raise_timeout)
    for mutant in mutants(cell.id, ast.unparse(tree)):
        namespace = dict(vars(lesson))
        exec(mutant.source, namespace)
        _, answer, *_ = handed_to_judge(name, starter, namespace[function])
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        if not any(lesson.differs(lesson.outcome(answer, c[1]), c[2]) for c in cases):
            for _, inputs, _ in cases:  # judged right, so it must be equal
                ours = lesson.outcome(answer, redrawn(inputs))
                theirs = lesson.outcome(right, redrawn(inputs))
                assert not lesson.differs(ours, theirs), mutant.identity
        signal.setitimer(signal.ITIMER_PROF, 0)


def raise_timeout(*_):
    raise TimeoutError("no end")


def definitions(name):
    """Return the code of each function and class of a notebook, without comments."""
    return {n: ast.unparse(node) for n, node in Notebook(name).definitions.items()}


@pytest.mark.parametrize("number", LESSON_NAMES)
def test_given_code_is_the_lessons(number):
    lesson, exercises = definitions(number), definitions(f"{number}-exercises")
    shared = lesson.keys() & exercises.keys()
    assert shared
    assert {n: exercises[n] for n in shared} == {n: lesson[n] for n in shared}


def test_every_notebook_judges_alike():
    first, *others = map(definitions, EXERCISE_NAMES)
    for other in others:
        assert {n: other[n] for n in JUDGE} == {n: first[n] for n in JUDGE}


@pytest.mark.parametrize("number", LESSON_NAMES)
def test_lesson_and_exercises_link_to_each_other(number):
    lesson, exercises = path_of(number), path_of(f"{number}-exercises")
    notebook = read(exercises)
    assert f"]({lesson.name})" in notebook.cells[0].source
    section = next(
        cell.source
        for cell in read(lesson).cells
        if cell.source.startswith("## Exercises")
    )
    links = re.findall(rf"^(\d+)\. \[(.+?)\]\({exercises.name}#\1-", section, re.M)
    assert links == [(str(e.number), e.title) for e in exercises_of(notebook)]
