"""A handout has nothing of a worked answer in it, and runs from top to bottom."""

import re

import pytest

from tools import handout
from tools.execute import execute
from tools.form import ANSWER, exercises_of, sections
from tools.notebooks import EXERCISE_NAMES, LESSON_NAMES, path_of, printed, read

# Too common to give anything away.
TRIVIAL = re.compile(r"\W*|.{0,24}|torch\.manual_seed\(.*|generator = .*", re.DOTALL)


def lines_of(cells):
    """Return the lines of the cells' sources, without comments."""
    lines = "\n".join(cell.source for cell in cells).splitlines()
    return {re.sub(r"\s+#.*", "", line).strip() for line in lines}


@pytest.fixture(params=EXERCISE_NAMES)
def pair(request, tmp_path, monkeypatch):
    """Return an exercise notebook and the path of its handout."""
    monkeypatch.setattr(handout, "HANDOUT", tmp_path / "handout")
    assert handout.main([request.param]) == 0
    (path,) = handout.HANDOUT.iterdir()
    return read(path_of(request.param)), path


def test_nothing_of_an_answer_remains(pair):
    notebook, copy = pair[0], read(pair[1])
    hidden = [cell for cell, section in sections(notebook) if section == ANSWER]
    # Code of the lessons, and what a task begins from, may stand in both.
    given = [cell for name in LESSON_NAMES for cell in read(path_of(name)).cells]
    given += [cell for e in exercises_of(notebook) for _, cell in e.open[:-2]]
    leaks = lines_of(hidden) & lines_of(copy.cells) - lines_of(given)
    assert not [line for line in leaks if not TRIVIAL.fullmatch(line)]
    results = "".join(map(printed, hidden)).splitlines()
    assert not {*results} & {*"".join(map(printed, copy.cells)).splitlines()}
    assert not re.findall(r"\bworked_\w+|Worked answer", pair[1].read_text("utf-8"))


def test_a_handout_keeps_the_exercises_and_runs(pair, tmp_path):
    asked = [(e.number, e.title, e.starter) for e in exercises_of(pair[0])]
    copy = execute(pair[1], tmp_path)
    assert [(e.number, e.title, e.starter) for e in exercises_of(copy)] == asked
    text = "".join(printed(cell) for cell in copy.cells)
    assert text.count(": not attempted yet; ") == len(asked)
