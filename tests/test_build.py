"""`make book` is strict: a fault fails it, a line names the place, nothing is lost."""

import nbformat
import pytest

from tests.book import OPENING, PAGES, change, lesson
from tools.build import build, report

# one build for all faults of pages: the tests stay together
pytestmark = pytest.mark.xdist_group("build")


@pytest.fixture
def site(book):
    """Return where the book's site belongs; a good one lies there."""
    (book / "_build/html").mkdir(parents=True)
    (book / "_build/html/stale.html").write_text("the last good site")
    return book / "_build/html"


def is_unchanged(site) -> bool:
    """Say whether the last good site is there, and nothing beside it."""
    return [path.name for path in site.parent.iterdir()] == ["html"] and (
        [path.name for path in site.iterdir()] == ["stale.html"]
    )


MISSING = "'myst' cross-reference target not found"
ALT = "image without alternative text: say what it shows, in its alt text or, for a "
ALT += "figure of a cell, in the cell's metadata: mystnb.image.alt"
# What stands in a page, {up} being the way to the book's folder, and what is reported.
FAULTS = {
    "[gone](nowhere.md)": f"{MISSING}: 'nowhere.md' [myst.xref_missing]",
    "[Gauss]({up}references.md#gauss-1801)": "local id not found in doc 'references': "
    "'gauss-1801' [myst.xref_missing]",
    r"$\nosuch{{x}}$": "KaTeX parse error: Undefined control sequence: \\nosuch at "
    "position 1: \\nosuch{x}",
    "![]({up}dot.png)": ALT,
    '<img src="{up}dot.png">': ALT,
    "![dot]({up}no.png)": "image file not readable: no.png",
    "### Deep": "Non-consecutive header level increase; H1 to H3 [myst.header]",
    "```{{figur}} dot.png\n```": "Unknown directive type: 'figur' "
    "[myst.directive_unknown]",
    "```pythn\nx\n```": "Pygments lexer name 'pythn' is not known",
}


def test_each_fault_of_a_page_is_named_with_its_place(book, site, capsys):
    expected, toc = [], PAGES["_toc.yml"]
    for number, (text, message) in enumerate(FAULTS.items(), 10):
        page = text.format(up="")
        (book / f"p{number}.md").write_text(f"# A page\n\nText.\n\n{page}\n")
        expected.append(f"p{number}.md, line 5: {message}")
        cell = f"Text.\n\n{text.format(up='../')}"
        nbformat.write(lesson(OPENING, cell), book / f"lessons/{number}-x.ipynb")
        place = f"lessons/{number}-x.ipynb, cell 3, line 3"
        expected.append(f"{place}: {message}")
        toc += f"- file: p{number}\n- file: lessons/{number}-x\n"
    need = OPENING + "\n\n**You need** [Lesson 10](10-x.ipynb)."
    nbformat.write(lesson(need, alt=""), book / "lessons/08-x.ipynb")
    expected += [
        "lessons/08-x.ipynb, cell 1, line 5: 'You need' links Lesson 10, which does "
        "not come before",
        f"lessons/08-x.ipynb, cell 2, line 1: {ALT}",
        "references.md, line 11: nobody cites this entry: cite "
        "references.md#euler-1736 or remove it",
        "index.md, line 1: toctree contains reference to document 'untitled' that "
        "doesn't have a title: no link will be generated",
    ]
    with (book / "references.md").open("a") as references:
        references.write("\n## Euler 1736\n\nBridges; see [here](#euler-1736).\n")
    (book / "untitled.md").write_text("Text.\n")
    (book / "_toc.yml").write_text(f"{toc}- file: lessons/08-x\n- file: untitled\n")
    found = build(book, site)
    assert sorted(found) == sorted(expected)
    assert is_unchanged(site)
    assert report(found) == 1
    assert "not built" in capsys.readouterr().err.splitlines()[-1]


# What is replaced in a file ("" for its end), by what, and what is reported.
CONFIG = [
    ("", "title: [unclosed", "_config.yml: while parsing"),
    ('author: "', 'author: 3 # "', "_config.yml: - 3 is not of type 'str"),
    ("  branch:", "  branche:", "_config.yml: repository.branche is not a "),
    (".light\n", ".lite\n", "ExtensionError: Could not import extension"),
    ('  url: ""', "  url: o/r", "ConfigError: _config.yml: repository.url"),
    ('hub_url: ""', "hub_url: a.b", "ConfigError: _config.yml: launch_butt"),
    ('baseurl: ""', "baseurl: a.b", "ConfigError: _config.yml: html.baseurl"),
    ("redirects: {}", "redirects: {a: b}", "b.html does not exist"),
]
TOC = [
    ("", "a: [b", "_toc.yml: while parsing"),
    ("root: index", "", "_toc.yml: 'root' key not found"),
    ("- file: lessons/07-tiny\n", "", "lessons/07-tiny.ipynb: not in _toc.yml"),
    ("07-tiny", "08-x", "_toc.yml: there is no lessons/08-x.md"),
]
SETTINGS = [("_config.yml", *row) for row in CONFIG]
SETTINGS += [("_toc.yml", *row) for row in TOC]


@pytest.mark.parametrize(("file", "old", "new", "message"), SETTINGS)
def test_wrong_settings_fail_by_name(book, site, file, old, new, message):
    change(book / file, old, new)
    found = build(book, site)
    assert any(message in line for line in found), found
    assert is_unchanged(site)


def test_faulty_notebook_or_unfinished_site_is_refused(book, site, monkeypatch):
    assert build(book, site, finish=lambda fresh, pages: ["no paper"]) == ["no paper"]
    monkeypatch.setattr("tools.form.problems", lambda path: [f"{path.name}: no"])
    assert build(book, site) == ["07-tiny.ipynb: no"]
    assert is_unchanged(site)


def test_good_build_replaces_all_and_gives_the_same_bytes_again(book, site):
    sites = []
    for _ in range(2):
        assert build(book, site) == []
        assert [path.name for path in site.parent.iterdir()] == ["html"]
        files = [path for path in site.rglob("*") if path.is_file()]
        sites.append({path: path.read_bytes() for path in files})
    assert len(sites[0]) > 50 and site / "stale.html" not in sites[0]
    assert sites[0] == sites[1]
    html = (site / "index.html").read_text(encoding="utf-8")
    assert "No book." not in html and "07 Tiny" in html and "<td>Why?</td>" in html
