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
WRONG_KINDS = ["'words'", "torch.zeros(2, 3, 1)", "[]", "float('nan')", "1 / 0"]

every_exercise = pytest.mark.parametrize(
    "name, starter",
    [(n, e.starter) for n in EXERCISE_NAMES for e in exercises_of(read(path_of(n)))],
)


def said(function, *arguments):
    """Return in one line what a call prints."""
    with redirect_stdout(io.StringIO()) as printed:
        function(*arguments)
    return " ".join(printed.getvalue().split())


def verdict(name, starter, code=""):
    """Return what a check prints; the code defines an answer anew."""
    namespace = dict(vars(load(name)))
    exec(code, namespace)
    return said(namespace[f"check_{starter}"], namespace[starter])


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
def test_a_check_knows_no_answer_a_right_one_and_one_of_a_wrong_kind(name, starter):
    text = verdict(name, starter)
    assert re.fullmatch(r"Exercise \d+: not attempted yet; [^:]*", text)
    code = data_of(name[:2])["ANSWERS"][name]
    assert f"def {starter}(" in code
    assert re.match(r"Exercise \d+: right\. ", verdict(name, starter, code))
    for value in WRONG_KINDS:
        text = verdict(name, starter, f"def {starter}(*inputs): return {value}")
        assert re.match(r"Exercise \d+: wrong\.", text)
    assert "an error, ZeroDivisionError: division" in text  # of the last


@every_exercise
def test_each_mistake_is_named(name, starter):
    number, _, cases, expected, mistakes, sure = handed_to_judge(name, starter)
    assert len(mistakes) >= 3
    for words, mistake in mistakes.items():

        def answer(*inputs, mistake=mistake):
            return middle(mistake(*inputs))

        text = said(load(name).judge, number, answer, cases, expected, mistakes, sure)
        assert f"Exercise {number}: wrong." in text
        assert text.endswith(f" mistake: {' '.join(words.split())}")


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
    inputs, generator = copy.deepcopy(inputs), torch.Generator().manual_seed(0)
    for value in inputs:
        tensors = [value] if isinstance(value, torch.Tensor) else []
        if isinstance(value, torch.nn.Module):
            tensors = value.parameters()
        for tensor in tensors:
            if tensor.is_floating_point():
                tensor.data.normal_(generator=generator)
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
                both = (lesson.outcome(f, redrawn(inputs)) for f in (answer, right))
                assert not lesson.differs(*both), mutant.identity
        signal.setitimer(signal.ITIMER_PROF, 0)


def raise_timeout(*_):
    raise TimeoutError("no end")


@pytest.mark.parametrize("number", LESSON_NAMES)
def test_given_code_is_the_lessons_and_every_notebook_judges_alike(number):
    names = (number, f"{number}-exercises", EXERCISE_NAMES[0])
    lesson, exercises, first = (
        {n: ast.unparse(node) for n, node in Notebook(name).definitions.items()}
        for name in names
    )
    shared = lesson.keys() & exercises.keys()
    assert shared
    assert {n: exercises[n] for n in shared} == {n: lesson[n] for n in shared}
    assert {n: exercises[n] for n in JUDGE} == {n: first[n] for n in JUDGE}


@pytest.mark.parametrize("number", LESSON_NAMES)
def test_lesson_and_exercises_link_to_each_other(number):
    lesson, exercises = path_of(number), path_of(f"{number}-exercises")
    notebook = read(exercises)
    assert f"]({lesson.name})" in notebook.cells[0].source
    text = "\n".join(cell.source for cell in read(lesson).cells)
    links = re.findall(rf"^(\d+)\. \[(.+?)\]\({exercises.name}#\1-", text, re.M)
    assert links == [(str(e.number), e.title) for e in exercises_of(notebook)]
