"""On paper and in PDFs nothing is cut, closed or missing, and links work."""

import io
import re
import unicodedata
from urllib.parse import unquote

import pypdf
import pytest

from tests.browser import LESSONS, LISTED
from tools.build import build
from tools.notebooks import ROOT, printed, read
from tools.pdf import print_all

# a site and a browser for all; the printing has its own browser, and so comes first
pytestmark = pytest.mark.xdist_group("paper")


@pytest.fixture(scope="module")
def printed_site(tmp_path_factory):
    """Build and print the real book once; return the folder of its site."""
    site = tmp_path_factory.mktemp("paper") / "html"
    assert build(ROOT, site, settings={"course_pdf": True}, finish=print_all) == []
    return site


def squeeze(text: str) -> str:
    """Return a text without white space, since lines are broken anew."""
    return "".join(unicodedata.normalize("NFKC", text).replace("\u200b", "").split())


def text_of(pdf: pypdf.PdfReader) -> str:
    """Return the text of a PDF without white space."""
    return squeeze("".join(sheet.extract_text() for sheet in pdf.pages))


def missing_lines(page: str, text: str) -> list[str]:
    """Return the lines of code of a page, and those it printed, that a text lacks.

    A line that wraps where a sheet ends may be in two places.
    """
    code = [c for c in read(ROOT / f"{page}.ipynb").cells if c.cell_type == "code"]
    shown = [cell.source + "\n" + printed(cell) for cell in code]
    shown = [part for part in shown if "<Figure size" not in part]
    return [
        line
        for line in map(squeeze, "\n".join(shown).splitlines())
        if not any(line[:n] in text and line[n:] in text for n in range(len(line) + 1))
    ]


def titles_of(outline: list) -> list[str]:
    """Return the titles of a PDF's outline, in order."""
    found = []
    for entry in outline:
        found += titles_of(entry) if isinstance(entry, list) else [entry.title]
    return found


def faults_of(pdf: pypdf.PdfReader) -> list[str]:
    """Return what a PDF of the course must be and this one is not, one line each."""
    root, places, found = pdf.root_object, pdf.named_destinations, []
    if not root.get("/MarkInfo", {}).get("/Marked") or root.get("/Lang") != "en":
        found.append("not tagged, or without its language")
    for note in (note for page in pdf.pages for note in page.get("/Annots") or []):
        note = note.get_object()
        action = note.get("/A", {})
        name = str(note.get("/Dest", action.get("/D")))
        if "/URI" in action and not action["/URI"].startswith("https://"):
            found.append(f"{action['/URI']} is not public")
        if "/URI" not in action and name not in places:
            found.append(f"{name} is no place in it")
    return found


@pytest.mark.parametrize("page", LESSONS)
def test_lesson_has_a_whole_pdf_that_its_page_leads_to(printed_site, page):
    name = f"pdf/{page.rpartition('/')[2]}.pdf"
    html = (printed_site / f"{page}.html").read_text(encoding="utf-8")
    assert f'href="../{name}"' in html
    pdf = pypdf.PdfReader(printed_site / name)
    assert faults_of(pdf) == []
    assert missing_lines(page, text_of(pdf)) == []
    titles = re.findall(r"<h[1-6]>([^<]*)<a class=\"headerlink", html)
    assert titles and set(titles) <= set(titles_of(pdf.outline))


def test_book_is_one_pdf_whose_links_lead_within_it(printed_site):
    pdf = pypdf.PdfReader(printed_site / "pdf/deep-learning-built-and-checked.pdf")
    assert faults_of(pdf) == []
    # a place has its page's name in front: several lessons have the same headings
    places = map(unquote, pdf.named_destinations)
    linked = {place.removeprefix("/").rpartition("/")[0] for place in places}
    assert {*LESSONS, "references"} <= linked <= {*LISTED, ""}
    text = text_of(pdf)
    assert [line for page in LESSONS for line in missing_lines(page, text)] == []


def test_failure_to_print_leaves_the_last_good_site(book, monkeypatch):
    site = book / "_build/html"
    site.mkdir(parents=True)
    monkeypatch.setenv("CHROMIUM", "nowhere")
    (found,) = build(book, site, finish=print_all)
    assert "CHROMIUM=nowhere does not start" in found
    assert list(site.iterdir()) == []


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
    if (part.getBoundingClientRect().right > width + 1) note("beyond the paper", part);
    // a formula's last letter may have a box wider than itself
    const inside = part.closest(".katex") ? 0 : part.clientWidth;
    if (inside && part.scrollWidth > inside + 4) note("wider than its box", part);
    if (part.matches(".lesson-map svg, .katex-html, img, pre, p, li")
        && !part.checkVisibility(shown) && !part.closest("summary")) {
      note("not to be seen", part);
    }
  }
  const bars = "nav, header, .bd-sidebar, .prev-next-area, dialog, .headerlink";
  for (const part of document.querySelectorAll(`${bars}, button, input`)) {
    if (part.offsetWidth && part.offsetHeight) note("navigation", part);
  }
  return found;
}"""


@pytest.mark.parametrize("name", LISTED)
def test_page_is_whole_on_paper_without_scripts_too(browser, address, name):
    page = browser.new_page(java_script_enabled=False, viewport=PAPER)
    page.goto(f"{address}{name}.html")
    page.emulate_media(media="print")
    assert page.evaluate(LOOK) == []
    page.close()


def test_dark_page_is_printed_light_with_all_images_and_comes_back(browser, address):
    page = browser.new_page(color_scheme="dark")
    page.goto(f"{address}lessons/45-attention.html")
    page.evaluate("""addEventListener("beforeprint", () => {
      window.printed = document.documentElement.dataset.theme; })""")
    pdf = pypdf.PdfReader(io.BytesIO(page.pdf()))
    assert page.evaluate("window.printed") == "light"
    assert page.get_attribute("html", "data-theme") == "dark"
    widths = [one.image.width for sheet in pdf.pages for one in sheet.images]
    assert len(widths) == page.locator("article img").count()
    assert min(widths) > 100  # not the sign of a missing one
    page.close()
