"""`make verify` refuses a site that is not whole; `make changes` says what differs from another."""

import shutil
import sys
from dataclasses import fields, replace
from pathlib import Path

import changed_pages
import check_site
import pytest
from bs4 import BeautifulSoup
from build_book import read_settings
from helpers_book import run_tool


@pytest.fixture
def whole(site, tmp_path) -> Path:
    """A copy of the built site, to take something from."""
    return Path(shutil.copytree(site, tmp_path / "html"))


PAGES, _ = read_settings()


def rewrite(page: Path, change) -> None:
    """Write a page again after a function changed its parsed form."""
    html = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    change(html)
    page.write_text(str(html), encoding="utf-8")


def test_the_real_site_is_whole(site):
    assert len(PAGES) > 10 and check_site.problems(site, PAGES) == []


@pytest.mark.parametrize("page", PAGES)
def test_planted_missing_page_is_refused(whole, page):
    assert check_site.missing(whole, PAGES) == []
    (whole / f"{page}.html").unlink()
    found = check_site.missing(whole, PAGES)
    assert f"{page}.html: missing, though _toc.yml lists it" in found


def test_planted_empty_site_is_refused(tmp_path):
    found = check_site.problems(tmp_path, PAGES)
    assert len(found) >= len(PAGES) and all("missing" in problem for problem in found)


def test_planted_empty_toc_is_refused(whole):
    assert check_site.missing(whole, []) == [
        "_toc.yml lists no page, so there is nothing to publish"
    ]


LESSON = "lessons/46-transformer-architecture.html"


def empty(html) -> None:
    """Leave an article of nothing but its heading."""
    heading = html.article.h1.extract()
    html.article.clear()
    html.article.append(heading)


@pytest.mark.parametrize(
    "change, complaint",
    [
        (lambda html: html.article.decompose(), f"{LESSON}: has no heading"),
        (lambda html: html.article.h1.decompose(), f"{LESSON}: has no heading"),
        (empty, f"{LESSON}: has a heading and nothing below it"),
        (
            lambda html: html.article.select_one(".cell_output").decompose(),
            f"{LESSON}: shows outputs of",
        ),
        (
            lambda html: html.article.img.attrs.update(src="../_images/none.png"),
            f"{LESSON}: refers to ../_images/none.png, which is not there",
        ),
        (
            lambda html: html.article.a.attrs.update(href="../../outside.html"),
            f"{LESSON}: refers to ../../outside.html, which is not there",
        ),
        (
            lambda html: html.article.a.attrs.update(href="/nowhere.html"),
            f"{LESSON}: refers to /nowhere.html, which is not there",
        ),
        (
            lambda html: html.article.a.attrs.update(href="/index.html"),
            f"{LESSON}: refers to /index.html, which is not there",
        ),
    ],
)
def test_planted_damage_to_a_page_is_refused(whole, change, complaint):
    (whole.parent / "outside.html").write_text("not of the site")
    rewrite(whole / LESSON, change)
    found = check_site.page_problems(whole / LESSON, whole, PAGES)
    assert any(problem.startswith(complaint) for problem in found), found


@pytest.mark.parametrize("base", ["/", "/class/"])
def test_the_404_page_may_name_files_from_the_root_and_they_must_be_there(tmp_path, base):
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static/course.css").touch()
    (tmp_path / "index.html").touch()
    names = ("_static/course.css", "", "index.html", "nowhere.html", "../outside.html")
    links = "".join(f'<a href="{base}{name}">a</a>' for name in names)
    (tmp_path / "404.html").write_text(f'<a href="/others/index.html">a</a>{links}')
    found = check_site.page_problems(tmp_path / "404.html", tmp_path, PAGES)
    absent = ("/others/index.html", f"{base}nowhere.html", f"{base}../outside.html")
    assert found == [f"404.html: refers to {name}, which is not there" for name in absent]


def test_planted_missing_style_sheet_is_refused(whole):
    (whole / "_static/course.css").unlink()
    found = check_site.page_problems(whole / "index.html", whole, PAGES)
    assert any("_static/course.css" in problem for problem in found)


def test_the_command_fails_on_a_site_that_is_not_whole(whole, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["check_site.py", str(whole)])
    (whole / LESSON).unlink()
    assert check_site.main() == 1
    said = capsys.readouterr().err
    assert f"{LESSON}: missing" in said and "is not whole" in said


def test_where_nothing_was_built_the_command_says_only_that(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["check_site.py", str(tmp_path / "html")])
    assert check_site.main() == 1
    said = capsys.readouterr().err
    assert said == f"error: nothing was built in {tmp_path / 'html'}; run `make book`\n"


