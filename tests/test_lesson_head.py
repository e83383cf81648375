"""A lesson's head stands in one box: what you will be able to do, what you need, the time."""

import re

import nbformat
import pytest
from helpers_book import ROOT, build, tiny_book, tiny_lesson

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


@pytest.mark.parametrize("path", sorted((ROOT / "lessons").glob("*.ipynb")), ids=lambda p: p.stem)
def test_every_lesson_has_all_parts_of_a_head(path):
    text = nbformat.read(path, 4).cells[0].source
    names = re.findall(r"^\*\*(You will|How it goes|You need|It takes)\*\*", text, re.MULTILINE)
    first = "How it goes" if path.stem.endswith("exercises") else "You will"
    assert names == [first, "You need", "It takes"]
    assert re.search(r"\*\*It takes\*\*.* to run", text)
