"""The first page's map shows what each lesson stands on, as the table and the lessons say it."""

import re
from xml.etree import ElementTree

import lesson_map
import nbformat
import pytest
from helpers_book import build, tiny_book, tiny_lesson
from nbformat.v4 import new_markdown_cell

TABLE = """
| lesson | question | stands on |
|---|---|---|
| [07 Tiny](lessons/07-tiny.ipynb) | Why? | {first} |
| [08 Tinier & so on](lessons/08-tinier.ipynb) | How? | {second} |
"""


def book(target, first="", second="07", link="07-tiny.ipynb"):
    """Write a tiny book of two lessons, the second of which needs the first."""
    root = tiny_book(target)
    with (root / "index.md").open("a") as page:
        page.write(TABLE.format(first=first, second=second))
    lesson = tiny_lesson()
    need = f"**You need** [Lesson 07]({link}) and [a paper](../references.md#ada-1843)."
    lesson.cells = [
        new_markdown_cell(f"# Lesson 08: Tinier\n\nText.\n\n{need}", id="text"),
        new_markdown_cell("See [Lesson 07](07-tiny.ipynb), not needed.", id="more"),
    ]
    nbformat.write(lesson, root / "lessons/08-tinier.ipynb")
    toc = (root / "_toc.yml").read_text()
    old = "      - file: lessons/07-tiny\n"
    (root / "_toc.yml").write_text(toc.replace(old, f"{old}      - file: lessons/08-tinier\n"))
    return root


def test_map_links_each_lesson_and_says_what_it_stands_on(tmp_path):
    root = book(tmp_path / "book")
    done = build(root)
    assert done.returncode == 0, done.stderr
    html = (root / "_build/html/index.html").read_text(encoding="utf-8")
    assert html.index('<figure class="lesson-map">') < html.index("<table")
    boxes = re.findall(r'<a href="([^"]*)" aria-label="([^"]*)"><rect', html)
    assert boxes == [
        ("lessons/07-tiny.html", "Lesson 07 Tiny"),
        ("lessons/08-tinier.html", "Lesson 08 Tinier &amp; so on, stands on 07"),
    ]
    assert html.count("marker-end=") == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            dict(second=""),
            "the table says that Lesson 08 stands on nothing, and the lesson's 'You need' links "
            "07: make them the same",
        ),
        (
            dict(link="https://example.org/"),
            "the table says that Lesson 08 stands on 07, and the lesson's 'You need' links "
            "nothing: make them the same",
        ),
        (
            dict(second="07, 09"),
            "Lesson 08 stands on 09, not in the table above it",
        ),
        (dict(first="08"), "Lesson 07 stands on 08, not in the table above it"),
    ],
)
def test_table_and_lessons_that_disagree_fail_the_build(tmp_path, change, message):
    root = book(tmp_path / "book", **change)
    done = build(root)
    assert done.returncode == 1
    assert f"index.md, line 11: {message}" in done.stderr.splitlines()


def test_other_tables_stay_as_they_are(tmp_path):
    root = tiny_book(tmp_path / "book")
    with (root / "index.md").open("a") as page:
        page.write("\n| lesson | question |\n|---|---|\n| one | why |\n")
    assert build(root).returncode == 0
    html = (root / "_build/html/index.html").read_text(encoding="utf-8")
    assert "<table" in html and "lesson-map" not in html


def lessons(**needs):
    """Make rows from numbers and what they stand on: lessons(n1="", n2="1")."""
    return [
        dict(docname=f"lessons/{name[1:]}-x", number=name[1:], title="A title", needs=list(need))
        for name, need in needs.items()
    ]


GRAPHS = {
    "one": lessons(n1=""),
    "chain": lessons(n1="", n2="1", n3="2"),
    "two roots": lessons(n1="", n2="", n3="12", n4="3"),
    "wide": lessons(n1="", n2="", n3="", n4="", n5="", n6="1234"),
    "skips a row": lessons(n1="", n2="1", n3="12"),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_drawing_has_a_box_and_its_arrows_for_each_lesson_in_its_place(name):
    graph = GRAPHS[name]
    where = lesson_map.places(graph)
    assert len(set(where.values())) == len(graph), "no box on another"
    for lesson in graph:
        assert all(where[need][0] < where[lesson["number"]][0] for need in lesson["needs"])
    svg = ElementTree.fromstring(lesson_map.draw(graph, "{}.html".format))
    _, _, width, height = map(float, svg.get("viewBox").split())
    boxes = [box.attrib for box in svg.iter("rect")]
    assert len(boxes) == len(graph)
    for box in boxes:
        assert 0 <= float(box["x"]) and float(box["x"]) + float(box["width"]) <= width
        assert 0 <= float(box["y"]) and float(box["y"]) + float(box["height"]) <= height
    arrows = [path for path in svg.iter("path") if "marker-end" in path.attrib]
    assert len(arrows) == sum(len(lesson["needs"]) for lesson in graph)
    tops = {float(box["y"]) - 1 for box in boxes}
    for arrow in arrows:
        start, *_, end = re.findall(r"(-?\d+) (-?\d+)", arrow.get("d"))
        assert int(start[1]) < int(end[1]) and float(end[1]) + 6 in tops


def test_long_titles_are_broken_between_words():
    assert lesson_map.lines("Residual networks and normalization") == [
        "Residual networks",
        "and normalization",
    ]
    assert lesson_map.lines("Attention") == ["Attention"]
    assert lesson_map.lines("Unbreakablyunreasonablylong") == ["Unbreakablyunreasonablylong"]
