"""Plant every fault, one at a time; each must be rejected by its notebook's own nbval.

    make faults               # all of them
    make faults LESSON=46     # those of Lesson 46 and of its exercises

A fault is a row of tests/faults/: it changes one cell of a copy of a notebook, and
nbval, run on the copy, must fail first in the cell that the row names, by a wrong
result and not because the code no longer runs. Before its faults each notebook is
run unchanged, which must pass: else a fault proves nothing. Prints a table.
"""

import argparse
import copy
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat

from check_notebooks import ROOT
from run_lessons import find_lessons

sys.path.append(str(ROOT / "tests"))

from faults import FAULTS  # noqa: E402
from lesson_code import SANITIZE, lesson_path  # noqa: E402

# a fault must be found wrong, not merely fail to run
DOES_NOT_RUN = re.compile(
    r"\b(Syntax|Indentation|Name|Attribute|Type|Import|Index|Key)Error\b"
)
FAILED = re.compile(r"^FAILED copy\.ipynb::Cell (\d+)", re.MULTILINE)
CELL_TIMEOUT = 300  # seconds


@dataclass
class Outcome:
    """What became of one run: of a fault, or of a control without fault.

    problem: "" where it went as it should, else what is wrong, in words;
    cell: the id of the first cell that failed, if any; log: all that nbval said.
    """

    lesson: str
    name: str
    cell: str
    seconds: float
    problem: str
    log: str


@cache
def read(lesson):
    """A notebook as it is now; not to be changed by the caller."""
    return nbformat.read(lesson_path(lesson), as_version=4)


def faulty_source(fault):
    """The text of the changed cell, with the fault in it.

    Raises ValueError where the fault is stale: a cell is gone, or the text
    to change does not stand in it exactly once.
    """
    sources = {cell.id: cell.source for cell in read(fault.lesson).cells}
    for id_ in (fault.cell, fault.caught_by):
        if id_ not in sources:
            raise ValueError(f"stale: {fault.id}: no cell {id_!r}")
    source = sources[fault.cell]
    count = source.count(fault.old)
    if count != 1:
        raise ValueError(
            f"stale: {fault.id}: {fault.old!r} stands {count} times in {fault.cell!r}"
        )
    return source.replace(fault.old, fault.new)


def plant(fault, folder):
    """Write a copy of the notebook with the fault in it; return its path.

    Raises ValueError where the fault is stale.
    """
    source = faulty_source(fault)
    notebook = copy.deepcopy(read(fault.lesson))
    next(cell for cell in notebook.cells if cell.id == fault.cell).source = source
    path = folder / "copy.ipynb"
    nbformat.write(notebook, path)
    return path


def run_nbval(notebook):
    """Run nbval on one notebook, to the first failing cell.

    Returns its exit code and all that it said.
    """
    (notebook.parent / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", notebook.name),
            *("--nbval", "--nbval-current-env", f"--nbval-cell-timeout={CELL_TIMEOUT}"),
            *(f"--nbval-sanitize-with={SANITIZE}", "--exitfirst"),
            *("--color=no", "-p", "no:cacheprovider"),
        ],
        cwd=notebook.parent,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def code_cells(lesson):
    """The ids of a notebook's code cells; nbval counts them from 0."""
    return [cell.id for cell in read(lesson).cells if cell.cell_type == "code"]


def verdict(fault, code, log):
    """The cell that failed, and what is wrong with how the fault was met."""
    ids = code_cells(fault.lesson)
    failed = FAILED.search(log)
    cell = ids[int(failed[1])] if failed else ""
    if code == 0:
        return cell, "not noticed"
    if not failed or code != 1:
        return cell, f"nbval did not run (exit code {code})"
    if DOES_NOT_RUN.search(log):
        return cell, "the code does not run, so it was not found wrong"
    if cell != fault.caught_by:
        return cell, f"should be caught by {fault.caught_by}"
    return cell, ""


def try_fault(fault):
    """Plant one fault and run; return its Outcome."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = plant(fault, Path(folder))
        except ValueError as error:
            return Outcome(fault.lesson, fault.name, "", 0.0, str(error), str(error))
        code, log = run_nbval(path)
    cell, problem = verdict(fault, code, log)
    seconds = time.perf_counter() - began
    return Outcome(fault.lesson, fault.name, cell, seconds, problem, log)


def try_control(lesson):
    """Run a notebook without fault by the same procedure; return its Outcome."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "copy.ipynb"
        path.write_bytes(lesson_path(lesson).read_bytes())
        code, log = run_nbval(path)
    seconds = time.perf_counter() - began
    problem = "" if code == 0 and "failed" not in log else "fails without any fault"
    return Outcome(lesson, "(no fault)", "", seconds, problem, log)


def row(outcome):
    """One line of the table."""
    caught = outcome.problem or outcome.cell or "passes"
    return (
        f"{outcome.lesson:12} {outcome.name:58.58} {caught:28} {outcome.seconds:6.1f} s"
    )


def try_all(attempt, subjects):
    """Try each, as many at once as there are cores; print a row for each.

    Returns the outcomes that are not as they should be.
    """
    wrong = []
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for outcome in pool.map(attempt, subjects):
            print(row(outcome), flush=True)
            wrong += [outcome] if outcome.problem else []
    return wrong


def main(arguments):
    """Plant the faults of the lessons named, or all; 1 if one was not rejected."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lesson", nargs="*", help="46, 46-exercises …; all by default")
    parser.add_argument(
        "--only", default="", help="only faults whose name has this text"
    )
    options = parser.parse_args(arguments)
    chosen = find_lessons(options.lesson)
    faults = [
        f for f in FAULTS if lesson_path(f.lesson) in chosen and options.only in f.name
    ]
    if not faults:
        raise SystemExit(
            f"no fault of these notebooks has {options.only!r} in its name"
        )
    lessons = sorted({fault.lesson for fault in faults})
    print(f"{'notebook':12} {'fault':58} {'caught by cell':28}   time", flush=True)
    wrong = try_all(try_control, lessons)
    if not wrong:  # else a rejected fault would prove nothing
        wrong = try_all(try_fault, faults)
    for outcome in wrong:
        print(f"\n{outcome.lesson}, {outcome.name}: {outcome.problem}\n{outcome.log}")
    print(f"{len(faults)} faults, {len(wrong)} not met as they should")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
