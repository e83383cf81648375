"""Everything on a page can be used without a mouse, and one always sees where one is."""

import pytest
from helpers_browser import CONTRAST, SIZES, THEMES, listen, pages

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

# Numbers everything that a mouse could use: links, buttons, fields, what opens, what scrolls.
NUMBER = """() => {
  const parts = "a[href], button, input, summary, select, textarea, [tabindex='0']";
  const scrolls = part =>
    ["auto", "scroll"].includes(getComputedStyle(part).overflowX)
    && part.scrollWidth > part.clientWidth;
  const usable = [...document.querySelectorAll("*")].filter(
    part => (part.matches(parts) || (scrolls(part) && part.closest("article")))
      && part.checkVisibility({visibilityProperty: true}) && !part.disabled
  );
  usable.forEach((part, number) => { part.dataset.number = number; });
  return usable.map(part => part.outerHTML.slice(0, 120));
}"""

# Where the keyboard is: the part's number, and what is wrong with how one sees it.
HERE = (
    f"() => {{{CONTRAST}"
    + """
  const part = document.activeElement;
  if (part === document.body) { return null; }
  // what only appears on the way, such as the headings of the section one is in
  part.dataset.number ??= `later ${document.querySelectorAll("[data-number]").length}`;
  const ground = box => {
    const colour = box ? getComputedStyle(box).backgroundColor : "rgb(255, 255, 255)";
    return /, 0\\)$|transparent/.test(colour) ? ground(box.parentElement) : colour;
  };
  const style = getComputedStyle(part);
  const wrong = [];
  if (!part.checkVisibility({opacityProperty: true, visibilityProperty: true})) {
    wrong.push("not to be seen");
  }
  if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) {
    wrong.push("no outline");
  } else {
    const found = contrast(style.outlineColor, ground(part.parentElement));
    if (found < 3) { wrong.push(`outline of contrast ${found.toFixed(1)}`); }
  }
  const box = part.getBoundingClientRect();
  const visible = [...part.getClientRects()].some(line => {
    const x = Math.min(Math.max(line.left + line.width / 2, 0), innerWidth - 1);
    const y = Math.min(Math.max(line.top + line.height / 2, 0), innerHeight - 1);
    const top = document.elementFromPoint(x, y);
    return top && (part.contains(top) || top.contains(part));
  });
  if (box.bottom < 0 || box.top > innerHeight || !visible) { wrong.push("out of sight"); }
  return {
    number: part.dataset.number,
    name: part.outerHTML.slice(0, 120),
    wrong: wrong.join(", "),
  };
}"""
)


def walk(page) -> tuple[list[str], list[str]]:
    """Press Tab through a whole page.

    Returns what can be used but was not reached, and what was reached and could not be seen.
    """
    usable = page.evaluate(NUMBER)
    page.evaluate("document.activeElement.blur()")
    reached, unseen = set(), []
    for _ in range(len(usable) + 20):
        page.keyboard.press("Tab")
        here = page.evaluate(HERE)
        if here is None:
            break
        if here["wrong"]:  # a box that scrolls may be on its way
            page.wait_for_timeout(200)
            here = page.evaluate(HERE)
        if here["number"] in reached:
            unseen.append(f"trapped at {here['name']}")
            break
        reached.add(here["number"])
        if here["wrong"]:
            unseen.append(f"{here['wrong']}: {here['name']}")
    else:
        unseen.append("no way out")
    missed = [part for number, part in enumerate(usable) if str(number) not in reached]
    return missed, unseen


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", pages())
def test_tab_reaches_all_there_is_and_shows_where_one_is(browser, address, name, size):
    theme = THEMES[list(SIZES).index(size)]
    page = browser.new_page(viewport=SIZES[size], color_scheme=theme, reduced_motion="reduce")
    page.goto(f"{address}{name}.html", wait_until="networkidle")
    missed, unseen = walk(page)
    assert missed + unseen == []
    page.close()


