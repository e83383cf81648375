"""`make long` and `make record`: what takes minutes, and what it printed last time."""

import re

import long_answers
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from lesson_code import EXERCISES
from long_answers import RECORD

CODE = "import torch\n\n\ndef half_in_full():\n    print('half', 1 / 2)"


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    """A notebook with one long answer that was never run; returns its path."""
    path = tmp_path / "01-exercises.ipynb"
    cells = [new_code_cell(CODE), new_markdown_cell(f"{RECORD} Not yet run.")]
    nbformat.write(new_notebook(cells=cells), path)
    monkeypatch.setattr(long_answers, "find_lessons", lambda words: [path])
    return path


def test_a_result_is_recorded_with_date_and_versions(notebook, capsys):
    assert long_answers.main(["--record"]) == 0
    text = nbformat.read(notebook, as_version=4).cells[1].source
    assert re.match(
        r"\*\*In full\.\*\* Run on \d{4}-\d\d-\d\d with torch \d+\.\d+\.\d+ and Python "
        r"3\.\d+\.\d+ on \w+ \w+, in 1 min on one thread:\n\n```text\nhalf 0\.5\n```",
        text,
    )
    assert long_answers.main([]) == 0
    assert "as recorded" in capsys.readouterr().out


def test_another_result_is_told_and_loses_nothing(notebook, capsys):
    long_answers.main(["--record"])
    changed = nbformat.read(notebook, as_version=4)
    changed.cells[0].source = CODE.replace("1 / 2", "1 / 4")
    nbformat.write(changed, notebook)
    before = notebook.read_bytes()
    assert long_answers.main([]) == 1
    assert "it was:\nhalf 0.5\nand is:\nhalf 0.25\n" in capsys.readouterr().out
    assert notebook.read_bytes() == before


def test_a_result_never_recorded_differs(notebook):
    assert long_answers.main([]) == 1


def test_a_long_answer_without_its_cell_is_refused(notebook):
    changed = nbformat.read(notebook, as_version=4)
    changed.cells[1].source = "Text."
    nbformat.write(changed, notebook)
    with pytest.raises(
        SystemExit, match=r"01-exercises\.ipynb, cell 1: half_in_full is not"
    ):
        long_answers.main([])


@pytest.mark.parametrize("path", EXERCISES, ids=lambda path: path.stem)
def test_every_long_answer_is_recorded(path):
    for answer in long_answers.long_answers(path, nbformat.read(path, as_version=4)):
        assert answer.recorded.count("\n") > 1, answer.function
