"""On paper nothing is cut, closed or missing, and there is no navigation."""

import io

import pypdf
import pytest

from tests.browser import LISTED

EXERCISES = "lessons/46-exercises"
# what A4 leaves between the margins of print.css, in pixels of a browser
PAPER = {"width": 672, "height": 980}
LOOK = """() => {
  const found = [];
  const note = (why, part) => found.push(`${why}: ${part.outerHTML.slice(0, 120)}`);
  const shown = {opacityProperty: true, visibilityProperty: true};
  const width = document.documentElement.clientWidth;
  // the MathML is for the ear and has no place on paper, but has a width
  document.querySelectorAll(".katex-mathml").forEach(part => part.remove());
  for (const part of document.querySelectorAll("article, article *")) {
    // drawings and formulas are measured as a whole
    if (part.parentElement.closest("svg, .katex-html")) continue;
    const seen = part.checkVisibility(shown);
    if (part.getBoundingClientRect().right > width + 1) note("beyond the paper", part);
    // a formula's last letter may have a box wider than itself
    const inside = part.closest(".katex") ? 0 : part.clientWidth;
    if (inside && part.scrollWidth > inside + 4) note("wider than its box", part);
    if (part.matches(".lesson-map svg, .katex-html, img, pre, p, li") && !seen
        && !part.closest("summary")) {
      note("not to be seen", part);
    }
  }
  const bars = "nav, header, .bd-sidebar, .prev-next-area, dialog, .headerlink";
  for (const part of document.querySelectorAll(`${bars}, button, input`)) {
    if (part.offsetWidth && part.offsetHeight) note("navigation", part);
  }
  return found;
}"""


def missing_on_paper(page) -> list[str]:
    """Return what paper would not show of a page, or should not, one line each."""
    page.set_viewport_size(PAPER)
    page.emulate_media(media="print")
    return page.evaluate(LOOK)


@pytest.mark.parametrize("script", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("name", LISTED)
def test_page_is_whole_on_paper(browser, address, name, script):
    page = browser.new_page(java_script_enabled=script)
    page.goto(f"{address}{name}.html")
    assert missing_on_paper(page) == []
    page.close()


def test_dark_page_is_printed_light_with_all_images_and_comes_back(browser, address):
    page = browser.new_page(color_scheme="dark")
    page.goto(f"{address}{EXERCISES}.html")
    state = """() => [document.documentElement.dataset.theme,
      document.querySelectorAll("details:not([open])").length]"""
    before = page.evaluate(state)
    assert before[0] == "dark" and before[1] > 10
    page.evaluate(
        f"addEventListener('beforeprint', () => {{ window.seen = ({state})(); }})"
    )
    page.pdf()
    assert (
        page.evaluate("window.seen") == ["light", 0] and page.evaluate(state) == before
    )
    page.goto(f"{address}lessons/45-attention.html")
    images = page.locator("article img").count()
    pdf = pypdf.PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True)))
    widths = [one.image.width for sheet in pdf.pages for one in sheet.images]
    assert len(widths) == images and min(widths) > 100  # not the sign of a missing one
    page.close()
