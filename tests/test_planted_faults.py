"""The lessons' own checks can fail: nbval rejects every planted fault.

Each fault costs a kernel and some seconds, so an ordinary run plants
FAULTS_PER_LESSON of each lesson, chosen by the commit: the same for the same
commit, others for the next. `make faults` plants all. That no fault is stale
is checked for all of them, always.
"""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from faults import FAULTS
from lesson_code import SANITIZE, lesson_path

ROOT = Path(__file__).resolve().parent.parent
FAULTS_PER_LESSON = 16
# a fault must be found wrong, not merely fail to run
DOES_NOT_RUN = re.compile(
    r"\b(Syntax|Indentation|Name|Attribute|Type|Import|Index|Key)Error\b"
)


def plant(fault, folder):
    """Write a copy of the lesson with the fault in it; return its path.

    Raises AssertionError where the fault is stale: the cell is gone, or the
    text to change does not stand in it exactly once.
    """
    notebook = nbformat.read(lesson_path(fault.lesson), as_version=4)
    cells = {cell.id: cell for cell in notebook.cells}
    assert fault.cell in cells, f"stale fault: no cell {fault.cell!r}"
    source = cells[fault.cell].source
    count = source.count(fault.old)
    assert count == 1, f"stale fault: {fault.old!r} stands {count} times"
    cells[fault.cell].source = source.replace(fault.old, fault.new)
    copy = folder / "copy.ipynb"
    nbformat.write(notebook, copy)
    return copy


def run_nbval(notebook):
    """Run nbval on one notebook, to the first failing cell.

    Returns the finished process.
    """
    (notebook.parent / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", notebook.name),
            *("--nbval", "--nbval-current-env", "--nbval-cell-timeout=300"),
            *(f"--nbval-sanitize-with={SANITIZE}", "--exitfirst"),
            *("--color=no", "-p", "no:cacheprovider"),
        ],
        cwd=notebook.parent,
        capture_output=True,
        text=True,
    )


def code_cell_number(fault):
    """The number, from 0, of the code cell that must fail, as nbval counts."""
    cells = nbformat.read(lesson_path(fault.lesson), as_version=4).cells
    ids = [cell.id for cell in cells if cell.cell_type == "code"]
    return ids.index(fault.caught_by)


def commit():
    """The commit's hash, or where git knows none, one of the lessons."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return done.stdout.strip()
    digest = hashlib.sha256()
    for path in sorted((ROOT / "lessons").glob("*.ipynb")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def choose(faults, seed, count):
    """`count` faults of each lesson, or all of them where it has fewer."""
    chosen = []
    for lesson in sorted({fault.lesson for fault in faults}):
        chosen += sorted(
            (fault for fault in faults if fault.lesson == lesson),
            key=lambda fault: hashlib.sha256(f"{seed} {fault.id}".encode()).digest(),
        )[:count]
    return chosen


def pytest_generate_tests(metafunc):
    """Parametrise the test below with the faults of this run."""
    if metafunc.function is test_fault_is_rejected:
        count = FAULTS_PER_LESSON
        if metafunc.config.getoption("--all-faults"):
            count = len(FAULTS)
        faults = choose(FAULTS, commit(), count)
        metafunc.parametrize("fault", faults, ids=lambda fault: fault.id)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_no_fault_is_stale(fault, tmp_path):
    plant(fault, tmp_path)
    code_cell_number(fault)


def test_the_choice_covers_all_faults_in_time():
    """Same seed, same faults; over many commits every fault gets its turn."""
    assert choose(FAULTS, "a", 16) == choose(FAULTS, "a", 16)
    lessons = {fault.lesson for fault in FAULTS}
    assert len(choose(FAULTS, "a", 16)) == 16 * len(lessons)
    seen = {f.id for seed in range(50) for f in choose(FAULTS, str(seed), 16)}
    assert seen == {fault.id for fault in FAULTS}


def test_fault_is_rejected(fault, tmp_path):
    done = run_nbval(plant(fault, tmp_path))
    number = code_cell_number(fault)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"FAILED copy.ipynb::Cell {number} " in done.stdout, done.stdout
    assert f"1 failed, {number} passed" in done.stdout, done.stdout
    assert not DOES_NOT_RUN.search(done.stdout), done.stdout


@pytest.mark.parametrize("lesson", sorted({fault.lesson for fault in FAULTS}))
def test_enough_faults(lesson):
    faults = [fault for fault in FAULTS if fault.lesson == lesson]
    assert len(faults) >= 15
    assert len({fault.id for fault in faults}) == len(faults)


def test_the_unchanged_lesson_passes(tmp_path):
    """The control: without a fault the same procedure accepts the lesson."""
    copy = tmp_path / "copy.ipynb"
    copy.write_bytes(lesson_path("46").read_bytes())
    done = run_nbval(copy)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed" not in done.stdout
