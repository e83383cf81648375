"""Every notebook is in order, and so is a new one; faults are refused by cell."""

import ast
import json
import re
import shutil

import nbformat
import pytest
from nbformat.v4 import new_output, new_raw_cell

from tools import new
from tools.form import ANSWER, HINT, close, problems
from tools.notebooks import (
    CHECKS,
    LESSON_NAMES,
    LESSONS,
    NAMES,
    ROOT,
    path_of,
    read,
)

# The notebooks that `make new` writes are executed once, for one worker.
pytestmark = pytest.mark.xdist_group("notebooks")


@pytest.mark.parametrize("name", NAMES)
def test_notebook_is_in_order(name):
    assert problems(path_of(name)) == []


def test_lessons_holds_notebooks_only():
    others = {path.name for path in LESSONS.iterdir() if path.suffix != ".ipynb"}
    assert others <= {".ipynb_checkpoints"}


@pytest.mark.parametrize("number", LESSON_NAMES)
def test_every_lesson_has_tests_and_exercises(number):
    assert f"{number}-exercises" in NAMES, f"no lessons/{number}-exercises.ipynb"
    checks = CHECKS / f"lesson_{number}.py"
    assert checks.is_file(), f"no {checks.name}: `make new` writes one to begin with"
    body = ast.parse(checks.read_text(encoding="utf-8")).body
    names = [node.name for node in body if isinstance(node, ast.FunctionDef)]
    assert any(name.startswith("test") for name in names), f"no test in {checks.name}"


@pytest.mark.parametrize("name", [name for name in NAMES if "-" in name])
def test_closing_writes_what_the_form_asks_for(name):
    before, notebook = read(path_of(name)), read(path_of(name))
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict(
            {"scrolled": True, "tags": ["nbval-skip"]}
            | {k: v for k, v in cell.metadata.items() if k == "mystnb"}
        )
    del notebook.metadata["colab"]
    close(notebook)
    assert notebook == before


# ---- what `make new` writes, and the faults that are planted in it -------------------


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Return a course with nothing in it but the lesson that `make new` writes."""
    root = tmp_path_factory.mktemp("course")
    (root / "lessons").mkdir()
    (root / "tests/lessons").mkdir(parents=True)
    shutil.copy(ROOT / "_toc.yml", root)
    assert new.write(root, "98", "new-lesson", "A new lesson") == []
    return root


@pytest.fixture(scope="module")
def made(course):
    """Return the text of the two notebooks, by name."""
    names = ("98-new-lesson", "98-exercises")
    return {name: (course / f"lessons/{name}.ipynb").read_text() for name in names}


@pytest.mark.parametrize("number", ["01", "38", "98"])
def test_a_new_lesson_stands_in_the_contents_by_number(number):
    before = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    after = new.with_lesson(before, number, "new-lesson")
    numbers = re.findall(r"- file: lessons/(\d+)-", after)
    assert numbers == sorted(numbers) and numbers.count(number) == 2
    assert len(after.splitlines()) == len(before.splitlines()) + 3


def test_a_lesson_that_is_there_is_not_overwritten(course, made):
    with pytest.raises(FileExistsError, match="98-.*ipynb is there already"):
        new.write(course, "98", "another", "Another")
    after = {p.stem: p.read_text() for p in (course / "lessons").iterdir()}
    assert after == made


def put(id_, **fields):
    """Return a fault: other fields of a cell."""

    def plant(notebook):
        cell = next(cell for cell in notebook.cells if cell.id == id_)
        cell.update(nbformat.from_dict(fields))

    return plant


def edit(id_, old, new_text=""):
    """Return a fault: other text in place of a part of a cell's."""

    def plant(notebook):
        cell = next(cell for cell in notebook.cells if cell.id == id_)
        assert old in cell.source
        cell.source = cell.source.replace(old, new_text)

    return plant


def shows(*outputs, **image):
    """Return a fault: other outputs of a cell, and what is said of its figure."""
    metadata = {"mystnb": {"image": image}} if image else {}
    return put("buys", outputs=outputs, metadata=metadata)


def prints(id_, text, name="stdout"):
    """Return a fault: other text that a cell has printed."""
    return put(id_, outputs=[new_output("stream", name=name, text=text)])