def change_text(site: Path) -> None:
    """Change a word of a page."""
    page = site / "notation.html"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("<p>", "<p>New. ", 1), encoding="utf-8")


def change_menu(site: Path) -> None:
    """Change what stands around the text, on three pages."""
    for page in (site / f"{name}.html" for name in ("index", "glossary", "search")):
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace("</body>", "<p>menu</p></body>"), encoding="utf-8")


def change_by_nature(site: Path) -> None:
    """Change what differs without any change of the book."""
    (site / "searchindex.js").write_text("")
    (site / "_sources/index.md").write_text("")
    page = site / "index.html"
    text = page.read_text(encoding="utf-8")
    assert "course.css?v=" in text
    page.write_text(text.replace("course.css?v=", "course.css?v=1"), encoding="utf-8")


def rename(site: Path) -> None:
    """Give a page another name."""
    (site / "glossary.html").rename(site / "terms.html")


@pytest.mark.parametrize(
    "change, expected",
    [
        (lambda site: None, {}),
        (change_text, {"changed": ["notation.html"]}),
        (change_by_nature, {}),
        (rename, {"new": ["terms.html"], "gone": ["glossary.html"]}),
        (
            lambda site: (site / "_static/course.css").write_text(""),
            {"others": ["_static/course.css"]},
        ),
    ],
)
def test_changes_are_sorted_into_what_a_reviewer_asks(site, whole, change, expected):
    change(whole)
    assert changed_pages.compare(site, whole) == changed_pages.Changes(**expected)


def test_a_picture_that_keeps_its_name_is_told_and_one_with_another_is_not(tmp_path):
    for folder, content in [("old", b"1"), ("new", b"2")]:
        (tmp_path / folder / "_images").mkdir(parents=True)
        (tmp_path / folder / "index.html").write_text("<article>same</article>")
        (tmp_path / folder / "_images/dot.png").write_bytes(content)
        (tmp_path / folder / f"_images/{folder}.png").write_bytes(content)
    found = changed_pages.compare(tmp_path / "old", tmp_path / "new")
    assert found == changed_pages.Changes(others=["_images/dot.png"])


def test_what_stands_around_the_text_is_only_counted(site, whole):
    change_menu(whole)
    change_text(whole)
    found = changed_pages.compare(site, whole)
    assert found.changed == ["notation.html"]
    assert found.around == ["glossary.html", "index.html", "search.html"]
    text = changed_pages.summary(found)
    assert "**Pages that change** (1)\n\n- `notation.html`\n" in text
    assert "On 3 other pages only what stands around" in text


KINDS = {
    "new": "**New pages** (2)\n\n- `1.html`\n- `2.html`\n",
    "gone": "**Pages that go** (2)\n\n- `1.html`\n- `2.html`\n",
    "changed": "**Pages that change** (2)\n\n- `1.html`\n- `2.html`\n",
    "around": "On 2 other pages only what stands around the text.\n",
    "others": "**Other files** (2)\n\n- `1.html`\n- `2.html`\n",
}
TWO = ["1.html", "2.html"]


def untold(summary) -> list[str]:
    """Return the kinds of change that a summary leaves out, or tells of when there is none."""
    found = []
    assert set(KINDS) == {field.name for field in fields(changed_pages.Changes)}
    for kind, words in KINDS.items():
        text = summary(changed_pages.Changes(**{kind: TWO}))
        if text != f"## What changes on the site\n\n{words}":
            found.append(kind)
    every = summary(changed_pages.Changes(**dict.fromkeys(KINDS, TWO)))
    return found + [f"{kind} among others" for kind, words in KINDS.items() if words not in every]


def test_each_kind_of_change_is_told():
    assert untold(changed_pages.summary) == []


@pytest.mark.parametrize("kind", KINDS)
def test_planted_summary_without_a_kind_is_found(kind):
    def summary(changes):
        return changed_pages.summary(replace(changes, **{kind: []}))

    assert untold(summary) == [kind, f"{kind} among others"]


def test_no_change_is_said_and_no_site_is_an_error(site, tmp_path):
    assert "Nothing." in changed_pages.summary(changed_pages.compare(site, site))
    done = run_tool(Path(__file__).parent.parent, "changed_pages.py", str(tmp_path))
    assert done.returncode == 1 and "is no built site" in done.stderr


@pytest.mark.parametrize("arguments", [[], [""]])
def test_a_missing_older_site_is_said_by_the_name_that_make_has_for_it(arguments):
    done = run_tool(Path(__file__).parent.parent, "changed_pages.py", *arguments)
    assert done.returncode == 1
    assert done.stderr.startswith("error: OLD= is missing; name the folder of the older site")
