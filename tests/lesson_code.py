"""What a lesson defines and what it has printed, from the notebook itself.

The tests never hold a copy of a lesson's code: they take the functions and
classes out of the notebook that readers see.
"""

import ast
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbval.plugin import get_sanitize_patterns

from check_notebooks import LESSONS

SANITIZE = Path(__file__).resolve().parent / "nbval_sanitize.cfg"
# (regex, replacement) of every band, as nbval reads them
BANDS = get_sanitize_patterns(SANITIZE.read_text(encoding="utf-8"))

every_lesson = pytest.mark.parametrize(
    "path", sorted(LESSONS.glob("*.ipynb")), ids=lambda path: path.stem
)


def printed(notebook):
    """(cell number, text) of everything printed or shown as a value."""
    return [
        (number, output.get("text") or output.get("data", {}).get("text/plain", ""))
        for number, cell in enumerate(notebook.cells, start=1)
        if cell.cell_type == "code"
        for output in cell.outputs
    ]


def lesson_path(number):
    """The notebook of lesson `number` (a string such as "46").

    Raises FileNotFoundError where there is none or more than one.
    """
    found = sorted(LESSONS.glob(f"{number}-*.ipynb"))
    if len(found) != 1:
        raise FileNotFoundError(f"lessons/{number}-*.ipynb: {len(found)} files")
    return found[0]


@cache
def load_lesson(number):
    """The functions and classes of a lesson, as attributes of one object.

    Only imports and definitions are executed, nothing else of a cell: a
    function that reads a global of the lesson fails here with a NameError.
    """
    path = lesson_path(number)
    wanted = (
        ast.Import,
        ast.ImportFrom,
        ast.FunctionDef,
        ast.ClassDef,
    )
    namespace = {}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        module = ast.parse(cell.source)
        module.body = [node for node in module.body if isinstance(node, wanted)]
        exec(compile(module, f"{path.name}[{cell.id}]", "exec"), namespace)
    return SimpleNamespace(**namespace)
