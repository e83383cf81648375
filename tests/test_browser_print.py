"""On paper nothing is cut, nothing is closed, nothing is missing, and there is no navigation."""

import io
import re

import pypdf
import pytest
from helpers_browser import CONTRAST, pages

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

# What A4 leaves between the margins of print.css, in pixels of a browser; Letter leaves more.
PAPER = {"width": 672, "height": 980}
PRINTED = [page for page in pages() if page not in ("search", "404")]

LOOK = (
    f"() => {{{CONTRAST}"
    + """
  const paper = "rgb(255, 255, 255)";
  const lost = [];
  const note = (why, part) => lost.push(`${why}: ${part.outerHTML.slice(0, 120)}`);
  const shown = {contentVisibilityAuto: true, opacityProperty: true, visibilityProperty: true};
  const width = document.documentElement.clientWidth;
  // the MathML is for the ear and has no place on paper, but has a width
  document.querySelectorAll(".katex-mathml").forEach(part => part.remove());
  for (const part of document.querySelectorAll("article, article *")) {
    // drawings and formulas are measured as a whole
    if (part.parentElement.closest("svg, .katex-html")) continue;
    if (part.getBoundingClientRect().right > width + 1) note("beyond the paper", part);
    const text = [...part.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (text && part.checkVisibility(shown) && !part.matches(".landmark-paper, figcaption")) {
      if (contrast(getComputedStyle(part).color, paper) < 4.5) note("pale", part);
    }
    if (part.matches(".lesson-map svg, .katex-html, img, pre") && !part.checkVisibility(shown)) {
      note("not to be seen", part);
    }
    const inside = part.clientWidth && !part.closest(".katex");
    // a formula's last letter may have a box wider than itself
    if (inside && part.scrollWidth > part.clientWidth + 4) note("wider than its box", part);
    if (part.closest("details") && part.matches("pre, p, img, li") && !part.closest("summary")) {
      if (!part.checkVisibility(shown) || !part.offsetHeight) note("closed", part);
    }
  }
  const bars = "nav, header, .bd-sidebar, .prev-next-area";
  for (const part of document.querySelectorAll(`${bars}, button, input, dialog, .headerlink`)) {
    if (part.offsetWidth && part.offsetHeight) note("navigation", part);
  }
  return lost.slice(0, 8);
}"""
)


def unfit(page) -> list[str]:
    """Return what paper would not show, or should not, one line each."""
    page.set_viewport_size(PAPER)
    page.emulate_media(media="print")
    return page.evaluate(LOOK)


@pytest.mark.parametrize("name", PRINTED)
def test_page_is_whole_on_paper(browser, address, name):
    page = browser.new_page()
    page.goto(f"{address}{name}.html")
    assert unfit(page) == []
    page.close()


def test_page_is_whole_on_paper_without_scripts(browser, address):
    page = browser.new_page(java_script_enabled=False)
    page.goto(f"{address}lessons/46-exercises.html")
    assert unfit(page) == []
    page.close()


FAULTS = {
    "code that does not wrap": ("pre { white-space: pre !important }", "wider than its box"),
    "formula that is too wide": (".katex-html { letter-spacing: 2em }", "wider than its box"),
    "figure that is too wide": ("img { min-width: 900px }", "beyond the paper"),
    "table that is too wide": ("td { min-width: 20em }", "beyond the paper"),
    "pale code": ("pre span { color: #ccc !important }", "pale"),
    "formulas that are not drawn": (".katex-html { visibility: hidden }", "not to be seen"),
    "figures that are left out": ("img { display: none }", "not to be seen"),
    "sidebar": (".bd-sidebar { display: block !important }", "navigation"),
    "header": (".bd-header-article { display: block !important }", "navigation"),
    "closed answer": ("::details-content { content-visibility: hidden !important }", "closed"),
    "answer that fades in": ("details > * { opacity: 0 }", "closed"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault_is_found(browser, address, name):
    style, fault = FAULTS[name]
    page = browser.new_page(bypass_csp=True)
    # has a wide table and wide formulas; the exercises have what is closed
    where = "46-exercises" if fault == "closed" else "46-transformer-architecture"
    page.goto(f"{address}lessons/{where}.html")
    page.add_style_tag(content=style)
    if name == "code that does not wrap":
        page.evaluate("document.querySelector('article pre').append('wide '.repeat(40))")
    found = unfit(page)
    assert any(line.startswith(fault) for line in found), found
    page.close()


def reader_prints(page) -> pypdf.PdfReader:
    """Print a page as a reader's browser does, and return the PDF."""
    return pypdf.PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True)))


def images_in(pdf: pypdf.PdfReader) -> list[tuple[int, int]]:
    """Return the sizes of the images in a PDF."""
    drawn = [
        item.get_object()
        for page in pdf.pages
        for item in (page["/Resources"].get("/XObject") or {}).values()
    ]
    return sorted((x["/Width"], x["/Height"]) for x in drawn if x["/Subtype"] == "/Image")


def test_images_that_nobody_scrolled_to_are_printed(browser, address):
    page = browser.new_page()
    page.goto(f"{address}lessons/45-attention.html")
    images = page.locator("article img[loading=lazy]").all()
    sizes = sorted((int(x.get_attribute("width")), int(x.get_attribute("height"))) for x in images)
    assert len(sizes) > 2
    loaded = "[...document.querySelectorAll('article img')].filter(x => x.complete).length"
    assert page.evaluate(loaded) < len(sizes), "else this would show nothing"
    assert images_in(reader_prints(page)) == sizes
    page.close()


def test_images_that_do_not_come_are_missed(browser, address):
    page = browser.new_page()
    page.route(re.compile(r"\.png$"), lambda route: route.abort())
    page.goto(f"{address}lessons/45-attention.html")
    assert not [size for size in images_in(reader_prints(page)) if min(size) > 100]
    page.close()


STATE = """() => [
  document.documentElement.dataset.theme,
  document.querySelectorAll("details:not([open])").length,
]"""


@pytest.mark.parametrize("mode", ["dark", "auto"])
def test_a_dark_page_is_printed_light_and_comes_back_dark(browser, address, mode):
    context = browser.new_context(color_scheme="dark")
    context.add_init_script(
        f"localStorage.setItem('mode', '{mode}'); localStorage.setItem('theme', 'dark');"
    )
    page = context.new_page()
    page.goto(f"{address}lessons/46-exercises.html")
    before = page.evaluate(STATE)
    assert before[0] == "dark" and before[1] > 10
    page.evaluate(f"window.addEventListener('beforeprint', () => {{ window.seen = ({STATE})(); }})")
    reader_prints(page)
    assert page.evaluate("window.seen") == ["light", 0]
    assert page.evaluate(STATE) == before
    context.close()
