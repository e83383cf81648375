"""Exercise notebooks: what a check says to the untouched starter, to right
answers and to wrong ones; that given code is the lesson's; that each lesson
has its exercises, linked both ways.

What is in form and what is not is in tests/test_exercise_form.py.
"""

import ast
import io
import re
from contextlib import redirect_stdout

import nbformat
import pytest

from exercise_form import exercises_of
from lesson_code import EXERCISES, LESSON_FILES, lesson_path, load_lesson
from wrong_answers import all_answers

JUDGE = ("Between", "show", "differs", "outcome", "judge")
NUMBERS = [path.name[:2] for path in LESSON_FILES]
MIN_WRONG_ANSWERS = 3
# Checks of these train a model, which takes seconds.
TRAINING = {
    "deep_accuracy",
    "fixed_positions_vit",
    "linear_accuracy",
    "mean_readout",
    "off_grid_accuracies",
    "order_accuracy",
    "rival_accuracies",
    "scaled_accuracy",
}

every_exercise = pytest.mark.parametrize(
    "notebook, name",
    [
        (path.stem, exercise.starter)
        for path in EXERCISES
        for exercise in exercises_of(nbformat.read(path, as_version=4))
    ],
)


def verdict(notebook, name, code=None):
    """What the check of exercise `name` prints, as one line.

    code: an answer, which sees all that the notebook imports and defines;
    by default the untouched starter.
    """
    namespace = dict(vars(load_lesson(notebook)))
    if code:
        exec(code, namespace)
    with redirect_stdout(io.StringIO()) as printed:
        namespace[f"check_{name}"](namespace[name])
    return " ".join(printed.getvalue().split())


def rows(kind):
    """Parametrise with every answer of a kind, "WRONG" or "RIGHT"."""
    found = [
        pytest.param(
            notebook,
            name,
            row,
            id=f"{notebook}: {name}, {number}",
            marks=[pytest.mark.slow] if name in TRAINING else [],
        )
        for number, (notebook, name, row) in enumerate(all_answers(kind))
    ]
    return pytest.mark.parametrize("notebook, name, row", found)


@every_exercise
def test_an_untouched_starter_is_not_attempted(notebook, name):
    text = verdict(notebook, name)
    assert re.fullmatch(r"Exercise \d+: not attempted yet; [^:]*", text)


@rows("RIGHT")
def test_a_right_answer_is_accepted(notebook, name, row):
    assert re.match(r"Exercise \d+: right\. ", verdict(notebook, name, row))


@rows("WRONG")
def test_a_wrong_answer_is_named(notebook, name, row):
    mistake, code = row
    text = verdict(notebook, name, code)
    assert re.match(r"Exercise \d+: wrong\. given: ", text), text
    assert mistake in text.partition(" mistake: ")[2], text


@every_exercise
def test_an_answer_that_raises_is_wrong_and_the_error_is_told(notebook, name):
    code = f"def {name}(*inputs):\n    raise ValueError('lost at sea')"
    assert "an error, ValueError: lost at sea" in verdict(notebook, name, code)


@every_exercise
@pytest.mark.parametrize(
    "value", ["'words'", "torch.zeros(2, 3, 1)", "[]", "float('nan')"]
)
def test_an_answer_of_a_wrong_kind_is_wrong(notebook, name, value):
    text = verdict(notebook, name, f"def {name}(*inputs):\n    return {value}")
    assert re.match(r"Exercise \d+: wrong\.", text), text


@every_exercise
def test_enough_answers_are_planted(notebook, name):
    wrong = {row for n, s, row in all_answers("WRONG") if (n, s) == (notebook, name)}
    named = {words for words, _ in wrong if words != "none of the usual ones"}
    enough = f"{MIN_WRONG_ANSWERS} wrong answers in tests/wrong_answers/"
    assert len(named) >= MIN_WRONG_ANSWERS, f"{name}: fewer than {enough}"
    assert [row for n, s, row in all_answers("RIGHT") if (n, s) == (notebook, name)]


def test_no_answer_is_planted_for_an_exercise_that_is_gone():
    known = {
        (path.stem, exercise.starter)
        for path in EXERCISES
        for exercise in exercises_of(nbformat.read(path, as_version=4))
    }
    planted = {row[:2] for kind in ("WRONG", "RIGHT") for row in all_answers(kind)}
    assert planted == known


def definitions(path):
    """The source of each function and class of a notebook, without comments."""
    found = {}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            for node in ast.parse(cell.source).body:
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    found[node.name] = ast.unparse(node)
    return found


@pytest.mark.parametrize("number", NUMBERS)
def test_given_code_is_the_lessons(number):
    lesson = definitions(lesson_path(number))
    exercises = definitions(lesson_path(f"{number}-exercises"))
    shared = lesson.keys() & exercises.keys()
    assert shared
    assert {n: exercises[n] for n in shared} == {n: lesson[n] for n in shared}


def test_every_notebook_judges_alike():
    first = definitions(EXERCISES[0])
    for path in EXERCISES:
        here = definitions(path)
        assert {n: here[n] for n in JUDGE} == {n: first[n] for n in JUDGE}, path.name


@pytest.mark.parametrize("number", NUMBERS)
def test_lesson_and_exercises_link_to_each_other(number):
    """The lesson lists each exercise, by its title and address, in order."""
    lesson, exercises = lesson_path(number), lesson_path(f"{number}-exercises")
    notebook = nbformat.read(exercises, as_version=4)
    assert f"]({lesson.name})" in notebook.cells[0].source
    section = next(
        cell.source
        for cell in nbformat.read(lesson, as_version=4).cells
        if cell.source.startswith("## Exercises")
    )
    links = re.findall(rf"^(\d+)\. \[(.+?)\]\({exercises.name}#\1-", section, re.M)
    expected = [(str(e.number), e.title) for e in exercises_of(notebook)]
    assert links == expected
