"""Everybody can use a page: axe finds nothing, nothing sticks out, keys are enough."""

import pytest

from tests.browser import (
    PAGES,
    SIZES,
    axe_violations,
    complaints_of,
    overflowing_elements,
)

pytestmark = pytest.mark.xdist_group("access")


@pytest.fixture
def open_page(browser, address):
    """Return a function that opens a page of the site, without moving parts."""
    opened = []

    def open_page(name: str, size: str = "desktop"):
        page = browser.new_page(viewport=SIZES[size], reduced_motion="reduce")
        opened.append(page)
        page.goto(f"{address}{name}.html", wait_until="load")
        return page

    yield open_page
    for page in opened:
        page.close()


@pytest.mark.parametrize("name", PAGES)
def test_everybody_can_use_the_page(open_page, name):
    page = open_page(name)
    assert axe_violations(page) == []
    # the narrowest window is a desktop at a zoom of 400 %: WCAG 2.2, 1.4.10
    for width in (1280, 320):
        page.set_viewport_size({"width": width, "height": 740})
        assert overflowing_elements(page) == [], width


def test_keys_skip_to_the_text_open_hints_menus_and_change_the_theme(open_page):
    page = open_page("lessons/46-exercises")
    complaints = complaints_of(page)
    page.keyboard.press("Tab")
    focused = "document.activeElement"
    assert page.evaluate(f"{focused}.innerText").strip() == "Skip to main content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate(f"{focused}.closest('main') !== null")
    hint = page.locator("details.closed-section").first
    hint.locator("> summary").focus()
    for is_open in (True, False):
        page.keyboard.press("Enter")
        assert hint.evaluate("hint => hint.open") is is_open
    page.locator(".dropdown-download-buttons button").first.focus()
    page.keyboard.press("Enter")
    page.locator(".dropdown-menu.show").wait_for()
    page.keyboard.press("ArrowDown")
    assert page.evaluate(f"{focused}.matches('.dropdown-item')")
    page.keyboard.press("Escape")
    assert page.locator(".dropdown-menu.show").count() == 0
    page.locator(".theme-switch-button:visible").focus()
    page.keyboard.press("Enter")
    chosen = page.get_attribute("html", "data-mode")
    page.reload(wait_until="load")
    assert page.get_attribute("html", "data-mode") == chosen != "auto"
    assert complaints == []


def test_boxes_that_scroll_and_the_contents_are_reached_on_a_phone(open_page):
    page = open_page("lessons/46-transformer-architecture", "phone")
    wide = "box => box.scrollWidth > box.clientWidth"
    boxes = page.locator("article :is(.katex-display, pre, .cell_output:has(> img))")
    boxes = [box for box in boxes.all() if box.evaluate(wide)]
    assert len(boxes) > 3
    assert all(box.evaluate("box => box.tabIndex === 0") for box in boxes)
    page.locator(".primary-toggle:visible").first.focus()
    page.keyboard.press("Enter")
    page.locator("dialog[open] .bd-links").first.wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('dialog[open]') !== null")
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