FIGURE = new_output("display_data", {"image/png": "iVBORw0KGgo=", "text/plain": "x"})
MARKED = new_output("display_data", {"text/plain": "x"}, metadata={"x": 1})
ERROR = new_output("error", ename="E", evalue="no")
PATH_SHOWN = new_output("display_data", {"text/plain": "</home/me/x>"})
ALT = "A line that rises from zero to one over ten steps."
METADATA = "not the metadata of its place; `make run` sets it"
PLAIN_PYTHON = "a magic, a shell command or a syntax error"
NO_STARTER = "is no starter: one function with a docstring and nothing else"
A_CODE_CELL = {"cell_type": "code", "outputs": [], "execution_count": 1}
# The cell that is named (None: the notebook), the fault, and the words of the problem.
LESSON = [
    (None, edit("title", "# Lesson 98", "# Lesson 8"), "cell 1 does not start with"),
    (None, edit("title", "**It takes**", "It takes"), "cell 1 does not say, in this"),
    (None, edit("title", "**You need**", "**It takes**"), "cell 1 does not say"),
    (None, edit("exercises", "## Exercises", "No."), "the last sections are not"),
    (None, edit("takeaways", "## What to", "## Where to"), "the last sections are not"),
    (None, lambda notebook: notebook.cells.clear(), "cell 1 does not start with"),
    (None, lambda notebook: notebook.metadata.update(colab={}), "volatile notebook"),
    (None, lambda notebook: notebook.metadata.clear(), "volatile notebook metadata"),
    (None, lambda notebook: notebook.cells.append(new_raw_cell("x")), "a raw cell"),
    (None, put("buys", cell_type="sql"), "not a valid notebook at"),
    (None, put("buys", id=""), "cell 8: no id; save the notebook in JupyterLab once"),
    (None, put("buys", id="softmax"), "cell 8: the id 'softmax' stands twice"),
    ("buys", put("buys", execution_count=7), "run out of order: [7] should be [4]"),
    ("buys", put("buys", execution_count=None), "never run (execution_count is null)"),
    ("buys", put("buys", metadata={"tags": ["nbval-skip"]}), "the tag 'nbval-skip'"),
    ("buys", put("buys", metadata={"tags": ["hide-input"]}), "the tag 'hide-input'"),
    ("buys", put("buys", metadata={"execution": {}}), "volatile metadata 'execution'"),
    ("buys", put("buys", metadata={"mystnb": {"x": 1}}), "mystnb metadata may say"),
    ("buys", shows(FIGURE, alt=ALT, width=1), "mystnb metadata may say only"),
    ("buys", shows(FIGURE), "a figure without alternative text"),
    ("buys", shows(FIGURE, alt="A line."), "a figure without alternative text"),
    ("buys", shows(FIGURE, FIGURE, alt=ALT), "2 figures in one cell"),
    ("buys", shows(alt=ALT), "an alternative text but no stored figure"),
    ("buys", shows(MARKED), "volatile metadata on an output"),
    ("buys", shows(PATH_SHOWN), "an absolute path in the output"),
    ("buys", shows(ERROR), "a stored exception: E: no"),
    ("buys", prints("buys", "saved /tmp/x"), "an absolute path in the output"),
    ("buys", prints("buys", "Warning: x", "stderr"), "wrote to stderr: Warning: x"),
    ("next", put("next", attachments={"a": {"image/png": "x"}}), "an attachment"),
]
CODE = {
    "": "an empty code cell",
    "# NBVAL_IGNORE_OUTPUT\n1": "a comment turns nbval's comparison off",
    "%matplotlib inline": PLAIN_PYTHON,
    "get_ipython().system('ls')": PLAIN_PYTHON,
    "print(": PLAIN_PYTHON,
    "open('~/x')": "an absolute path: '~/'",
    "open('/home/me/x')": "an absolute path: '/home/'",
    r"open('C:\\x')": "an absolute path: 'C:",
    "x = " + "1" * 80: "line 1 is 84 columns wide, over 80",
    "def f():\n    import pandas.io as p": "imports 'pandas'; a lesson needs only",
    "from . import x": "imports '.'",
    "import requests": "reaches for the network or a download: 'requests'",
    "os.system('curl x')": "reaches for the network or a download: 'os.system'",
    "torch.hub.load('x')": "reaches for the network or a download: 'hub'",
    "u = 'https://a.b/c'": "reaches for the network or a download: 'https://'",
}
MARKDOWN = {
    "```{note}\nx\n```": "line 1: a directive",
    "> ```{note}\n> x": "a directive",
    ":::{tip}\nx\n:::": "a directive",
    "::: note\nx\n:::": "a directive",
    "See {ref}`x`.": "a brace of a role",
    "Version {{ version }}.": "a brace of a role, an attribute or a substitution",
    "[text]{.wide}": "a brace of a role, an attribute",
    "\\begin{align}a\\end{align}": "a brace",
    "$$a = b$$ (eq-one)": "a label",
    "(here)=\nx": "a label",
    "$$\na\n\nb\n$$": "a dollar without its partner",
    "A claim[^1].\n\n[^1]: Why it is so.": "a footnote",
    "Term\n: what it means": "line 2: a definition",
    "- [ ] to do": "a box to tick",
    "> [!NOTE]\n> x": "an alert",
    "Well done :tada:": "a picture by its name",
    "% not for readers": "a comment or block break",
    "+++": "a comment or block break",
    "a<br>b": "HTML",
    "<details>\n\nx\n\n</details>": "HTML",
    "| a | b |\n| 1 | 2 |": "a bar of no table",
    "** strong**": "emphasis that is none",
    "an *open star": "emphasis that is none",
    "[a link](my file.ipynb)": "a link that is none",
    "a ==marked== word": "a mark or a subscript",
    "H~2~O": "a mark or a subscript",
    "the `open code": "a backtick",
    "##Heading": "a heading that is none",
    "# Again": "a second title: 'Again'",
    "#### Deep": "the heading 'Deep' jumps from level 2 to 4",
    "[1]: ../references.md#y": "a link by reference",
    "![x](y.png)": "an image file; a lesson draws in code",
    "[x](../references.html#y)": "the link '../references.html#y' works only in the",
    "[x](/index.md)": "the link '/index.md' works only in the built site",
    "See ~/x.": "an absolute path: '~/'",
}
ONE, START, CHECK = "tempered-1", "tempered-1-starter", "tempered-1-check"
WORKED, HINTED = "tempered-1-answer", "tempered-1-hint-heading"
RUN, WORKED_RUN = "\ncheck_tempered_1(tempered_1)", "\ncheck_tempered_1(worked_"
EXERCISES = [
    (None, edit("title", ": Ex", ": "), "cell 1 does not start with `# Lesson 98: Ex"),
    (None, edit("title", "**How", "How"), "cell 1 does not say, in this order: **How"),
    (None, lambda notebook: notebook.metadata.pop("colab"), "volatile notebook"),
    (None, edit(HINTED, HINT, "### Help"), "volatile notebook metadata"),
    ("title", edit("tempered-4", "## 4. ", "## "), "3 exercises; there should be at"),
    (ONE, edit(ONE, "1.", "2."), "exercise 2 should be 1"),
    (ONE, edit(START, 'n).\n    """', 'n).\n    """\n    return x'), NO_STARTER),
    (ONE, edit(START, '"""', "'"), NO_STARTER),
    (CHECK, edit(CHECK, "exercise 1", "exercise 9"), "starts with `# @title Check ex"),
    (CHECK, edit(CHECK, "def check_t", "def t"), "does not define check_tempered_1"),
    (CHECK, edit(CHECK, RUN), "does not end with `check_tempered_1(tempered_1)`"),
    (CHECK, prints(CHECK, "Exercise 1: right."), "is not `not attempted yet`"),
    (CHECK, put(CHECK, metadata={}), METADATA),
    (CHECK, put(CHECK, metadata={"tags": ["nbval-skip"]}), METADATA),
    (HINTED, put(HINTED, metadata={}), METADATA),
    (ONE, edit(HINTED, HINT, "Hint"), "no hint, or one that is not plain Markdown"),
    (ONE, put("tempered-1-hint", **A_CODE_CELL), "no hint, or one that is not plain"),
    (ONE, edit("tempered-1-answer-heading", ANSWER, "### Ours"), NO_STARTER),
    (ONE, edit(WORKED, WORKED_RUN), "no worked answer calls check_tempered_1(worked_"),
    (ONE, prints(WORKED, "Exercise 1: wrong."), "did not find the worked answer right"),
    (ONE, edit("tempered-1-teaches", "**What it", "It"), "does not end with **What it"),
    (WORKED, edit(WORKED, "# @title", "#"), "a closed code cell starts with `# @title"),
    (WORKED, put(WORKED, metadata={}), METADATA),
]
FAULTS = [
    *(("98-new-lesson", *row) for row in LESSON),
    *(("98-new-lesson", "buys", put("buys", source=s), CODE[s]) for s in CODE),
    *(
        ("98-new-lesson", "buys-idea", put("buys-idea", source=s), MARKDOWN[s])
        for s in MARKDOWN
    ),
    *(("98-exercises", *row) for row in EXERCISES),
]


