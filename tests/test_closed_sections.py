"""Hints and worked answers are closed on the page, and open without JavaScript."""

import re

import nbformat
import pytest
from helpers_book import TOC, build, tiny_book, tiny_lesson
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

SAID = new_output("stream", name="stdout", text="not attempted yet\n")


# one build for all: the tests stay together where there are several workers
pytestmark = pytest.mark.xdist_group(__name__)


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, str]:
    """The HTML of an exercise page, and of a lesson with the same sections, by name."""
    root = tiny_book(tmp_path_factory.mktemp("closed") / "book")
    lesson = tiny_lesson()
    lesson.cells += [
        new_markdown_cell("## 1. One", id="task"),
        new_code_cell(
            "# @title Check exercise 1\n1",
            execution_count=3,
            outputs=[SAID],
            metadata={"tags": ["hide-input"]},
            id="check",
        ),
        new_markdown_cell("### Hint", id="hint"),
        new_markdown_cell("Think of $x^2$.", id="hint-text"),
        new_markdown_cell("### Worked answer", id="answer"),
        new_code_cell("x * x", execution_count=4, id="answer-code"),
        new_markdown_cell("## 2. Two\n\nOn.", id="next"),
    ]
    nbformat.write(lesson, root / "lessons/07-tiny.ipynb")
    lesson.cells[0].source = "# Lesson 07: Exercises\n\n[On](07-tiny.ipynb#1-one)"
    nbformat.write(lesson, root / "lessons/07-exercises.ipynb")
    (root / "_toc.yml").write_text(
        TOC.replace(
            "      - file: lessons/07-tiny\n",
            "      - file: lessons/07-tiny\n"
            "        sections:\n          - file: lessons/07-exercises\n",
        )
    )
    done = build(root)
    assert done.returncode == 0, done.stderr
    site = root / "_build/html/lessons"
    return {
        page: (site / f"{page}.html").read_text(encoding="utf-8")
        for page in ("07-tiny", "07-exercises")
    }


def closed(html: str) -> list[tuple[str, str]]:
    """The summary and the rest of each closed section."""
    pattern = r'<details class="closed-section"[^>]*>\s*<summary>(.*?)</summary>(.*?)</details>'
    return re.findall(pattern, html, re.DOTALL)


def test_hint_and_answer_are_closed(pages):
    found = closed(pages["07-exercises"])
    assert [summary for summary, _ in found] == ["Hint", "Worked answer"]
    assert "katex" in found[0][1]
    assert "x</span>" in found[1][1] and "Two" not in found[1][1]


def test_they_need_no_script_and_are_not_open(pages):
    for tag in re.findall(r"<details class=\"closed-section\"[^>]*>", pages["07-exercises"]):
        assert " open" not in tag and "on" + "click" not in tag


def test_they_are_no_entries_of_the_page_contents(pages):
    assert re.search(r'<a class="reference internal nav-link" href="#one">', pages["07-exercises"])
    assert 'href="#hint"' not in pages["07-exercises"]
    assert 'href="#hint"' in pages["07-tiny"]


def test_a_check_is_closed_under_its_title_and_its_output_shows(pages):
    html = pages["07-exercises"]
    box = re.search(r'<details class="[^"]*hide above-input.*?</details>', html, re.DOTALL)[0]
    assert box.count("Check exercise 1</p>") == 2
    assert "not attempted yet" in html.replace(box, "")


def test_a_lesson_keeps_such_sections_open(pages):
    assert not closed(pages["07-tiny"])
    assert re.search(r"<h3>Hint", pages["07-tiny"])
