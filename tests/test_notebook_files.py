"""Every lesson's file is in order; a broken one is refused, by file and cell.

The rules are tools/check_notebooks.py, which `make book` applies too. Faults
that are files of their own are in tests/broken.
"""

import json

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from check_notebooks import LESSONS, NOTEBOOK_METADATA, STAR, problems
from lesson_code import every_notebook

FIGURE = {
    "mystnb": {"image": {"alt": "A line that rises from zero to one over ten steps."}}
}
PICTURE = {"image/png": "iVBORw0KGgo=", "text/plain": "<Figure size 1x1>"}


def good_notebook():
    """A small lesson with nothing wrong in it; cells 1 to 6."""
    figure = new_output("display_data", data=PICTURE)
    printed = new_output("stream", name="stdout", text="1\n")
    return new_notebook(
        metadata=NOTEBOOK_METADATA,
        cells=[
            new_markdown_cell(
                f"# Lesson 01: Good\n\nA paper {STAR}.\n\n**You will** read."
                "\n\n**You need** nothing.\n\n**It takes** a minute."
            ),
            new_code_cell("print(1)", execution_count=1, outputs=[printed]),
            new_code_cell(
                "draw()", execution_count=2, outputs=[figure], metadata=FIGURE
            ),
            new_markdown_cell("## What to take away\n\n- [A](../notation.md)"),
            new_markdown_cell("## Exercises\n\n1. One, with `{role}`."),
            new_markdown_cell("## Where this goes next\n\nOn."),
        ],
    )


def save(notebook, folder, name="01-good.ipynb"):
    path = folder / name
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


@every_notebook
def test_notebook_is_in_order(path):
    assert problems(path) == []


def test_lessons_holds_notebooks_only():
    assert list(LESSONS.glob("*.ipynb"))
    others = [
        path.name
        for path in LESSONS.iterdir()
        if path.suffix != ".ipynb" and path.name != ".ipynb_checkpoints"
    ]
    assert not others


def test_the_good_notebook_is_accepted(tmp_path):
    assert problems(save(good_notebook(), tmp_path)) == []


def edit(cell, **changes):
    """A fault that changes fields of one cell, counted from 1."""

    def apply(notebook):
        notebook.cells[cell - 1].update(changes)

    return apply


def output(cell, *outputs):
    """A fault in the stored outputs of one cell."""
    return edit(cell, outputs=list(outputs))


def stderr_output():
    return new_output("stream", name="stderr", text="UserWarning: x\n")


