"""Execute notebooks and store their outputs: `make run LESSON=46`.

Each notebook runs from top to bottom in an empty temporary folder, with one thread, as
nbval will run it. It is written back only when every cell ran, and in one normal form
(no timings, no editor's metadata, streams joined), so that a diff shows what changed in
the lesson and nothing else.
"""

import base64
import io
import os
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from PIL import Image

from tools.form import closed, problems
from tools.notebooks import find

CELL_TIMEOUT = 300  # seconds


def lighten(png: str) -> str:
    """Return a figure, in base64, with 32 colours: it takes a quarter of the bytes."""
    file = io.BytesIO()
    figure = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    figure.quantize(32, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


class LessonError(Exception):
    """A lesson cannot be executed; the message names file and cell."""


def execute(path: Path, folder: Path | str, environment: dict | None = None):
    """Run a notebook and return it, in normal form, unsaved.

    `folder` is where the kernel works, `environment` its variables, by default those of
    this process. Errors: `LessonError` where the file is no notebook or a cell raises.
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
        # otherwise each run warns that the kernel listens on loopback TCP
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        resources={"metadata": {"path": str(folder)}},
        on_cell_start=lambda cell, cell_index: started.append(cell_index + 1),
    )
    try:
        client.execute(env=environment or dict(os.environ))
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        reason = getattr(error, "ename", type(error).__name__)
        detail = getattr(error, "evalue", str(error)).strip().partition("\n")[0]
        place = f"{path.name}, cell {started[-1]}"
        raise LessonError(f"{place}: {reason}: {detail}") from None
    for output in (o for cell in notebook.cells for o in cell.get("outputs", [])):
        if "metadata" in output:
            output.metadata = nbformat.from_dict({})
        if "image/png" in output.get("data", {}):
            output.data["image/png"] = lighten(output.data["image/png"])
    return closed(notebook)


def save(notebook, path: Path) -> None:
    """Write the notebook in place of the old file, in one step."""
    draft = path.with_name(path.name + ".part")
    nbformat.write(notebook, draft)
    draft.replace(path)


def run(path: Path) -> list[str]:
    """Execute and store one notebook; return what is wrong, one line a problem."""
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


def main(arguments: list[str]) -> int:
    """Run the notebooks that the arguments name, or all; 1 if anything is wrong."""
    os.environ["OMP_NUM_THREADS"] = "1"
    found = [line for path in find(arguments) for line in run(path)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0
