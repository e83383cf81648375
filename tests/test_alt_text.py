"""An image without alternative text fails the build, wherever it stands."""

import nbformat
import pytest
from helpers_book import build, tiny_book, tiny_lesson
from nbformat.v4 import new_markdown_cell


# one build for all: the tests stay together where there are several workers
pytestmark = pytest.mark.xdist_group(__name__)


@pytest.fixture(scope="module")
def complaints(tmp_path_factory) -> str:
    """What the build says about a book with an image of every bad kind, and of every good one."""
    root = tiny_book(tmp_path_factory.mktemp("alt") / "book")
    with (root / "index.md").open("a") as page:
        page.write("\n![](dot.png)\n\n![  ](dot.png)\n\n![good](dot.png)\n")
        page.write(
            '\n<img src="dot.png">\n\n<img src="dot.png" alt="">\n\n<img alt="good" src="x">\n'
        )
    lesson = tiny_lesson()
    del lesson.cells[2].metadata["mystnb"]
    lesson.cells.append(new_markdown_cell("Text.\n\n![](../dot.png)", id="bad"))
    good = tiny_lesson().cells[2]
    good.id = "good"
    lesson.cells.append(good)
    nbformat.write(lesson, root / "lessons/07-tiny.ipynb")
    done = build(root)
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize(
    "place",
    [
        "index.md, line 11",
        "index.md, line 13",
        "index.md, line 17",
        "index.md, line 19",
        "lessons/07-tiny.ipynb, cell 3, line 1",
        "lessons/07-tiny.ipynb, cell 4, line 3",
    ],
)
def test_each_is_named_with_its_place(complaints, place):
    assert f"{place}: image without alternative text" in complaints


def test_nothing_else_is_named(complaints):
    assert complaints.count("image without alternative text") == 6


def test_a_cell_is_told_where_its_text_belongs(complaints):
    line = next(line for line in complaints.splitlines() if "cell 3" in line)
    assert "mystnb.image.alt" in line