START = """<!doctype html><style>:focus-visible { outline: 3px solid black; }</style>
<main><article><a href="#x">one</a> <button>two</button>"""
FAULTS = {
    "nothing": "",
    "outline taken": "<style>button { outline: none !important; }</style>",
    "clear": "<style>button { opacity: 0 }</style>",
    "pale outline": "<style>:focus-visible { outline-color: #ccc; }</style>",
    "hidden behind": "<div style='position: fixed; inset: 0; background: white'></div>",
    "only for the mouse": "<button tabindex=-1 onclick='x()'>three</button>",
    "box out of reach": "<pre tabindex=-1 style='overflow-x: auto; width: 9px'>wide_wide</pre>",
    "trap": "<script>addEventListener('keydown', e => e.preventDefault())</script>",
}
FOUND = {
    "nothing": lambda missed, unseen: not missed and not unseen,
    "outline taken": lambda missed, unseen: "no outline" in unseen[0],
    "clear": lambda missed, unseen: "not to be seen" in unseen[0],
    "pale outline": lambda missed, unseen: "contrast 1.6" in unseen[0],
    "hidden behind": lambda missed, unseen: "out of sight" in unseen[0],
    "only for the mouse": lambda missed, unseen: "three" in missed[0],
    "box out of reach": lambda missed, unseen: "wide_wide" in missed[0],
    "trap": lambda missed, unseen: len(missed) == 2,
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault_is_found(browser, name):
    page = browser.new_page()
    page.set_content(f"{START}{FAULTS[name]}</article></main>")
    missed, unseen = walk(page)
    assert FOUND[name](missed, unseen), (missed, unseen)
    page.close()


@pytest.fixture
def lesson(browser, address):
    """Open an exercise page, and see that its console stays silent."""
    page = browser.new_page(reduced_motion="reduce")
    complaints = listen(page)
    page.goto(f"{address}lessons/46-exercises.html", wait_until="networkidle")
    yield page
    assert complaints == []
    page.close()


def test_first_tab_offers_to_skip_to_the_text(lesson):
    lesson.keyboard.press("Tab")
    assert lesson.evaluate("document.activeElement.innerText").strip() == "Skip to main content"
    lesson.keyboard.press("Enter")
    lesson.keyboard.press("Tab")
    assert lesson.evaluate("document.activeElement.closest('main') !== null")


def test_hints_open_and_close_by_keyboard(lesson):
    hint = lesson.locator("details.closed-section").first
    hint.locator("> summary").focus()
    for expected in (True, False):
        lesson.keyboard.press("Enter")
        assert hint.evaluate("hint => hint.open") is expected


def test_menu_opens_lists_and_closes_by_keyboard(lesson):
    menu = lesson.locator(".dropdown-download-buttons")
    menu.locator("button").first.focus()
    lesson.keyboard.press("Enter")
    menu.locator(".dropdown-menu.show").wait_for()
    lesson.keyboard.press("ArrowDown")
    assert lesson.evaluate("document.activeElement.matches('.dropdown-item')")
    lesson.keyboard.press("Escape")
    assert menu.locator(".dropdown-menu.show").count() == 0


def test_theme_changes_by_keyboard_and_stays(lesson):
    lesson.locator(".theme-switch-button:visible").focus()
    lesson.keyboard.press("Enter")
    chosen = lesson.get_attribute("html", "data-mode")
    assert chosen in THEMES
    lesson.reload(wait_until="networkidle")
    assert lesson.get_attribute("html", "data-mode") == chosen


def test_buttons_without_inline_code_do_what_they_say(lesson):
    lesson.evaluate("window.print = () => { window.printed = true; }")
    lesson.locator(".btn-download-pdf-button").dispatch_event("click")
    assert lesson.evaluate("window.printed")
    lesson.locator(".btn-fullscreen-button").click()
    lesson.wait_for_function("document.fullscreenElement !== null")


def test_table_of_contents_opens_and_closes_by_keyboard_on_a_phone(browser, address):
    page = browser.new_page(viewport=SIZES["phone"], reduced_motion="reduce")
    page.goto(f"{address}lessons/46-exercises.html", wait_until="networkidle")
    page.locator(".primary-toggle:visible").first.focus()
    page.keyboard.press("Enter")
    page.locator("dialog[open] .bd-links").first.wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('dialog[open]') !== null")
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    page.close()


def test_nothing_moves_for_who_asks_for_that(lesson):
    moving = """() => [...document.querySelectorAll("*")].filter(part => {
      const style = getComputedStyle(part);
      return [style.transitionDuration, style.animationDuration].join().match(/[1-9]/)
        || style.scrollBehavior === "smooth";
    }).length"""
    assert lesson.evaluate(moving) == 0
    lesson.emulate_media(reduced_motion="no-preference")
    assert lesson.evaluate(moving) > 0, "this test would see nothing move"
