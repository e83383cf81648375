"""Execute lessons and store their outputs: `make run LESSON=46`.

Each notebook runs from top to bottom in an empty temporary folder, with one
thread, as nbval will run it. It is written back only when every cell ran, and
in one normal form (no timings, no editor's metadata, streams joined), so that
a diff shows what changed in the lesson and nothing else.
"""

import argparse
import ast
import os
import sys
import tempfile
import time

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import (
    CellExecutionError,
    CellTimeoutError,
    DeadKernelError,
)

import exercise_form
from check_notebooks import CELL_METADATA, LESSONS, NOTEBOOK_METADATA, problems

CELL_TIMEOUT = 300  # seconds


class LessonError(Exception):
    """A lesson cannot be executed; the message names file and cell."""


def find_lessons(selection):
    """The notebooks that the words of `selection` name; all for no words.

    A word is a lesson number (46) or the start of a file name.
    Raises SystemExit where a word names nothing.
    """
    notebooks = sorted(LESSONS.glob("*.ipynb"))
    if not selection:
        return notebooks
    chosen = []
    for word in selection:
        matches = [path for path in notebooks if path.name.startswith(word)]
        if not matches:
            known = ", ".join(path.stem for path in notebooks)
            raise SystemExit(f"no lesson {word!r}; there are: {known}")
        chosen += matches
    return chosen


def execute(path, folder, environment=None):
    """Run the notebook at `path`; return it, normalised, unsaved.

    folder: where the kernel works; environment: its environment variables,
    by default those of this process.
    Raises LessonError, naming the cell, where it is no notebook or a cell
    raises.
    """
    try:
        notebook = nbformat.read(path, as_version=4)
    except nbformat.reader.NotJSONError:
        raise LessonError(f"{path.name}: not valid JSON") from None
    started = []  # numbers of the cells, from 1
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        # else each run warns that the kernel listens on loopback TCP
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        resources={"metadata": {"path": str(folder)}},
        on_cell_start=lambda cell, cell_index: started.append(cell_index + 1),
    )
    try:
        client.execute(env=environment or dict(os.environ))
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        reason = getattr(error, "ename", type(error).__name__)
        detail = getattr(error, "evalue", str(error)).strip()
        raise LessonError(
            f"{path.name}, cell {started[-1]}: {reason}: "
            f"{detail.splitlines()[0] if detail else ''}"
        ) from None
    normalise(notebook)
    if exercise_form.is_exercises(path):
        exercise_form.close(notebook)
    return notebook


def definitions_of(notebook, name):
    """The functions and classes of a notebook, and what it imports, by name.

    Only imports and definitions are executed, nothing else of a cell: a
    function that reads a global of the notebook fails with a NameError.
    name: what a traceback calls the notebook.
    """
    wanted = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    namespace = {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            module = ast.parse(cell.source)
            module.body = [node for node in module.body if isinstance(node, wanted)]
            exec(compile(module, f"{name}[{cell.id}]", "exec"), namespace)
    return namespace


def normalise(notebook):
    """Drop what changes from run to run or from editor to editor, in place."""
    notebook.metadata = nbformat.from_dict(NOTEBOOK_METADATA)
    for cell in notebook.cells:
        for key in set(cell.metadata) - CELL_METADATA:
            del cell.metadata[key]
        for output in cell.get("outputs", []):
            if "metadata" in output:
                output.metadata = nbformat.from_dict({})


def save(notebook, path):
    """Write the notebook in place of the old file, in one step."""
    draft = path.with_name(path.name + ".part")
    nbformat.write(notebook, draft)
    draft.replace(path)


def run(path):
    """Execute and store one lesson; return the lines that went wrong."""
    began = time.perf_counter()
    print(f"{path.name}: running", flush=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            notebook = execute(path, folder)
    except LessonError as error:
        return [f"{error}; nothing was stored"]
    save(notebook, path)
    print(f"{path.name}: stored, {time.perf_counter() - began:.0f} s")
    return problems(path)


def main(arguments):
    """Run the lessons named on the command line; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lesson", nargs="*", help="46, 46-exercises …; all by default")
    lessons = find_lessons(parser.parse_args(arguments).lesson)
    os.environ["OMP_NUM_THREADS"] = "1"
    found = [line for path in lessons for line in run(path)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
