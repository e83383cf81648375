"""Find and read the course's notebooks, and what stands in tests/lessons beside them.

A lesson is `lessons/NN-slug.ipynb`, called "NN"; its exercises are
`lessons/NN-exercises.ipynb`, called "NN-exercises".
"""

import ast
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import nbformat

ROOT = Path(__file__).resolve().parent.parent
LESSONS = ROOT / "lessons"
NOTEBOOKS = sorted(LESSONS.glob("*.ipynb"))
CHECKS = ROOT / "tests" / "lessons"
IN_FULL = "_in_full"  # so end the names of functions that are recorded, and not run


def is_exercises(path: Path) -> bool:
    """Say whether a path is that of an exercise notebook."""
    return path.name.endswith("-exercises.ipynb")


def name_of(path: Path) -> str:
    """Return what a notebook is called: "46" or "46-exercises"."""
    return path.stem if is_exercises(path) else path.stem[:2]


NAMES = [name_of(path) for path in NOTEBOOKS]
LESSON_NAMES = [name for name in NAMES if "-" not in name]
EXERCISE_NAMES = [name for name in NAMES if "-" in name]


def display_name(path: Path) -> str:
    """Return the path as messages show it: relative to the repository."""
    path = path.resolve()
    inside = path.is_relative_to(ROOT)
    return path.relative_to(ROOT).as_posix() if inside else path.name


def find(words: list[str]) -> list[Path]:
    """Return the notebooks that the words name, each by the start of its file name.

    All notebooks for no words. Errors: `SystemExit` where a word names nothing.
    """
    chosen = []
    for word in words:
        matches = [path for path in NOTEBOOKS if path.name.startswith(word)]
        if not matches:
            known = ", ".join(path.stem for path in NOTEBOOKS)
            raise SystemExit(f"no lesson {word!r}; there are: {known}")
        chosen += matches
    return chosen if words else NOTEBOOKS


def path_of(name: str) -> Path:
    """Return the notebook called "46" or "46-exercises"; `KeyError` without one."""
    return dict(zip(NAMES, NOTEBOOKS, strict=True))[name]


def read(path: Path):
    """Return a notebook as it stands in its file."""
    return nbformat.read(path, as_version=4)


def printed(cell) -> str:
    """Return what a code cell has printed."""
    return "".join(output.get("text", "") for output in cell.get("outputs", []))


def definitions_of(notebook, name: str) -> dict:
    """Return a notebook's functions, classes and imports by name.

    Nothing else of a cell is executed: a function that reads a global of the notebook
    fails with a NameError. `name` is what a traceback calls the notebook.
    """
    wanted = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    namespace = {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            module = ast.parse(cell.source)
            module.body = [node for node in module.body if isinstance(node, wanted)]
            exec(compile(module, f"{name}[{cell.id}]", "exec"), namespace)
    return namespace


@cache
def load(name: str) -> SimpleNamespace:
    """Return the functions and classes of a notebook as attributes of one object."""
    path = path_of(name)
    return SimpleNamespace(**definitions_of(read(path), path.name))


@cache
def data_of(number: str) -> dict:
    """Return the constants of tests/lessons/lesson_NN.py, without running it.

    Errors: `SystemExit` where a constant in capitals is no literal.
    """
    path = CHECKS / f"lesson_{number}.py"
    if not path.is_file():
        return {}
    found = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id.isupper():
            name = node.targets[0].id
            try:
                found[name] = ast.literal_eval(node.value)
            except ValueError:
                place = f"{display_name(path)}, line {node.lineno}"
                raise SystemExit(f"{place}: {name} must be a literal") from None
    return found
