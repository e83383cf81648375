"""What a lesson defines and what it has printed, from the notebook itself.

The tests never hold a copy of a lesson's code: they take the functions and
classes out of the notebook that readers see.
"""

from functools import cache
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbval.plugin import get_sanitize_patterns

from check_notebooks import LESSONS
from exercise_form import is_exercises
from run_lessons import definitions_of

SANITIZE = Path(__file__).resolve().parent / "nbval_sanitize.cfg"
# (regex, replacement) of every band, as nbval reads them
BANDS = get_sanitize_patterns(SANITIZE.read_text(encoding="utf-8"))

NOTEBOOKS = sorted(LESSONS.glob("*.ipynb"))
EXERCISES = [path for path in NOTEBOOKS if is_exercises(path)]
LESSON_FILES = [path for path in NOTEBOOKS if not is_exercises(path)]


def parametrize_paths(paths):
    """Parametrise a test with notebooks, as `path`, by their names."""
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


every_notebook = parametrize_paths(NOTEBOOKS)
every_lesson = parametrize_paths(LESSON_FILES)


def printed(notebook):
    """(cell number, text) of everything printed or shown as a value."""
    return [
        (number, output.get("text") or output.get("data", {}).get("text/plain", ""))
        for number, cell in enumerate(notebook.cells, start=1)
        if cell.cell_type == "code"
        for output in cell.outputs
    ]


def lesson_path(name):
    """The notebook called "46" (the lesson) or "46-exercises".

    Raises FileNotFoundError where there is none or more than one.
    """
    files = EXERCISES if name.endswith("-exercises") else LESSON_FILES
    found = [path for path in files if f"{path.stem}-".startswith(f"{name}-")]
    if len(found) != 1:
        raise FileNotFoundError(f"lessons/{name}*.ipynb: {len(found)} files")
    return found[0]


@cache
def load_lesson(name):
    """The functions and classes of a notebook, as attributes of one object.

    name: "46", or "46-exercises".

    Only imports and definitions are executed, nothing else of a cell: a
    function that reads a global of the lesson fails here with a NameError.
    """
    path = lesson_path(name)
    notebook = nbformat.read(path, as_version=4)
    return SimpleNamespace(**definitions_of(notebook, path.name))
