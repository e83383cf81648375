"""Everybody can use every page in every size and theme, also without a mouse."""

import pytest

from tests.browser import PAGES, SIZES, axe_violations, overflowing_elements

# Numbers what a mouse could use: links, buttons, fields, what opens, what scrolls.
NUMBER = """() => {
  const parts = "a[href], button, input, summary, select, textarea, [tabindex='0']";
  const scrolls = part => part.closest("article") && part.scrollWidth > part.clientWidth
    && ["auto", "scroll"].includes(getComputedStyle(part).overflowX);
  const usable = [...document.querySelectorAll("*")].filter(
    part => (part.matches(parts) || scrolls(part)) && !part.disabled
      && part.checkVisibility({visibilityProperty: true})
  );
  usable.forEach((part, number) => { part.dataset.number = number; });
  return usable.map(part => part.outerHTML.slice(0, 120));
}"""
# Where the keyboard is, and what is wrong with how one sees it.
HERE = """() => {
  const part = document.activeElement;
  if (part === document.body) return null;
  // what only appears on the way, such as the headings of the section one is in
  part.dataset.number ??= `later ${document.querySelectorAll("[data-number]").length}`;
  const {outlineStyle, outlineWidth} = getComputedStyle(part);
  const clear = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
  const visible = [...part.getClientRects()].some(line => {
    const x = Math.min(Math.max(line.left + line.width / 2, 0), innerWidth - 1);
    const y = Math.min(Math.max(line.top + line.height / 2, 0), innerHeight - 1);
    const top = document.elementFromPoint(x, y);
    return top && (part.contains(top) || top.contains(part));
  });
  const shown = part.checkVisibility({opacityProperty: true, visibilityProperty: true});
  const {top, bottom} = part.getBoundingClientRect();
  const seen = visible && shown && bottom >= 0 && top <= innerHeight;
  return {
    number: part.dataset.number,
    wrong: [clear ? "" : "no outline", seen ? "" : "out of sight"].join(""),
    name: part.outerHTML.slice(0, 120),
  };
}"""


def keyboard_faults(page) -> list[str]:
    """Press Tab through a page; return what is not reached, or not seen when it is."""
    usable = page.evaluate(NUMBER)
    page.evaluate("document.activeElement.blur()")
    reached, found = set(), []
    for _ in range(len(usable) + 20):
        page.keyboard.press("Tab")
        here = page.evaluate(HERE)
        if here is None:
            break
        if here["wrong"]:  # a box that scrolls may be on its way
            page.wait_for_timeout(200)
            here = page.evaluate(HERE)
        if here["wrong"] or here["number"] in reached:
            found.append(f"{here['wrong'] or 'trapped at'}: {here['name']}")
        if here["number"] in reached:
            break
        reached.add(here["number"])
    missed = [part for number, part in enumerate(usable) if str(number) not in reached]
    return found + [f"not reached: {part}" for part in missed]


# Figures that a dark page would change: they must be opaque and unfiltered.
CHANGED = """async () => {
  const found = [];
  for (const image of document.querySelectorAll("article img")) {
    image.loading = "eager";
    await image.decode();
    const paper = new OffscreenCanvas(image.naturalWidth, image.naturalHeight)
      .getContext("2d");
    paper.drawImage(image, 0, 0);
    const points = paper.getImageData(0, 0, image.naturalWidth, image.naturalHeight);
    const opaque = points.data.every((value, place) => place % 4 < 3 || value === 255);
    const {filter, opacity, mixBlendMode} = getComputedStyle(image);
    const plain = filter + opacity + mixBlendMode === "none1normal";
    if (!opaque || !plain) found.push(image.src);
  }
  return found;
}"""


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
    assert page.evaluate(CHANGED) == []
    assert axe_violations(page) == []
    context.close()
