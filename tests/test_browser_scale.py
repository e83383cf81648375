"""A book too large for a whole list beside each page is as usable as a small one."""

import pytest
from helpers_book import build
from helpers_browser import SIZES, THEMES, serve, visit
from test_browser_access import lost, violations

from large_book import write_book

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Serve a book of 80 pages, and give its address."""
    root = write_book(tmp_path_factory.mktemp("large") / "book", 40, exercises=True)
    done = build(root)
    assert done.returncode == 0, done.stderr
    with serve(root / "_build/html") as address:
        yield address


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_and_nothing_sticks_out(browser, address, size, theme):
    page = browser.new_page(viewport=SIZES[size], color_scheme=theme, reduced_motion="reduce")
    for name in ("lessons/20-sums", "all-pages"):
        page.goto(f"{address}{name}.html")
        assert violations(page) == []
        assert lost(page) == []
    page.close()


@pytest.mark.parametrize("name", ["lessons/20-sums", "all-pages"])
def test_page_asks_nobody_else_and_the_console_is_silent(browser, address, name):
    seen = visit(browser, f"{address}{name}.html")
    assert seen.third_parties == []
    assert seen.complaints == []


def test_a_reader_without_javascript_finds_a_page_far_away(browser, address):
    context = browser.new_context(java_script_enabled=False, viewport=SIZES["desktop"])
    page = context.new_page()
    page.goto(f"{address}lessons/01-sums.html")
    beside = page.get_by_role("navigation", name="Main")
    assert beside.get_by_role("link", name="Lesson 40").count() == 0
    beside.get_by_role("link", name="All pages").click()
    page.get_by_role("main").get_by_role("link", name="Lesson 40: Sums of 40 Numbers").click()
    assert page.get_by_role("heading", level=1).inner_text().startswith("Lesson 40")
    context.close()
