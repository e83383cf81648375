"""A handout has nothing of a worked answer in it, and runs from top to bottom."""

import re

import pytest

from tools import handout
from tools.execute import execute
from tools.form import ANSWER, exercises_of, sections
from tools.notebooks import EXERCISE_NAMES, path_of, printed, read


@pytest.mark.parametrize("name", EXERCISE_NAMES)
def test_a_handout_has_no_answers_and_runs(name, tmp_path, monkeypatch):
    monkeypatch.setattr(handout, "HANDOUT", tmp_path / "handout")
    assert handout.main([name]) == 0
    (path,) = handout.HANDOUT.iterdir()
    notebook, copy = read(path_of(name)), execute(path, tmp_path)
    asked, kept = (
        [(e.number, e.title, e.starter) for e in exercises_of(book)]
        for book in (notebook, copy)
    )
    shown = "".join(map(printed, copy.cells))
    assert kept == asked and shown.count(": not attempted yet; ") == len(asked)

    text = path.read_text(encoding="utf-8")
    assert not re.findall(r"\bworked_\w+|Worked answer", text)
    hidden = [cell for cell, section in sections(notebook) if section == ANSWER]
    results = "".join(map(printed, hidden)).splitlines()
    assert not {*results} & {*shown.splitlines()}
