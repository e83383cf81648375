"""Formulas are finished when the page is written: no network, no script, and no wrong TeX."""

import re

import nbformat
from helpers_book import build, tiny_book, tiny_lesson
from nbformat.v4 import new_markdown_cell

FORMULA = r"$$\mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d}}\right) V$$"


def with_formula(root, source: str) -> None:
    """Give the lesson of the tiny book a fourth cell of this text."""
    lesson = tiny_lesson()
    lesson.cells.append(new_markdown_cell(source, id="formula"))
    nbformat.write(lesson, root / "lessons/07-tiny.ipynb")


def test_page_holds_the_formula_and_asks_no_other_host(tmp_path):
    root = tiny_book(tmp_path / "book")
    with_formula(root, f"Let $d > 0$.\n\n{FORMULA}")
    done = build(root)
    assert done.returncode == 0, done.stderr
    lesson = (root / "_build/html/lessons/07-tiny.html").read_text(encoding="utf-8")
    assert lesson.count("<math ") == 2 and lesson.count('class="katex-display"') == 1
    assert "katex/katex.min.css" in lesson
    # A page without formulas does not load the style.
    assert "katex" not in (root / "_build/html/index.html").read_text(encoding="utf-8")

    static = root / "_build/html/_static/katex"
    fonts = re.findall(r"url\(([^)]+)\)", (static / "katex.min.css").read_text(encoding="utf-8"))
    assert fonts and all((static / font).is_file() for font in fonts)
    for page in (root / "_build/html").rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe)[^>]*\bsrc="([^"]+)"', html)
        loaded += re.findall(r'<link[^>]*rel="(?:stylesheet|preload)"[^>]*href="([^"]+)"', html)
        assert not [url for url in loaded if "//" in url], page


def test_wrong_tex_fails_with_its_place(tmp_path):
    root = tiny_book(tmp_path / "book")
    with_formula(root, "Text.\n\nInline $\\nosuch{x}$.\n\n$$\n\\frac{1}{\n$$")
    with (root / "index.md").open("a") as page:
        page.write("\n$\\left( x$\n")
    done = build(root)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    inline = [line for line in lines if line.startswith("lessons/07-tiny.ipynb, cell 4, line 3:")]
    assert len(inline) == 1 and "Undefined control sequence: \\nosuch" in inline[0]
    assert any(line.startswith("lessons/07-tiny.ipynb, cell 4, line 5: KaTeX") for line in lines)
    assert any(line.startswith("index.md, line 11: KaTeX") for line in lines)
    assert len(lines) == 4
