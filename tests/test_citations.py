"""Every citation has its entry, every entry its citation, and each entry says who cites it."""

import re
from pathlib import Path

import nbformat
from helpers_book import build, run_tool, tiny_book, tiny_lesson


def cited_in(root: Path, anchor: str, site: str = "html") -> list[tuple[str, str]]:
    """Return address and text of the links below an entry of the built references page."""
    html = (root / "_build" / site / "references.html").read_text(encoding="utf-8")
    section = html.split(f'<section id="{anchor}">')[1].split("</section>")[0]
    lines = re.findall(r'<p class="cited-in">Cited in: (.*?)</p>', section)
    return [link for line in lines for link in re.findall(r'href="([^"]+)">([^<]+)</a>', line)]


def preview(root: Path) -> str:
    """Build incrementally, as `make preview` does on a save; return the problems it names."""
    return run_tool(root, "preview.py", "--once").stderr


def test_entries_list_the_pages_that_cite_them(tmp_path):
    root = tiny_book(tmp_path / "book")
    with (root / "index.md").open("a") as page:
        page.write("\n[Twice](references.md#noether-1918), [twice](references.md#noether-1918).\n")
    done = build(root)
    assert done.returncode == 0, done.stderr
    assert cited_in(root, "ada-1843") == [("index.html", "A tiny book")]
    # Lessons first and by their number, other pages by title, each once.
    assert cited_in(root, "noether-1918") == [
        ("lessons/07-tiny.html", "Lesson 07"),
        ("index.html", "A tiny book"),
    ]


def test_citation_without_entry_fails_with_its_place(tmp_path):
    root = tiny_book(tmp_path / "book")
    lesson = tiny_lesson()
    lesson.cells[0].source += "\n\nAnd [Gauss, 1801](../references.md#gauss-1801)."
    nbformat.write(lesson, root / "lessons/07-tiny.ipynb")
    with (root / "index.md").open("a") as page:
        page.write("\n[Euler, 1736](references.md#euler-1736)\n")
    done = build(root)
    assert done.returncode == 1
    assert "lessons/07-tiny.ipynb, cell 1, line 5: local id not found" in done.stderr
    assert "gauss-1801" in done.stderr
    assert "index.md, line 11: local id not found" in done.stderr and "euler-1736" in done.stderr


def test_entry_nobody_cites_fails_with_its_place(tmp_path):
    root = tiny_book(tmp_path / "book")
    with (root / "references.md").open("a") as page:
        page.write("\n## Euler 1736\n\nBridges; see [here](references.md#euler-1736).\n")
    with (root / "index.md").open("a") as page:
        page.write("\nEuler 1736, unlinked. [All of them](references.md).\n")
    done = build(root)
    assert done.returncode == 1
    assert "references.md, line 11: nobody cites this entry" in done.stderr
    assert "euler-1736" in done.stderr and done.stderr.count("nobody cites") == 1


def test_incremental_builds_keep_the_lists_true(tmp_path):
    root = tiny_book(tmp_path / "book")
    assert preview(root) == ""
    index = (root / "index.md").read_text()
    (root / "index.md").write_text(index + "\n[Again](references.md#noether-1918)\n")
    assert preview(root) == ""
    pages = [text for _, text in cited_in(root, "noether-1918", "preview/html")]
    assert pages == ["Lesson 07", "A tiny book"]
    (root / "index.md").write_text(index.replace("[Ada, 1843](references.md#ada-1843)", "Ada"))
    assert "nobody cites this entry: cite references.md#ada-1843" in preview(root)
    assert cited_in(root, "ada-1843", "preview/html") == []
    pages = [text for _, text in cited_in(root, "noether-1918", "preview/html")]
    assert pages == ["Lesson 07"]
