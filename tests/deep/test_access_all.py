"""Everybody can use every page in every size and theme, also without a mouse."""

import pytest

from tests.browser import PAGES, SIZES, axe_violations, overflowing_elements

# Notes what a mouse could use: links, buttons, fields, what opens, what scrolls.
USABLE = """() => {
  const parts = "a[href], button, input, summary, select, textarea, [tabindex='0']";
  const scrolls = part => part.closest("article") && part.scrollWidth > part.clientWidth
    && ["auto", "scroll"].includes(getComputedStyle(part).overflowX);
  window.reached = new Set();
  window.usable = [...document.querySelectorAll("*")].filter(
    part => (part.matches(parts) || scrolls(part)) && !part.disabled
      && part.checkVisibility({visibilityProperty: true})
  );
  document.activeElement.blur();
  return usable.length;
}"""
# What is wrong with the keyboard's place and how one sees it; null at the page's end.
HERE = """async () => {
  const part = document.activeElement;
  if (part === document.body) return null;
  const visible = line => {
    const x = Math.min(Math.max(line.left + line.width / 2, 0), innerWidth - 1);
    const y = Math.min(Math.max(line.top + line.height / 2, 0), innerHeight - 1);
    const top = document.elementFromPoint(x, y);
    return line.bottom >= 0 && line.top <= innerHeight
      && (part.contains(top) || top?.contains(part));
  };
  const unseen = () => ![...part.getClientRects()].some(visible)
    || !part.checkVisibility({opacityProperty: true, visibilityProperty: true})
    || getComputedStyle(part).outlineStyle === "none";
  // a box that scrolls may be on its way
  if (unseen()) await new Promise(done => setTimeout(done, 200));
  const wrong = reached.has(part) ? "trapped at" : unseen() ? "not seen at" : "";
  reached.add(part);
  return wrong && `${wrong}: ${part.outerHTML.slice(0, 120)}`;
}"""
MISSED = """usable.filter(part => !reached.has(part))
  .map(part => `not reached: ${part.outerHTML.slice(0, 120)}`)"""


def keyboard_faults(page) -> list[str]:
    """Press Tab through a page; return what is not reached, or not seen when it is."""
    found = []
    for _ in range(page.evaluate(USABLE) + 20):
        page.keyboard.press("Tab")
        wrong = page.evaluate(HERE)
        if wrong is None:
            break
        found += [wrong] if wrong else []
    return found + page.evaluate(MISSED)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PAGES)
def test_page_is_for_everybody(browser, address, name, size, theme):
    context = browser.new_context(
        viewport=SIZES[size], color_scheme=theme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(f"{address}{name}.html", wait_until="networkidle")
    assert keyboard_faults(page) == []
    assert overflowing_elements(page) == []
    # the theme would change the colours of figures on a dark page
    style = "images => images.map(image => getComputedStyle(image).filter)"
    assert set(page.eval_on_selector_all("article img", style)) <= {"none"}
    assert axe_violations(page) == []
    context.close()
