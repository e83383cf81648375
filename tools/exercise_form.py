"""The form of an exercise notebook, lessons/NN-exercises.ipynb.

Below its title each exercise is a section: the task in words, a starter (a
function without a body), a check, and two sections that are closed at first,
"Hint" and "Worked answer". What is closed follows from the headings and from
the line `# @title` alone: `make run` writes the metadata that JupyterLab and
Colab go by, and check_notebooks.py says where an exercise is out of form.
"""

import ast
import re
from dataclasses import dataclass, field

import nbformat

HINT, ANSWER = "### Hint", "### Worked answer"
FORM_TITLE = "# @title "
TEACHES = "**What it teaches.**"
MIN_EXERCISES = 4

# Metadata of closed cells: jupyter.* and jp-* are JupyterLab's, cellView and id
# (by which it knows its collapsed sections) are Colab's, the tag is the book's.
# JupyterLab hides code by itself, but Markdown only under a collapsed heading.
# Titled code keeps its output in sight.
TITLED = {
    "cellView": "form",
    "jupyter": {"source_hidden": True},
    "tags": ["hide-input"],
}
CLOSED_CODE = {
    "cellView": "form",
    "jupyter": {"outputs_hidden": True, "source_hidden": True},
}
CLOSED_TEXT = {"jupyter": {"source_hidden": True}}


def is_exercises(path):
    """Whether a path is that of an exercise notebook."""
    return path.name.endswith("-exercises.ipynb")


def sections(notebook):
    """(cell, section) of each cell: HINT, ANSWER, or "" where it is open."""
    section, found = "", []
    for cell in notebook["cells"]:
        source = source_of(cell)
        if cell["cell_type"] == "markdown" and source.startswith(("## ", "### ")):
            section = source if source in (HINT, ANSWER) else ""
        found.append((cell, section))
    return found


def text_of(value):
    """A notebook's text field as one string (it may be a list of lines)."""
    return value if isinstance(value, str) else "".join(value)


def source_of(cell):
    """A cell's text as one string."""
    return text_of(cell["source"])


def closing_metadata(cell, section):
    """The metadata that closes a cell, by its place and its first line."""
    if source_of(cell) in (HINT, ANSWER):
        return {"id": cell["id"], "jp-MarkdownHeadingCollapsed": True}
    if cell["cell_type"] == "markdown":
        return CLOSED_TEXT if section else {}
    if section:
        return CLOSED_CODE
    return TITLED if source_of(cell).startswith(FORM_TITLE) else {}


def collapsed_sections(notebook):
    """Colab's list of collapsed sections: the ids of the heading cells."""
    cells = notebook["cells"]
    return [cell["id"] for cell in cells if source_of(cell) in (HINT, ANSWER)]


def close(notebook):
    """Write the metadata of closed cells, in place; figures keep theirs."""
    for cell, section in sections(notebook):
        kept = {k: v for k, v in cell.metadata.items() if k == "mystnb"}
        cell.metadata = nbformat.from_dict({**kept, **closing_metadata(cell, section)})
    colab = {"collapsed_sections": collapsed_sections(notebook)}
    notebook.metadata["colab"] = nbformat.from_dict(colab)


@dataclass
class Exercise:
    """One exercise: its cells, each with its number in the notebook.

    open: from the heading to the check; hint and answer: what is closed.
    """

    number: int
    title: str
    open: list = field(default_factory=list)
    hint: list = field(default_factory=list)
    answer: list = field(default_factory=list)

    @property
    def first(self):
        """The number of the cell that holds the heading."""
        return self.open[0][0]

    @property
    def starter(self):
        """The name of the starter's function, or None where it is no starter."""
        code = [cell for _, cell in self.open if cell["cell_type"] == "code"]
        return starter_name(source_of(code[-2])) if len(code) > 1 else None


def exercises_of(notebook):
    """The exercises of a notebook, in order."""
    found = []
    for number, (cell, section) in enumerate(sections(notebook), start=1):
        source = source_of(cell)
        heading = re.match(r"## (?:(\d+)\. )?(.+)", source)
        if cell["cell_type"] == "markdown" and heading:
            found.append(Exercise(int(heading[1] or 0), heading[2]))
        if found:
            exercise = found[-1]
            place = {HINT: exercise.hint, ANSWER: exercise.answer}
            place.get(section, exercise.open).append((number, cell))
    return [exercise for exercise in found if exercise.number]


def starter_name(source):
    """The name of the one function that has nothing but a docstring, or None."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return None
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
        return None
    only = body[0].body
    return body[0].name if len(only) == 1 and ast.get_docstring(body[0]) else None


def printed_by(cell):
    """What a code cell has printed."""
    return "".join(text_of(o.get("text", "")) for o in cell.get("outputs", []))


def problems_of(notebook):
    """(cell number, text) of everything that is out of form."""
    for number, (cell, section) in enumerate(sections(notebook), start=1):
        source = source_of(cell)
        stored = {k: v for k, v in cell["metadata"].items() if k != "mystnb"}
        if stored != closing_metadata(cell, section):
            yield number, "not the metadata of its place; `make run` sets it"
        if section and cell["cell_type"] == "code":
            if not source.startswith(FORM_TITLE):
                yield number, f"a closed code cell starts with `{FORM_TITLE.strip()}`"
    found = exercises_of(notebook)
    if len(found) < MIN_EXERCISES:
        yield 1, f"{len(found)} exercises; there should be at least {MIN_EXERCISES}"
    for expected, exercise in enumerate(found, start=1):
        if exercise.number != expected:
            yield exercise.first, f"exercise {exercise.number} should be {expected}"
        yield from problems_of_exercise(exercise)


def problems_of_exercise(exercise):
    """(cell number, text) of everything that is out of form in one exercise."""
    number, name = exercise.number, exercise.starter
    if name is None:
        text = "one function with a docstring and nothing else"
        place = "the last code cell but one before the hint is no starter"
        yield exercise.first, f"{place}: {text}"
        return
    last, check = exercise.open[-1]
    source = source_of(check)
    if not source.startswith(f"{FORM_TITLE}Check exercise {number}\n"):
        yield last, f"the check starts with `{FORM_TITLE}Check exercise {number}`"
    if f"def check_{name}(" not in source:
        yield last, f"the check does not define check_{name}"
    if not source.endswith(f"\ncheck_{name}({name})"):
        yield last, f"the check does not end with `check_{name}({name})`"
    if not printed_by(check).startswith(f"Exercise {number}: not attempted yet"):
        yield last, "the stored output of the check is not `not attempted yet`"
    hints = [cell for _, cell in exercise.hint]
    if len(hints) < 2 or any(cell["cell_type"] != "markdown" for cell in hints):
        yield exercise.first, "no hint, or one that is not plain Markdown"
    answers = [cell for _, cell in exercise.answer]
    code = [cell for cell in answers if cell["cell_type"] == "code"]
    calls = [c for c in code if f"\ncheck_{name}(worked_{name})" in source_of(c)]
    if not calls:
        yield exercise.first, f"no worked answer calls check_{name}(worked_{name})"
    for cell in calls:
        if f"Exercise {number}: right. " not in printed_by(cell):
            yield exercise.first, "the check did not find the worked answer right"
    if not answers or not source_of(answers[-1]).startswith(TEACHES):
        yield exercise.first, f"the worked answer does not end with {TEACHES}"
