"""The notebooks' own checks can fail: nbval rejects every planted fault.

Each fault costs a kernel and some seconds, so an ordinary run plants
FAULTS_PER_NOTEBOOK of each notebook, chosen by the commit: the same for the
same commit, others for the next. `make faults` plants all. That no fault is
stale is checked for all of them, always.
"""

import hashlib
import subprocess

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

import plant_faults
from check_notebooks import ROOT
from faults import FAULTS, Fault
from lesson_code import LESSON_FILES, NOTEBOOKS
from plant_faults import faulty_source, try_control, try_fault, verdict

FAULTS_PER_NOTEBOOK = 6
ENOUGH = {"46": 15}  # faults of a notebook; of the others:
ENOUGH_ELSEWHERE = 10
NAMES = [p.stem[:2] if p in LESSON_FILES else p.stem for p in NOTEBOOKS]


def commit():
    """The commit's hash, or where git knows none, one of the notebooks."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return done.stdout.strip()
    digest = hashlib.sha256()
    for path in NOTEBOOKS:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def choose(faults, seed, count):
    """`count` faults of each notebook, or all of them where it has fewer."""
    chosen = []
    for lesson in sorted({fault.lesson for fault in faults}):
        chosen += sorted(
            (fault for fault in faults if fault.lesson == lesson),
            key=lambda fault: hashlib.sha256(f"{seed} {fault.id}".encode()).digest(),
        )[:count]
    return chosen


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_no_fault_is_stale(fault):
    assert faulty_source(fault)


def test_the_choice_covers_all_faults_in_time():
    """Same seed, same faults; over many commits every fault gets its turn."""
    assert choose(FAULTS, "a", 10) == choose(FAULTS, "a", 10)
    lessons = {fault.lesson for fault in FAULTS}
    assert len(choose(FAULTS, "a", 10)) == 10 * len(lessons)
    seen = {f.id for seed in range(50) for f in choose(FAULTS, str(seed), 10)}
    assert seen == {fault.id for fault in FAULTS}


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", choose(FAULTS, commit(), FAULTS_PER_NOTEBOOK), ids=lambda fault: fault.id
)
def test_fault_is_rejected(fault):
    outcome = try_fault(fault)
    assert not outcome.problem, f"{outcome.problem}\n{outcome.log}"


@pytest.mark.parametrize("lesson", NAMES)
def test_enough_faults(lesson):
    faults = [fault for fault in FAULTS if fault.lesson == lesson]
    enough = ENOUGH.get(lesson, ENOUGH_ELSEWHERE)
    assert len(faults) >= enough, f"{lesson}: fewer than {enough} in tests/faults/"
    assert len({fault.id for fault in faults}) == len(faults)


@pytest.mark.slow
def test_the_unchanged_lesson_passes():
    """The control: without a fault the same procedure accepts the lesson."""
    assert not try_control("46").problem


FAULT = Fault("46", "a name", "a cell", "old", "new", "caught-here")


@pytest.mark.parametrize(
    "code, log, problem",
    [
        (0, "31 passed", "not noticed"),
        (1, "FAILED copy.ipynb::Cell 0", "should be caught by caught-here"),
        (1, "NameError: name\nFAILED copy.ipynb::Cell 1", "the code does not run"),
        (2, "ERROR: no tests", "nbval did not run (exit code 2)"),
        (1, "FAILED copy.ipynb::Cell 1", ""),
    ],
)
def test_a_fault_met_otherwise_is_told(monkeypatch, code, log, problem):
    ids = ["setup", "caught-here"]
    monkeypatch.setattr(plant_faults, "code_cells", lambda lesson: ids)
    assert problem in verdict(FAULT, code, log)[1]
    assert bool(problem) == bool(verdict(FAULT, code, log)[1])


@pytest.mark.parametrize(
    "cell, old, caught_by, message",
    [
        ("gone", "D, H = 16, 4", "mha-parity", "no cell 'gone'"),
        ("mha-parity", "D, H = 99, 4", "mha-parity", "stands 0 times in 'mha-parity'"),
        ("mha-parity", "mha_torch", "mha-parity", "times in 'mha-parity'"),
        ("mha-parity", "D, H = 16, 4", "gone", "no cell 'gone'"),
    ],
)
def test_a_stale_fault_is_refused(cell, old, caught_by, message):
    fault = Fault("46", "a name", cell, old, "new", caught_by)
    with pytest.raises(ValueError, match=f"stale: 46: a name: .*{message}"):
        faulty_source(fault)
    assert message in try_fault(fault).problem


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A notebook of one line, in place of Lesson 46, with two faults."""
    path = tmp_path / "46-tiny.ipynb"
    said = new_output("stream", name="stdout", text="4\n")
    cell = new_code_cell("print(2 + 2)", execution_count=1, outputs=[said], id="sum")
    plant_faults.nbformat.write(new_notebook(cells=[cell]), path)
    faults = [
        Fault("46", "three", "sum", "2 + 2", "2 + 1", "sum"),
        Fault("46", "the same", "sum", "2 + 2", "1 + 3", "sum"),
    ]
    monkeypatch.setattr(plant_faults, "FAULTS", faults)
    monkeypatch.setattr(plant_faults, "lesson_path", lambda lesson: path)
    monkeypatch.setattr(plant_faults, "find_lessons", lambda words: [path])
    plant_faults.read.cache_clear()
    yield path
    plant_faults.read.cache_clear()


@pytest.mark.slow
def test_the_table_tells_caught_from_missed(tiny, capsys):
    assert plant_faults.main([]) == 1
    said = capsys.readouterr().out
    assert "46           three " in said and " sum " in said
    assert "not noticed" in said and "2 faults, 1 not met" in said
    assert plant_faults.main(["--only", "three"]) == 0


@pytest.mark.slow
def test_without_a_passing_control_no_fault_is_planted(tiny, capsys):
    text = tiny.read_text(encoding="utf-8").replace("4\\n", "5\\n")
    tiny.write_text(text, encoding="utf-8")
    assert plant_faults.main([]) == 1
    said = capsys.readouterr().out
    assert "fails without any fault" in said and "three" not in said
