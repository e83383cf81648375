"""A lesson's head stands in one box: what you will be able to do, what you need, the time."""

import re

import nbformat
from helpers_book import build, tiny_book, tiny_lesson
from lesson_code import every_lesson, every_notebook

HEAD = """# Lesson 07: Tiny

An opening, **You will** see.

**You will**

- do *this*;
- and [that](../references.md#noether-1918).

**You need** nothing.

**It takes** a minute.

The end of the head.

**You need** no more."""


def test_head_is_one_box_of_three_parts_in_their_order(tmp_path):
    root = tiny_book(tmp_path / "book")
    lesson = tiny_lesson()
    lesson.cells[0].source = HEAD
    nbformat.write(lesson, root / "lessons/07-tiny.ipynb")
    done = build(root)
    assert done.returncode == 0, done.stderr
    html = (root / "_build/html/lessons/07-tiny.html").read_text(encoding="utf-8")
    boxes = re.findall(r'<div class="([^"]*)">', html)
    ours = [name.split()[0] for name in boxes if name.startswith("lesson-head")]
    parts = ["lesson-head-will", "lesson-head-need", "lesson-head-takes"]
    assert ours == ["lesson-head", *parts]
    head = html[html.index('<div class="lesson-head ') : html.index("The end of the head.")]
    assert head.count("<li>") == 2 and head.index("</ul>") < head.index("lesson-head-need")
    assert head.count("<div") == 4 and head.count("</div>") == 4
    assert "An opening" not in head and "no more" not in head


@every_notebook
def test_every_lesson_has_all_parts_of_a_head(path):
    text = nbformat.read(path, 4).cells[0].source
    names = re.findall(r"^\*\*(You will|How it goes|You need|It takes)\*\*", text, re.MULTILINE)
    first = "How it goes" if path.stem.endswith("exercises") else "You will"
    assert names == [first, "You need", "It takes"]
    assert re.search(r"\*\*It takes\*\*.* to run", text)


WORDS_A_MINUTE = 238  # mean of adults who read English non-fiction silently (Brysbaert, 2019)
SECONDS_A_LINE = (2, 4)  # of code: our own guess, checked against nobody's reading


def reading_times(notebook) -> list[float]:
    """Return the fewest and most minutes that a lesson takes to read."""
    cells = notebook.cells
    words = sum(len(cell.source.split()) for cell in cells if cell.cell_type == "markdown")
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    lines = sum(bool(line.strip()) for line in code.splitlines())
    return [words / WORDS_A_MINUTE + lines * seconds / 60 for seconds in SECONDS_A_LINE]


def stated_time(notebook) -> int:
    """Return the minutes that a lesson says it takes to read."""
    found = re.search(r"\*\*It takes\*\* about (\d+) minutes to read", notebook.cells[0].source)
    assert found, "the first cell does not say `**It takes** about NN minutes to read`"
    return int(found[1])


@every_lesson
def test_time_to_read_is_what_the_length_says(path):
    notebook = nbformat.read(path, 4)
    fewest, most = reading_times(notebook)
    assert fewest <= stated_time(notebook) <= most, f"{fewest:.0f} to {most:.0f} minutes"
    notebook.cells *= 2
    assert stated_time(notebook) < reading_times(notebook)[0], "twice the lesson in the same time"
