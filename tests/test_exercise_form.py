"""An exercise notebook out of form is refused, by file and cell.

The form is tools/exercise_form.py; `make book` applies it too.
"""

import json

import nbformat
import pytest

import exercise_form
from check_notebooks import problems
from exercise_form import ANSWER, HINT
from lesson_code import lesson_path

CHECK = "# @title Check exercise 1"


def find(notebook, start):
    """The first cell whose source starts so."""
    return next(cell for cell in notebook.cells if cell.source.startswith(start))


def rewrite(start, old, new):
    """A fault that changes the text of one cell."""

    def apply(notebook):
        cell = find(notebook, start)
        assert old in cell.source
        cell.source = cell.source.replace(old, new)

    return apply


def reprint(start, text):
    """A fault that changes what a cell has printed."""

    def apply(notebook):
        find(notebook, start).outputs[0]["text"] = text

    return apply


def drop(start):
    """A fault that removes one cell."""

    def apply(notebook):
        notebook.cells.remove(find(notebook, start))

    return apply


def open_up(start):
    """A fault that leaves a cell open that should be closed."""

    def apply(notebook):
        find(notebook, start).metadata = nbformat.from_dict({})

    return apply


def keep_three(notebook):
    """A fault: the notebook ends before its fourth exercise."""
    exercises = exercise_form.exercises_of(notebook)
    del notebook.cells[exercises[3].first - 1 :]


FAULTS = {
    "title of another kind": (
        rewrite("# Lesson 46", ": Exercises", ": The Transformer"),
        "cell 1 does not start with `# Lesson 46: Exercises`",
    ),
    "opening without its parts": (
        rewrite("# Lesson 46", "**You need**", "You need"),
        "cell 1 does not say, in this order: **How it goes**, **You need**",
    ),
    "too few": (keep_three, "cell 1: 3 exercises; there should be at least 4"),
    "numbers out of order": (
        rewrite("## 1. ", "## 1. ", "## 2. "),
        "exercise 2 should be 1",
    ),
    "an answer in the starter": (
        rewrite(
            "def one_head_attention", '[0].\n    """', '[0].\n    """\n    return x'
        ),
        "is no starter: one function with a docstring and nothing else",
    ),
    "a starter without docstring": (
        rewrite("def one_head_attention", '"""Self', '"Self" + """'),
        "is no starter",
    ),
    "a check that defines nothing": (
        rewrite(CHECK, "def check_one_head_attention", "def check_it"),
        "the check does not define check_one_head_attention",
    ),
    "a check that checks nothing": (
        rewrite(CHECK, "\ncheck_one_head_attention(one_head_attention)", ""),
        "the check does not end with `check_one_head_attention(one_head_attention)`",
    ),
    "a check of another number": (
        rewrite(CHECK, "exercise 1", "exercise 9"),
        "the check starts with `# @title Check exercise 1`",
    ),
    "a starter that was answered": (
        reprint(CHECK, "Exercise 1: right. Well done.\n"),
        "the stored output of the check is not `not attempted yet`",
    ),
    "a worked answer that is wrong": (
        reprint("# @title Worked answer 1", "Exercise 1: wrong.\n"),
        "the check did not find the worked answer right",
    ),
    "a worked answer unchecked": (
        rewrite(
            "# @title Worked answer 1",
            "\ncheck_one_head_attention(worked_one_head_attention)",
            "",
        ),
        "no worked answer calls check_one_head_attention(worked_one_head_attention)",
    ),
    "no lesson to be learned": (
        drop("**What it teaches.**"),
        "the worked answer does not end with **What it teaches.**",
    ),
    "no hint": (drop(HINT), "no hint, or one that is not plain Markdown"),
    "code that Colab cannot fold": (
        rewrite("# @title Worked answer 1", "# @title", "# title"),
        "a closed code cell starts with `# @title`",
    ),
    "an open answer": (
        open_up("# @title Worked answer 1"),
        "not the metadata of its place; `make run` sets it",
    ),
    "an open check": (open_up(CHECK), "not the metadata of its place"),
    "a hint that Colab leaves open": (open_up(HINT), "not the metadata of its place"),
    "a skip tag": (
        lambda notebook: find(notebook, CHECK).metadata.tags.append("nbval-skip"),
        "not the metadata of its place",
    ),
    "sections that Colab leaves open": (
        lambda notebook: notebook.metadata.colab.collapsed_sections.pop(),
        "volatile notebook metadata",
    ),
}


def problems_after(fault, tmp_path):
    """What is wrong with Lesson 46's exercises after a fault."""
    notebook = nbformat.read(lesson_path("46-exercises"), as_version=4)
    fault(notebook)
    path = tmp_path / "46-exercises.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return problems(path)


def test_the_exercises_as_they_are_are_accepted(tmp_path):
    assert problems_after(lambda notebook: None, tmp_path) == []


@pytest.mark.parametrize("fault, message", FAULTS.values(), ids=FAULTS)
def test_a_notebook_out_of_form_is_refused(fault, message, tmp_path):
    found = problems_after(fault, tmp_path)
    assert any(message in line for line in found), found
    assert all(line.startswith("46-exercises.ipynb") for line in found)
    assert ANSWER not in "".join(found)


def test_closing_is_what_the_form_asks_for():
    """Whatever an editor stored, `make run` writes the metadata anew."""
    before = nbformat.read(lesson_path("46-exercises"), as_version=4)
    notebook = nbformat.from_dict(before)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({"scrolled": True, "tags": ["nbval-skip"]})
    del notebook.metadata["colab"]
    exercise_form.close(notebook)
    assert notebook == before
