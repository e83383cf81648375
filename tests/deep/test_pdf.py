"""Lessons and the book as PDFs: whole, tagged, outlined, and with links that work.

Apart from test_paper.py, since a program has one event loop of a browser at a time.
"""

import re
import unicodedata
from urllib.parse import unquote

import pypdf
import pytest

from tests.browser import LESSONS, LISTED
from tools import pdf as tool
from tools.build import build
from tools.notebooks import ROOT, printed, read


@pytest.fixture(scope="module")
def printed_site(tmp_path_factory):
    """Build and print the real book once; return the folder of its site."""
    site = tmp_path_factory.mktemp("paper") / "html"
    assert build(ROOT, site, settings={"course_pdf": True}, finish=tool.print_all) == []
    return site


def squeeze(text: str) -> str:
    """Return a text without white space, since lines are broken anew."""
    return "".join(unicodedata.normalize("NFKC", text).replace("\u200b", "").split())


def missing_lines(page: str, text: str) -> list[str]:
    """Return the lines of code of a page, and those it printed, that are not in a text.

    A line that wraps where a sheet ends may be in two places.
    """
    path = ROOT / f"{page}.ipynb"
    cells = read(path).cells if path.is_file() else []
    code = [cell for cell in cells if cell.cell_type == "code"]
    shown = [cell.source + "\n" + printed(cell) for cell in code]
    shown = [part for part in shown if "<Figure size" not in part]
    return [
        line
        for line in map(squeeze, "\n".join(shown).splitlines())
        if not any(line[:n] in text and line[n:] in text for n in range(len(line) + 1))
    ]


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
    assert missing_lines(page, text) == []
    titles = re.findall(r"<h[1-6]>(.*?)<a class=\"headerlink", html, re.DOTALL)
    plain = {title for title in titles if "<" not in title}
    outline = [title for title, _ in outline_of(pdf)]
    assert len(outline) == len(titles) and plain <= set(outline)


def test_book_is_one_pdf_whose_links_lead_to_the_right_page(printed_site):
    pdf = pypdf.PdfReader(printed_site / "pdf/deep-learning-built-and-checked.pdf")
    assert faults_of(pdf) == []
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
    text = squeeze("".join(sheet.extract_text() for sheet in pdf.pages))
    assert [line for page in LISTED for line in missing_lines(page, text)] == []


def test_failure_to_print_leaves_the_last_good_site(book, monkeypatch):
    site = book / "_build/html"
    site.mkdir(parents=True)
    monkeypatch.setenv("CHROMIUM", "nowhere")
    (found,) = build(book, site, finish=tool.print_all)
    assert "CHROMIUM=nowhere does not start" in found
    assert list(site.iterdir()) == []
