"""`make handout`: exercises for a class, with nothing of an answer in them."""

import re

import handout
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from exercise_form import ANSWER, exercises_of, sections, source_of
from handout import without_answers
from lesson_code import EXERCISES, LESSON_FILES, parametrize_paths, printed
from run_lessons import execute

# too common to give anything away
TRIVIAL = re.compile(r"\W*|.{0,24}|torch\.manual_seed\(.*|generator = .*", re.DOTALL)


def lines_of(cells):
    """The lines of the cells' sources, stripped of white space and comments."""
    return {
        re.sub(r"\s+#.*", "", line).strip()
        for cell in cells
        for line in source_of(cell).splitlines()
    }


def leaks(path, copy):
    """What a handout still has of the answers of the notebook at `path`.

    Lines that the task itself gives (code from the lesson, and code cells
    before a starter) are no leak.
    """
    notebook = nbformat.read(path, as_version=4)
    answers = [cell for cell, place in sections(notebook) if place == ANSWER]
    given = [
        cell
        for lesson in LESSON_FILES
        for cell in nbformat.read(lesson, as_version=4).cells
    ]
    for exercise in exercises_of(notebook):
        given += [cell for _, cell in exercise.open[:-2]]
    hidden = lines_of(answers) - lines_of(given)
    found = [
        f"line: {x}" for x in hidden & lines_of(copy.cells) if not TRIVIAL.fullmatch(x)
    ]
    ids = {cell.id for cell in answers}
    found += [f"cell: {cell.id}" for cell in copy.cells if cell.id in ids]
    results = {
        line
        for cell in answers
        for output in cell.get("outputs", [])
        for line in output.get("text", "").splitlines()
    }
    for _, text in printed(copy):
        found += [f"output: {x}" for x in text.splitlines() if x in results]
    for cell in copy.cells:
        found += re.findall(r"\bworked_\w+|Worked answer", source_of(cell))
    return found


every_exercise_notebook = parametrize_paths(EXERCISES)


@every_exercise_notebook
def test_nothing_of_an_answer_remains(path):
    copy = without_answers(nbformat.read(path, as_version=4))
    assert not leaks(path, copy)


@pytest.mark.slow
@every_exercise_notebook
def test_a_handout_keeps_the_exercises_and_runs(path, tmp_path):
    before = nbformat.read(path, as_version=4)
    copy = without_answers(before)
    nbformat.validate(copy)
    kept = [(e.number, e.title, e.starter, len(e.hint)) for e in exercises_of(copy)]
    assert kept == [
        (e.number, e.title, e.starter, len(e.hint)) for e in exercises_of(before)
    ]
    file = tmp_path / path.name
    nbformat.write(copy, file)
    (tmp_path / "empty").mkdir()
    text = "".join(t for _, t in printed(execute(file, tmp_path / "empty")))
    assert text.count(": not attempted yet; ") == len(kept)


def test_the_command_writes_one_copy_a_notebook(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(handout, "HANDOUT", tmp_path / "handout")
    assert handout.main(["46"]) == 0
    assert [f.name for f in handout.HANDOUT.iterdir()] == ["46-exercises.ipynb"]
    assert "46-exercises.ipynb" in capsys.readouterr().out


def test_the_command_refuses_a_notebook_out_of_form(tmp_path, monkeypatch, capsys):
    bad = tmp_path / "46-exercises.ipynb"
    notebook = nbformat.read(EXERCISES[0], as_version=4)
    heading = next(c for c in notebook.cells if c.source == ANSWER)
    heading.source = "### The answer"
    nbformat.write(notebook, bad)
    monkeypatch.setattr(handout, "find_lessons", lambda words: [bad])
    monkeypatch.setattr(handout, "HANDOUT", tmp_path / "handout")
    assert handout.main([]) == 1
    assert not (tmp_path / "handout").exists()
    assert "46-exercises.ipynb, cell " in capsys.readouterr().err


@pytest.mark.parametrize("what", ["code", "hint", "output", "cell"])
def test_a_leak_is_found(what):
    path = EXERCISES[-1]
    notebook = nbformat.read(path, as_version=4)
    copy = without_answers(notebook)
    answer = next(
        cell
        for cell, place in sections(notebook)
        if place == ANSWER and cell.cell_type == "code"
    )
    if what == "code":
        copy.cells.append(new_code_cell(answer.source))
    elif what == "hint":
        copy.cells.append(new_markdown_cell("Call `worked_it`."))
    elif what == "output":
        copy.cells.append(new_code_cell("pass", outputs=answer.outputs))
    else:
        copy.cells.append(answer)
    assert leaks(path, copy)
