"""Run in full what a notebook shows in small, and keep the result: `make record`.

Code that takes minutes is a function `<name>_in_full` that its notebook does not call.
The Markdown cell after it, `**In full.** ...`, holds what it printed when it last ran,
with date and versions.
"""

import ast
import contextlib
import datetime
import io
import os
import platform
import time

from tools.execute import save
from tools.notebooks import IN_FULL, definitions_of, display_name, find, read

RECORD = "**In full.**"


def records_of(path, notebook) -> list[tuple[str, object]]:
    """Return the name of each long function, and the cell with its result.

    Errors: `SystemExit`, naming file and cell, where a function has no such cell.
    """
    found = []
    for number, cell in enumerate(notebook.cells, start=1):
        body = ast.parse(cell.source).body if cell.cell_type == "code" else []
        for node in body:
            if isinstance(node, ast.FunctionDef) and node.name.endswith(IN_FULL):
                after = notebook.cells[number]
                if not after.source.startswith(RECORD):
                    place = f"{display_name(path)}, cell {number}"
                    raise SystemExit(f"{place}: no cell after it starts with {RECORD}")
                found.append((node.name, after))
    return found


def printed_by(path, notebook, function: str) -> tuple[str, float]:
    """Call one function of the notebook; return what it printed, and its seconds."""
    namespace = definitions_of(notebook, path.name)
    namespace["torch"].set_num_threads(1)
    began = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()) as output:
        namespace[function]()
    return output.getvalue(), time.perf_counter() - began


def record_of(printed: str, seconds: float) -> str:
    """Return the Markdown for what was printed, with date and versions."""
    import torch

    minutes = max(1, round(seconds / 60))
    return (
        f"{RECORD} Run on {datetime.date.today()} with torch "
        f"{torch.__version__.split('+')[0]} and Python {platform.python_version()} on "
        f"{platform.system()} {platform.machine()}, in {minutes} min "
        f"on one thread:\n\n```text\n{printed}```"
    )


def main(arguments: list[str]) -> int:
    """Run and store the long functions of the notebooks named, or of all."""
    os.environ["OMP_NUM_THREADS"] = "1"
    for path in find(arguments):
        notebook = read(path)
        for function, cell in records_of(path, notebook):
            print(f"{path.name}: {function}, some minutes ...", flush=True)
            printed, seconds = printed_by(path, notebook, function)
            cell.source = record_of(printed, seconds)
            print(f"{printed}recorded, {seconds:.0f} s")
            save(notebook, path)
    return 0
