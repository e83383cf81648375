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


@pytest.mark.parametrize("name", EXERCISE_NAMES)
def test_a_handout_has_no_answers_and_runs(name, tmp_path, monkeypatch):
    monkeypatch.setattr(handout, "HANDOUT", tmp_path / "handout")
    assert handout.main([name]) == 0
    (path,) = handout.HANDOUT.iterdir()
    notebook, copy = read(path_of(name)), execute(path, tmp_path)
    asked, kept = (
        [(e.title, e.starter) for e in exercises_of(n)] for n in (notebook, copy)
    )
    shown = "".join(map(printed, copy.cells))
    assert kept == asked and shown.count(": not attempted yet; ") == len(asked)

    hidden = [cell for cell, section in sections(notebook) if section == ANSWER]
    # Code of the lessons, and what a task begins from, may stand in both.
    given = [cell for name in LESSON_NAMES for cell in read(path_of(name)).cells]
    given += [cell for e in exercises_of(notebook) for _, cell in e.open[:-2]]
    leaks = lines_of(hidden) & lines_of(copy.cells) - lines_of(given)
    assert not [line for line in leaks if not TRIVIAL.fullmatch(line)]
    results = "".join(map(printed, hidden)).splitlines()
    text = path.read_text("utf-8")
    assert not [line for line in results if line in shown.splitlines()]
    assert not re.findall(r"\bworked_\w+|Worked answer", text)
