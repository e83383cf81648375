"""On paper and in PDFs nothing is cut, closed or missing, and links work."""

import io
import re
import unicodedata
from urllib.parse import unquote

import pypdf
import pytest

from tests.browser import LESSONS, LISTED
from tools import pdf as tool
from tools.build import build
from tools.notebooks import ROOT, printed, read

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
    assert sum(len(sheet.images) for sheet in pdf.pages) == images > 0
    page.close()


@pytest.fixture(scope="module")
def printed_site(tmp_path_factory):
    """Build and print the real book once; return the folder of its site."""
    site = tmp_path_factory.mktemp("paper") / "html"
    assert build(ROOT, site, settings={"course_pdf": True}, finish=tool.print_all) == []
    return site


def squeeze(text: str) -> str:
    """Return a text without white space, since lines are broken anew."""
    return "".join(unicodedata.normalize("NFKC", text).replace("\u200b", "").split())


def lines_of(page: str) -> list[str]:
    """Return the lines of code of a page, and those that its code printed."""
    path = ROOT / f"{page}.ipynb"
    cells = read(path).cells if path.is_file() else []
    texts = [
        cell.source + "\n" + printed(cell) for cell in cells if cell.cell_type == "code"
    ]
    shown = [text for text in texts if "<Figure size" not in text]
    return [squeeze(line) for line in "\n".join(shown).splitlines() if line.strip()]


def outline_of(pdf: pypdf.PdfReader, entries=None) -> list[tuple[str, int]]:
    """Return the titles of a PDF's outline, each with its page, in order."""
    found = []
    for entry in pdf.outline if entries is None else entries:
        if isinstance(entry, list):
            found += outline_of(pdf, entry)
        else:
            found.append((entry.title, pdf.get_destination_page_number(entry)))
    return found


def faults_of(pdf: pypdf.PdfReader) -> list[str]:
    """Return what a PDF of the course must be and this one is not, one line each."""
    root, found = pdf.root_object, []
    if not root.get("/MarkInfo", {}).get("/Marked") or root.get("/Lang") != "en":
        found.append("not tagged, or without its language")
    places = set(pdf.named_destinations)
    for page in pdf.pages:
        for note in page.get("/Annots") or []:
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
    text = squeeze("".join(sheet.extract_text() for sheet in pdf.pages))
    foot = re.compile(squeeze(pdf.metadata.title) + rf"\d+/{len(pdf.pages)}")
    text = re.sub(foot, "", text)
    assert [line for line in lines_of(page) if line not in text] == []
    titles = re.findall(r"<h[1-6]>(.*?)<a class=\"headerlink", html, re.DOTALL)
    plain = {title for title in titles if "<" not in title}
    outline = [title for title, _ in outline_of(pdf)]
    assert len(outline) == len(titles) and plain <= set(outline)


def test_book_is_one_pdf_whose_links_lead_to_the_right_page(printed_site):
    pdf = pypdf.PdfReader(printed_site / "pdf/deep-learning-built-and-checked.pdf")
    assert faults_of(pdf) == []
    text = [squeeze(sheet.extract_text()) for sheet in pdf.pages]
    starts = {}
    for title, number in outline_of(pdf):
        starts.setdefault(squeeze(title), number)
    pages = [path for page in LISTED for path in ROOT.glob(f"{page}.*")]
    titles = [
        re.search(r"# (.+?)(?=\\n|\n)", path.read_text("utf-8"))[1] for path in pages
    ]
    first = [starts[squeeze(title)] for title in titles] + [len(pdf.pages)]
    # several lessons have the same headings: a link must not lead to the first of them
    linked = set()
    for name, target in pdf.named_destinations.items():
        page = unquote(name).removeprefix("/").rpartition("/")[0]
        if page in LISTED:
            linked.add(page)
            number, own = pdf.get_destination_page_number(target), LISTED.index(page)
            assert first[own] <= number < first[own + 1], name
    assert {*LESSONS, "references"} <= linked
    missed = [
        line for page in LISTED for line in lines_of(page) if line not in "".join(text)
    ]
    assert len(missed) < 5, missed


def test_failure_to_print_leaves_the_last_good_site(book, monkeypatch):
    site = book / "_build/html"
    site.mkdir(parents=True)
    monkeypatch.setenv("CHROMIUM", "nowhere")
    (found,) = build(book, site, finish=tool.print_all)
    assert "CHROMIUM=nowhere does not start" in found
    assert list(site.iterdir()) == []
