"""Pages are light, private and clean: few bytes, no other host, a silent console, one search."""

import os
import re

import pytest
from helpers_browser import SIZES, listen, pages, redirects, serve, visit

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

LESSON, OTHER, FRONT = 270_000, 200_000, 160_000
NOTHING = "did not match any documents"


def limit(page: str) -> int:
    """Return how many bytes a page may cost a reader who comes for the first time."""
    if page.startswith("lessons/"):
        return LESSON
    return FRONT if page in ("index", "references") else OTHER


@pytest.fixture(scope="module")
def visits(browser, address):
    """Return a function that visits a page of the site, each page once."""
    seen = {}

    def look(page: str):
        if page not in seen:
            seen[page] = visit(browser, f"{address}{page}.html")
        return seen[page]

    return look


def test_the_list_of_pages_is_whole(site):
    built = {path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html")}
    ours = {page for page in built if not page.startswith("_static/")}
    assert ours - redirects() == set(pages())


@pytest.mark.parametrize("page", pages())
def test_page_is_light(visits, page, record_property):
    seen = visits(page)
    line = f"{page}: {seen.bytes:,} B in {len(seen.requests)} requests; {seen.heaviest}"
    record_property("weight", line)
    assert seen.bytes <= limit(page), line


@pytest.mark.parametrize("page", pages())
def test_page_asks_nobody_else_and_the_console_is_silent(visits, page):
    assert visits(page).third_parties == []
    assert visits(page).complaints == []


FAULTS = {
    "heavy file": ('<link rel="stylesheet" href="heavy.css">', lambda seen: seen.bytes > LESSON),
    "other host": (
        '<img src="http://other.invalid/a.png">',
        lambda seen: seen.third_parties == ["http://other.invalid/a.png"],
    ),
    "console error": ("<script>console.error('no')</script>", lambda seen: seen.complaints),
    "console warning": ("<script>console.warn('no')</script>", lambda seen: seen.complaints),
    "exception": ("<script>throw Error('no')</script>", lambda seen: seen.complaints),
    "missing file": ('<script src="gone.js"></script>', lambda seen: seen.complaints),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault_is_seen(browser, tmp_path, name):
    html, found = FAULTS[name]
    head = '<!doctype html><html lang="en"><link rel="icon" href="data:,">'
    (tmp_path / "good.html").write_text(head)
    (tmp_path / "bad.html").write_text(head + html)
    (tmp_path / "heavy.css").write_text(f"/* {os.urandom(2 * LESSON).hex()} */")
    with serve(tmp_path) as address:
        assert found(visit(browser, f"{address}bad.html"))
        assert not found(visit(browser, f"{address}good.html"))


def visible_searches(page) -> int:
    """Count the fields and buttons for searching that a reader sees."""
    found = page.locator("input[type=search], .search-button__button")
    return sum(element.is_visible() for element in found.all())


@pytest.mark.parametrize("name", pages())
def test_page_has_one_search(browser, address, name):
    page = browser.new_page()
    page.goto(f"{address}{name}.html")
    for size in SIZES.values():
        page.set_viewport_size(size)
        assert visible_searches(page) == 1, size
    page.close()


def test_planted_second_search_is_seen(browser):
    page = browser.new_page()
    page.set_content("<input type=search><dialog><input type=search></dialog>")
    assert visible_searches(page) == 1
    page.set_content("<input type=search><button class=search-button__button>Search</button>")
    assert visible_searches(page) == 2
    page.close()


@pytest.mark.parametrize("how", ["served", "from a folder"])
def test_search_finds_works_offline_and_says_when_there_is_nothing(browser, address, site, how):
    context = browser.new_context()
    page = context.new_page()
    complaints = listen(page)
    page.goto(address if how == "served" else (site / "index.html").as_uri())
    if how == "from a folder":
        context.set_offline(True)
    page.keyboard.press("Control+k")
    page.keyboard.type("encoding")
    page.keyboard.press("Enter")
    results = page.locator("#search-results")
    results.get_by_role("link", name=re.compile("^Lesson 46")).first.wait_for()
    assert NOTHING not in results.inner_text()
    field = page.locator(".bd-search-container input[type=search]")
    field.fill("qwertyuiop")
    field.press("Enter")
    results.get_by_text(NOTHING).wait_for()
    assert complaints == []
    context.close()


# What the site may remember in the reader's browser, as SECURITY.md says: colours, menu, search.
REMEMBERED = {"mode", "theme", "sidebar-scroll-top", "sphinx_highlight_terms"}


def remembered(page) -> set[str]:
    """Return the names of all that a site has stored in the browser, cookies included."""
    stored = page.evaluate("[...Object.keys(localStorage), ...Object.keys(sessionStorage)]")
    return {*stored, *(f"cookie {cookie['name']}" for cookie in page.context.cookies())}


def test_a_visit_leaves_behind_no_more_than_the_security_page_says(browser, address):
    context = browser.new_context()
    page = context.new_page()
    left = set()
    page.goto(f"{address}search.html?q=attention")
    page.click("#search-results a >> nth=0")
    for name in ("notation", "lessons/46-transformer-architecture"):
        page.wait_for_load_state("networkidle")
        left |= remembered(page)
        page.click("button.theme-switch-button >> nth=0")
        page.goto(f"{address}{name}.html")
    left |= remembered(page)
    assert {"mode", "theme"} <= left <= REMEMBERED
    page.evaluate("localStorage.setItem('x', 1); document.cookie = 'y=1'")
    assert remembered(page) - REMEMBERED == {"x", "cookie y"}
    context.close()


@pytest.mark.parametrize("page", [name for name in pages() if name.startswith("lessons/")])
def test_extract_in_a_search_shows_formulas_and_headings_once(browser, address, page):
    opened = browser.new_page()
    opened.goto(f"{address}search.html?q=attention")
    text = opened.evaluate(
        """async page => Search.htmlToText(await (await fetch(page)).text())""", f"{page}.html"
    )
    assert len(text) > 1000
    assert "\\mathrm" not in text and "Contents" not in text
    opened.close()


FIGURE = 150_000  # bytes: one that is reached on the way down comes within a second on a phone


def test_what_comes_later_is_light_too(site):
    sizes = {path.name: path.stat().st_size for path in (site / "_images").iterdir()}
    assert sizes and {name: size for name, size in sizes.items() if size > FIGURE} == {}