@pytest.mark.parametrize(
    "name, cell, fault, words", FAULTS, ids=[f"{row[0]}: {row[3]}" for row in FAULTS]
)
def test_a_fault_is_refused_by_file_and_cell(name, cell, fault, words, made, tmp_path):
    notebook = nbformat.reads(made[name], as_version=4)
    number = [None, *(one.id for one in notebook.cells)].index(cell)
    fault(notebook)
    path = tmp_path / f"{name}.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    place = path.name if cell is None else f"{path.name}, cell {number}: "
    found = problems(path)
    assert any(line.startswith(place) and words in line for line in found), found


@pytest.mark.parametrize(
    "content, words",
    [
        (b'{"cells": [,]}', "98-exercises.ipynb, line 1: not valid JSON"),
        (b"[]", "98-exercises.ipynb, top level: no list of cells, so not a notebook"),
        (b"\xff\xfe", "98-exercises.ipynb: cannot be read as UTF-8"),
    ],
)
def test_a_file_that_is_no_notebook_is_refused(content, words, tmp_path):
    path = tmp_path / "98-exercises.ipynb"
    path.write_bytes(content)
    assert problems(path)[0].startswith(words)


def test_a_wrong_file_name_is_refused(made, tmp_path):
    path = tmp_path / "98_A lesson.ipynb"
    path.write_text(made["98-new-lesson"], encoding="utf-8")
    assert "not of the form NN-slug.ipynb" in problems(path)[0]
