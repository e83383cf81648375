"""The book as one page, from which its PDF is printed: every link leads to its own heading."""

import re
import subprocess
import sys
from collections import Counter

import nbformat
import pytest
from helpers_book import TOC, tiny_book, tiny_lesson

BUILD = """
import sys
sys.path.insert(0, "tools")
import build_book
found = build_book.run_sphinx(build_book.FRESH / "single", builder="singlehtml")
sys.exit("\\n".join(found) or None)
"""


def one_page(root) -> str:
    """Build the book at `root` as one page, and return its article."""
    done = subprocess.run([sys.executable, "-c", BUILD], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    html = (root / "_build/fresh/single/index.html").read_text(encoding="utf-8")
    return re.search(r"<article.*</article>", html, re.DOTALL)[0]


@pytest.fixture
def book(tmp_path):
    """A tiny book with two lessons that have the same headings, and link to them."""
    root = tiny_book(tmp_path / "book")
    for number, other in [("07", "08"), ("08", "07")]:
        lesson = tiny_lesson()
        lesson.cells[0].source = (
            f"# Lesson {number}: Tiny\n\nSee [Noether, 1918](../references.md#noether-1918), "
            f"[there]({other}-tiny.ipynb#the-same), [here](#the-same), [all]({other}-tiny.ipynb), "
            f"[mistakes](../index.md#found-a-mistake)."
            f"\n\n## The same\n\nIn lesson {number}."
        )
        nbformat.write(lesson, root / f"lessons/{number}-tiny.ipynb")
    (root / "_toc.yml").write_text(
        TOC.replace("07-tiny\n", "07-tiny\n      - file: lessons/08-tiny\n")
    )
    return root


def targets(article: str, words: str) -> list[str]:
    """Return where the links with these words lead, from `#` on, in order."""
    found = re.findall(r'<a class="reference[^>]*?href="([^"]*)"[^>]*>(.*?)</a>', article)
    return [url for url, text in found if re.sub("<.*?>", "", text) == words]


def test_links_lead_to_the_right_one_of_two_equal_headings(book):
    article = one_page(book)
    anchors = re.findall(r'\bid="([^"]*)"', article)
    assert [name for name, times in Counter(anchors).items() if times > 1] == []
    first, second = "lessons/07-tiny", "lessons/08-tiny"
    assert targets(article, "there") == [f"#{second}/the-same", f"#{first}/the-same"]
    assert targets(article, "here") == [f"#{first}/the-same", f"#{second}/the-same"]
    assert targets(article, "all") == [f"#document-{second}", f"#document-{first}"]
    inside = {url[1:] for url in re.findall(r'href="(#[^"]*)"', article)}
    assert len(inside) > 10 and inside - set(anchors) == {""}, "and the top is the first page"
    assert targets(article, "mistakes") == ["#found-a-mistake"] * 2
    for number in ("07", "08"):
        section = article.partition(f'id="lessons/{number}-tiny/the-same"')[2]
        assert f"In lesson {number}." in section[:500]


def test_references_say_where_they_are_cited(book):
    article = one_page(book)
    assert targets(article, "Lesson 07") == ["#document-lessons/07-tiny"]
    assert targets(article, "Noether, 1918") == ["#references/noether-1918"] * 2


def test_without_the_extension_links_lead_astray(book):
    settings = (book / "_config.yml").read_text(encoding="utf-8")
    assert "      - single_page\n" in settings
    (book / "_config.yml").write_text(settings.replace("      - single_page\n", ""))
    article = one_page(book)
    assert len(set(targets(article, "there"))) == 1
