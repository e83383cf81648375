"""Every notebook is in order, and so is a new one; faults are refused by cell."""

import json
import re
import shutil

import nbformat
import pytest
from nbformat.v4 import new_output

from tools import new
from tools.form import problems
from tools.notebooks import CHECKS, LESSON_NAMES, NAMES, ROOT, path_of

# The notebooks that `make new` writes are executed once, for one worker.
pytestmark = pytest.mark.xdist_group("notebooks")


@pytest.mark.parametrize("name", NAMES)
def test_notebook_is_in_order(name):
    assert problems(path_of(name)) == []


@pytest.mark.parametrize("number", LESSON_NAMES)
def test_every_lesson_has_tests_and_exercises(number):
    assert f"{number}-exercises" in NAMES, f"no lessons/{number}-exercises.ipynb"
    checks = CHECKS / f"lesson_{number}.py"
    assert checks.is_file(), f"no {checks.name}: `make new` writes one to begin with"
    assert "\ndef test" in checks.read_text(encoding="utf-8"), "it has no test"


# ---- what `make new` writes, and the faults that are planted in it -------------------


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Return a course with nothing in it but the lesson that `make new` writes."""
    root = tmp_path_factory.mktemp("course")
    (root / "lessons").mkdir()
    (root / "tests/lessons").mkdir(parents=True)
    shutil.copy(ROOT / "_toc.yml", root)
    assert new.write(root, "98", "new") == []
    return root


@pytest.mark.parametrize("number", ["01", "38", "98"])
def test_a_new_lesson_stands_in_the_contents_by_number(number):
    before = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    numbers = re.findall(r"lessons/(\d+)-", new.with_lesson(before, number, "new"))
    assert numbers == sorted([*re.findall(r"lessons/(\d+)-", before), number, number])


def test_a_lesson_that_is_there_is_not_overwritten(course):
    with pytest.raises(SystemExit, match="98-.*ipynb is there already"):
        new.write(course, "98", "another")
    assert not [*course.rglob("*another*")]


def shows(*figures, alt=""):
    """Return figures as the outputs of a cell, and what is said of them."""
    metadata = {"mystnb": {"image": {"alt": alt}}} if alt else {}
    return {"outputs": figures, "metadata": metadata}


def prints(text, name="stdout"):
    """Return other text that a cell has printed."""
    return {"outputs": [new_output("stream", name=name, text=text)]}


FIGURE = new_output("display_data", {"image/png": "iVBORw0KGgo=", "text/plain": "x"})
COUNT, TAGS = {"execution_count": 7}, {"metadata": {"tags": ["nbval-skip"]}}
BARE = {"metadata": {}}
METADATA = "not the metadata of its place; `make run` sets it"
# A cell, the fault (other fields, or other text "old -> new"), words of the problem.
LESSON = [
    ("title", "Lesson 98 -> Lesson 8", "cell 1 does not start with `# Lesson 98: `"),
    ("title", "**You need** -> **It takes**", "cell 1 does not say, in this order"),
    ("exercises", "## Ex -> Ex", "the last sections are not, in this order"),
    ("next", {"id": ""}, "cell 12: no id of its own; save the notebook in JupyterLab"),
    ("next", {"id": "softmax"}, "cell 12: no id of its own"),
    ("next", {"cell_type": "sql"}, "not valid at ['cells', 11]"),
    ("softmax", COUNT, "cell 9: run out of order or never: [7] should be [5]"),
    ("softmax", TAGS, f"cell 9: {METADATA}"),
    ("helpers", BARE, f"cell 4: {METADATA}"),
    ("takeaways", "the largest score wins. -> x\n- x", "6 claims, and evidence of 5"),
    ("takeaways", "- TO -> TO", "cell 10: not a heading and five to seven lines"),
    ("picture", prints("x -> y"), "no drawing of what is built"),
    ("picture", "draw( -> print(", "no drawing of what is built"),
    ("softmax", {"metadata": {"mystnb": {"x": 1}}}, "cell 9: mystnb metadata may say"),
    ("softmax", shows(FIGURE), "cell 9: a figure without alternative text"),
    ("softmax", shows(FIGURE, FIGURE, alt="x" * 40), "2 figures in one cell"),
    ("softmax", prints("Warning: x", "stderr"), "wrote to stderr: Warning: x"),
]
CODE = {
    "%matplotlib inline": "empty, or not plain Python",
    "# NBVAL_IGNORE_OUTPUT\n1": "reaches for the network or a shell, or turns nbval",
    "x = " + "1" * 80: "a line of 84 columns, over 80",
    "def f():\n    import pandas.io as p": "imports 'pandas'; a lesson needs only",
    "import requests": "reaches for the network or a shell",
}
MARKDOWN = {
    "x\n\n```{note}\nx\n```": "line 3: a directive",
    "See {ref}`x`.": "a role, an attribute or a substitution",
    "$$\na\n\nb\n$$": "a dollar without its partner",
    "A claim[^1].\n\n[^1]: Why it is so.": "a bar of no table, a footnote",
    "[a link](my file.ipynb)": "a link that is none",
    "an *open star": "emphasis or code that is none",
    "Term\n: what it means": "line 2: a label, a definition",
    "<details>\n\nx\n\n</details>": "HTML",
    "##Heading": "a heading that is none",
    "# Again": "a second title: 'Again'",
    "![x](y.png)": "an image file; a lesson draws in code",
    "[x](../references.html#y)": "'../references.html#y' is only in the built site",
}
CALL, WORKED = "\ncheck_tempered_1(tempered_1)", "\ncheck_tempered_1(worked_"
EXERCISES = [
    ("title", "**How -> How", "cell 1 does not say, in this order: **How it goes**"),
    ("-hint-heading", "Hint -> Help", "other notebook metadata than `make run` stores"),
    ("-hint-heading", "Hint -> Help", "cell 5: no hint, or one that is not plain"),
    ("", "## 1. -> ## ", "cell 1: 3 exercises; there should be at least 4"),
    ("", "1. -> 2.", "cell 5: exercise 2 should be 1"),
    (
        "-starter",
        'n).""" -> n)."""\n    return x',
        "cell 5: no starter before the check",
    ),
    ("-check", "exercise 1 -> exercise 9", "cell 7: the check starts with `# @title"),
    ("-check", f"{CALL} -> ", "cell 7: the check does not end with `check_tempered_1("),
    ("-check", prints("Exercise 1: right."), "cell 7: the stored output of the check"),
    ("-check", TAGS, f"cell 7: {METADATA}"),
    ("-hint-heading", BARE, f"cell 8: {METADATA}"),
    ("-answer", BARE, f"cell 11: {METADATA}"),
    ("-answer", "# @title -> #", "cell 11: a closed code cell starts with `# @title`"),
    ("-answer", f"{WORKED} -> (", "cell 5: no worked answer that check_tempered_1"),
    ("-answer", prints("Exercise 1: wrong."), "no worked answer that check_tempered_1"),
    ("-teaches", "**What it -> It", "cell 5: the worked answer does not end with **Wh"),
]
FAULTS = [
    *(("new", *row) for row in LESSON),
    *(("new", "softmax", {"source": s}, f"cell 9: {CODE[s]}") for s in CODE),
    *(("new", "apparatus", {"source": s}, MARKDOWN[s]) for s in MARKDOWN),
    *(("exercises", *row) for row in EXERCISES),
]


@pytest.mark.parametrize("name, id_, fault, words", FAULTS)
def test_a_fault_is_refused_by_file_and_cell(name, id_, fault, words, course, tmp_path):
    path = course / f"lessons/98-{name}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    cells = {cell.id.removeprefix("tempered-1"): cell for cell in notebook.cells}
    if isinstance(fault, str):
        old, new_text = fault.split(" -> ")
        assert old in cells[id_].source
        fault = {"source": cells[id_].source.replace(old, new_text)}
    cells[id_].update(nbformat.from_dict(fault))
    path = tmp_path / path.name
    path.write_text(json.dumps(notebook), encoding="utf-8")
    found = problems(path)
    assert any(x.startswith(path.name) and words in x for x in found), found


@pytest.mark.parametrize("content", [b'{"cells": [,]}', b"[]", b"\xff\xfe"])
def test_a_file_that_is_no_notebook_is_refused(content, tmp_path):
    (tmp_path / "98-x.ipynb").write_bytes(content)
    assert problems(tmp_path / "98-x.ipynb")[0].startswith("98-x.ipynb: not a notebook")
