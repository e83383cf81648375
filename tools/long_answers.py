"""Run in full what an exercise notebook only shows in small, and keep the result.

    make long                    # run all, compare with what is recorded
    make long LESSON=46          # those of one lesson
    make record LESSON=46        # run, and store what was printed, with date and versions

A worked answer that takes minutes defines a function `<name>_in_full` and does
not call it. The Markdown cell after it, `**In full.** …`, holds what it printed
when it was last run. Comparing works as in nbval: by band where a line is in
one (tests/nbval_sanitize.cfg), else letter by letter.
"""

import argparse
import ast
import contextlib
import datetime
import io
import os
import platform
import re
import sys
import time
from dataclasses import dataclass

import nbformat
from nbval.plugin import get_sanitize_patterns

from check_notebooks import ROOT
from exercise_form import is_exercises
from run_lessons import definitions_of, find_lessons, save

SUFFIX = "_in_full"
RECORD = "**In full.**"
BANDS = ROOT / "tests" / "nbval_sanitize.cfg"
PRINTED = re.compile(r"```text\n(.*?)```", re.DOTALL)


@dataclass
class LongAnswer:
    """A function that takes minutes, and the cell with its recorded result."""

    path: object
    function: str
    cell: object  # the Markdown cell

    @property
    def recorded(self):
        """What it printed when it was recorded; "" before the first time."""
        match = PRINTED.search(self.cell.source)
        return match[1] if match else ""


def definitions(cell):
    """The names of the functions that a code cell defines."""
    nodes = ast.parse(cell.source).body
    return [node.name for node in nodes if isinstance(node, ast.FunctionDef)]


def long_answers(path, notebook):
    """The long answers of an exercise notebook.

    Raises SystemExit, naming file and cell, where one has no recorded result.
    """
    found = []
    for number, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type != "code":
            continue
        for name in definitions(cell):
            if name.endswith(SUFFIX):
                after = notebook.cells[number]
                if not after.source.startswith(RECORD):
                    raise SystemExit(
                        f"{path.name}, cell {number}: {name} is not followed by a "
                        f"Markdown cell that starts with {RECORD}"
                    )
                found.append(LongAnswer(path, name, after))
    return found


def run(answer, notebook):
    """Execute the notebook's definitions, call the function; what it printed."""
    namespace = definitions_of(notebook, answer.path.name)
    namespace["torch"].set_num_threads(1)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        namespace[answer.function]()
    return printed.getvalue()


def sanitized(text, bands):
    """The lines of a text, numbers in a band replaced by the band."""
    for regex, replacement in bands:
        text = re.sub(regex, replacement, text)
    return text.splitlines()


def record_of(printed, seconds):
    """The Markdown cell for what was printed, with date and versions."""
    import torch

    minutes = max(1, round(seconds / 60))
    return (
        f"{RECORD} Run on {datetime.date.today()} with torch "
        f"{torch.__version__.split('+')[0]} and Python {platform.python_version()} on "
        f"{platform.system()} {platform.machine()}, in {minutes} min on one thread:\n\n"
        f"```text\n{printed}```"
    )


def main(arguments):
    """Compare, or with --record store; 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lesson", nargs="*", help="46, 45 …; all by default")
    parser.add_argument("--record", action="store_true", help="store the results")
    options = parser.parse_args(arguments)
    os.environ["OMP_NUM_THREADS"] = "1"
    bands = get_sanitize_patterns(BANDS.read_text(encoding="utf-8"))
    differing = 0
    for path in filter(is_exercises, find_lessons(options.lesson)):
        notebook = nbformat.read(path, as_version=4)
        for answer in long_answers(path, notebook):
            print(f"{path.name}: {answer.function}, some minutes ...", flush=True)
            began = time.perf_counter()
            printed = run(answer, notebook)
            seconds = time.perf_counter() - began
            if options.record:
                answer.cell.source = record_of(printed, seconds)
                print(printed + f"recorded, {seconds:.0f} s")
                continue
            old, new = sanitized(answer.recorded, bands), sanitized(printed, bands)
            if old == new:
                print(f"as recorded, {seconds:.0f} s")
                continue
            differing += 1
            print(f"not as recorded; it was:\n{answer.recorded}and is:\n{printed}")
        if options.record:
            save(notebook, path)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