FAULTS = {
    "run out of order": (edit(3, execution_count=7), "cell 3: run out of order"),
    "same id twice": (
        lambda notebook: notebook.cells[2].update(id=notebook.cells[1].id),
        "cell 3: the id",
    ),
    "empty cell": (edit(2, source=""), "cell 2: an empty code cell"),
    "stderr": (output(2, stderr_output()), "cell 2: wrote to stderr: UserWarning"),
    "hide tag": (
        edit(2, metadata={"tags": ["hide-input"]}),
        "cell 2: the tag 'hide-input'",
    ),
    "skip comment": (
        edit(2, source="# NBVAL_IGNORE_OUTPUT\nprint(1)"),
        "cell 2: a comment turns nbval's comparison off",
    ),
    "timings": (
        edit(2, metadata={"execution": {}}),
        "cell 2: volatile metadata 'execution'",
    ),
    "magic": (edit(2, source="%matplotlib inline"), "cell 2: a magic, a shell command"),
    "shell": (edit(2, source="!pip install x"), "cell 2: a magic, a shell command"),
    "shell assigned": (
        edit(2, source="files = !ls"),
        "cell 2: a magic, a shell command",
    ),
    "get_ipython": (
        edit(2, source="get_ipython().system('ls')"),
        "cell 2: a magic, a shell command",
    ),
    "hidden by metadata": (
        edit(2, metadata={"mystnb": {"remove_code_source": True}}),
        "cell 2: mystnb metadata may say only",
    ),
    "home folder": (edit(2, source="open('~/x')"), "cell 2: an absolute path"),
    "program": (edit(2, source="import subprocess"), "cell 2: reaches for"),
    "directive with four marks": (
        edit(5, source="## Exercises\n\n````{note}\nx\n````"),
        "cell 5: line 3: a directive",
    ),
    "directive in a quote": (
        edit(5, source="## Exercises\n\n> ```{note}\n> x"),
        "cell 5: line 3: a directive",
    ),
    "equation label": (
        edit(5, source="## Exercises\n\n$$a=b$$ (eq-one)"),
        "cell 5: line 3: a label",
    ),
    "HTML comment": (
        edit(5, source="## Exercises\n\n<!-- x -->"),
        "cell 5: line 3: raw HTML",
    ),
    "tag over two lines": (
        edit(5, source="## Exercises\n\n<a\nhref='x'>y</a>"),
        "cell 5: line 3: raw HTML",
    ),
    "link by reference": (
        edit(5, source="## Exercises\n\n[1]: ../references.html#y"),
        "cell 5: line 3: a link by reference",
    ),
    "another package": (
        edit(2, source="def f():\n    import pandas.io as p"),
        "cell 2: imports 'pandas'; a lesson needs only matplotlib, numpy, torch",
    ),
    "part of another package": (
        edit(2, source="from scipy.special import erf"),
        "cell 2: imports 'scipy'",
    ),
    "module beside it": (edit(2, source="from . import x"), "cell 2: imports '.'"),
    "address": (
        edit(2, source="u = 'https://a.b/c'"),
        "cell 2: reaches for the network",
    ),
    "Windows path": (edit(2, source=r"open('C:\x')"), "cell 2: an absolute path"),
    "path in output": (
        output(2, new_output("stream", text="saved /tmp/x\n")),
        "cell 2: an absolute path in the output",
    ),
    "long line": (
        edit(2, source="x = " + "1" * 80),
        "cell 2: line 1 is 84 columns wide",
    ),
    "text for no figure": (
        output(3),
        "cell 3: an alternative text but no stored figure",
    ),
    "colon directive": (
        edit(4, source="## What to take away\n:::{tip}\nx\n:::"),
        "cell 4: line 2: a directive",
    ),
    "role": (edit(5, source="## Exercises\n\n{ref}`x`"), "cell 5: line 3: a role"),
    "label": (edit(5, source="## Exercises\n\n(here)=\nx"), "cell 5: line 3: a label"),
    "raw link": (
        edit(6, source='## Where this goes next\n<a href="x">y</a>'),
        "cell 6: line 2: raw HTML",
    ),
    "image file": (
        edit(6, source="## Where this goes next\n![x](y.png)"),
        "cell 6: line 2: an image file",
    ),
    "link to the site": (
        edit(6, source="## Where this goes next\n[x](../references.html#y)"),
        "cell 6: line 2: the link '../references.html#y'",
    ),
    "attachment": (
        edit(6, attachments={"a.png": {"image/png": "x"}}),
        "cell 6: an attachment",
    ),
    "second title": (
        edit(4, source="# Again\n\n## What to take away"),
        "cell 4: a second title",
    ),
    "section missing": (edit(5, source="Nothing."), "the last sections are not"),
    "wrong title": (
        edit(1, source="# Lesson 2: X"),
        "cell 1 does not start with `# Lesson 01",
    ),
    "no time given": (
        edit(1, source="# Lesson 01: X\n\n**You will** **You need**"),
        "cell 1 does not say",
    ),
    "raw cell": (
        lambda notebook: notebook.cells.insert(1, nbformat.v4.new_raw_cell("x")),
        "cell 2: a raw cell",
    ),
    "kernel of one machine": (
        lambda notebook: notebook.metadata.update(
            kernelspec={"name": "mine", "display_name": "m"}
        ),
        "volatile notebook metadata",
    ),
    "unknown cell type": (edit(2, cell_type="sql"), "not a valid notebook at"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_broken_notebook_is_refused(fault, tmp_path):
    notebook = good_notebook()
    plant, message = FAULTS[fault]
    plant(notebook)
    found = problems(save(notebook, tmp_path))
    assert any(
        line.startswith("01-good.ipynb") and message in line for line in found
    ), found


@pytest.mark.parametrize(
    "content, message",
    [
        (b'{"cells": [,]}', "01-good.ipynb, line 1: not valid JSON"),
        (b"[]", "not a notebook"),
        (b"\xff\xfe", "cannot be read as UTF-8"),
    ],
    ids=["not JSON", "no cells", "not UTF-8"],
)
def test_a_file_that_is_no_notebook_is_refused(content, message, tmp_path):
    path = tmp_path / "01-good.ipynb"
    path.write_bytes(content)
    assert message in problems(path)[0]


def test_a_wrong_file_name_is_refused(tmp_path):
    path = save(good_notebook(), tmp_path, "01_Good Lesson.ipynb")
    assert any("NN-slug.ipynb" in line for line in problems(path))
