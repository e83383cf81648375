"""`make pdf`: whole, tagged, outlined, and found on the page; and never a site that is not whole."""

import io
import re
from collections import Counter
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import make_pdf
import pypdf
import pytest
from helpers_book import copy_repository, run_tool, snapshot, tiny_book
from helpers_browser import pages
from helpers_pdf import (
    NAVIGATION,
    addresses,
    faults,
    formula_letters,
    headings,
    lines,
    links,
    missing,
    outline,
    squeeze,
    tags,
    text_of,
)
from test_browser_access import violations

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

LISTED = [page for page in pages() if page not in ("search", "404")]
LESSONS = [page for page in LISTED if page.startswith("lessons/")]
BOOK = "pdf/deep-learning-built-and-checked.pdf"
READ = ["lessons/46-transformer-architecture", "lessons/46-exercises"]  # the book has all others


def file_of(page: str) -> str:
    """Return where the PDF of a lesson is, inside the site."""
    return f"pdf/{Path(page).name}.pdf"


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> Path:
    """Build and print the real book once, and return the folder of its site."""
    root = copy_repository(tmp_path_factory.mktemp("pdf") / "book")
    done = run_tool(root, "make_pdf.py")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (root / "_build").iterdir()] == ["html"]
    return root / "_build/html"


@pytest.fixture(scope="module")
def book(printed) -> SimpleNamespace:
    """The whole book, opened, and the text of its pages."""
    pdf = pypdf.PdfReader(printed / BOOK)
    return SimpleNamespace(pdf=pdf, pages=text_of(pdf))


def test_there_is_one_pdf_a_lesson_and_one_of_the_book(printed):
    found = {path.relative_to(printed).as_posix() for path in printed.rglob("*.pdf")}
    assert found == {BOOK, *map(file_of, LESSONS)}


@pytest.mark.parametrize("name", [*map(file_of, LESSONS), BOOK])
def test_file_is_tagged_outlined_and_whole_in_itself(printed, name):
    pdf = pypdf.PdfReader(printed / name)
    assert faults(pdf) == []
    assert set(pdf.metadata) == {"/Title", "/Producer"}, "nothing of this machine or this hour"
    assert pdf.metadata.title.endswith("Deep Learning, Built and Checked")


@pytest.mark.parametrize("page", LESSONS)
def test_outline_of_a_lesson_is_its_headings(printed, page):
    pdf = pypdf.PdfReader(printed / file_of(page))
    assert [title for title, _ in outline(pdf)] == headings(page)


@pytest.mark.parametrize("page", READ)
def test_lesson_is_whole(printed, page):
    pdf = pypdf.PdfReader(printed / file_of(page))
    text = "".join(text_of(pdf))
    assert len(lines(page)) > 200
    assert missing(lines(page), text) == []
    assert missing(addresses(page), text) == []
    assert [words for words in NAVIGATION if squeeze(words) in text] == []


@pytest.mark.parametrize("page", READ)
def test_formulas_are_whole(printed, browser, page):
    opened = browser.new_page()
    opened.goto((printed / f"{page}.html").as_uri())
    shown = opened.locator("article .katex-html").all_text_contents()
    opened.close()
    letters = formula_letters(pypdf.PdfReader(printed / file_of(page)))
    assert len(letters) > 100
    assert letters == sorted(squeeze("".join(shown)))


def test_tags_of_a_lesson_say_what_is_what(printed, browser):
    opened = browser.new_page()
    opened.goto((printed / f"{READ[0]}.html").as_uri())
    texts = [image.get_attribute("alt") for image in opened.locator("article img").all()]
    tables = opened.locator("article table").count()
    opened.close()
    found = tags(pypdf.PdfReader(printed / file_of(READ[0])))
    kinds = Counter(kind for kind, _ in found)
    assert len(texts) > 1 and set(texts) <= {text for kind, text in found if kind == "/Figure"}
    assert sum(n for kind, n in kinds.items() if re.fullmatch("/H[1-6]", kind)) == len(
        headings(READ[0])
    )
    assert kinds["/H1"] == 1 and kinds["/Table"] == tables
    assert kinds["/P"] > 50 and kinds["/LI"] > 20 and kinds["/Link"] >= 2


def test_book_is_whole(book):
    text = "".join(book.pages)
    for page in LISTED:
        assert missing(lines(page), text) == [], page
        assert missing(addresses(page), text) == [], page
    assert len(addresses("references")) > 20
    assert [words for words in NAVIGATION if squeeze(words) in text] == []
    assert "Citedin:Lesson46,Lesson47" in text


def test_outline_of_the_book_is_all_headings_each_on_its_page(book):
    entries = outline(book.pdf)
    assert [title for title, _ in entries] == [h for page in LISTED for h in headings(page)]
    lost = [
        title for title, page in entries if not squeeze(title.split("\\")[0]) in book.pages[page]
    ]
    assert lost == []


def test_links_of_the_book_lead_to_the_right_page(book):
    """Several lessons have the same headings: a link must not lead to the first of them."""
    starts = dict(outline(book.pdf))
    first = {page: starts[headings(page)[0]] for page in LISTED}
    after = dict(zip(LISTED, [*list(first.values())[1:], len(book.pages)]))
    led = Counter()
    for name in links(book.pdf)[1]:
        name = unquote(name).removeprefix("document-")
        page = next((page for page in LISTED if f"{name}/".startswith(f"{page}/")), None)
        assert page, name
        target = next(v for k, v in book.pdf.named_destinations.items() if name in unquote(k))
        number = book.pdf.get_destination_page_number(target)
        assert first[page] <= number < after[page], name
        led[page] += 1
    assert len(led) >= len(LISTED) - 1 and led["references"] > 50


@pytest.mark.parametrize("fault", ["tags", "outline", "language", "font", "link", "place"])
def test_planted_fault_of_a_file_is_found(browser, fault):
    page = browser.new_page()
    language = "" if fault == "language" else 'lang="en"'
    link = "http://127.0.0.1/a" if fault == "link" else "https://example.org/a"
    page.set_content(f"<html {language}><h1 id=x>T</h1><a href='#x'>x</a><a href='{link}'>y</a>")
    written = page.pdf(tagged=fault != "tags", outline=fault != "outline")
    page.close()
    pdf = pypdf.PdfReader(io.BytesIO(written))
    if fault == "font":
        for font in pdf.pages[0]["/Resources"]["/Font"].values():
            inner = font.get_object()["/DescendantFonts"][0].get_object()
            del inner["/FontDescriptor"].get_object()["/FontFile2"]
    if fault == "place":
        del pdf.trailer["/Root"]["/Dests"]
    found = faults(pdf)
    words = {"tags": "tagged", "font": "embedded", "link": "public"}.get(fault, fault)
    assert any(words in line for line in found), found


@pytest.mark.parametrize(
    "fault, style",
    [
        ("answer", ".closed-section { display: none !important }"),
        ("code", "pre { white-space: pre !important; width: 15em; overflow: hidden !important }"),
        ("address", "a::after { display: none }"),
        ("navigation", ".d-print-none { display: inline !important }"),
        ("formula", ".katex { display: none !important }"),
    ],
)
def test_planted_fault_of_a_page_is_found(browser, printed, fault, style):
    light = {"address": "references", "navigation": "index", "formula": "notation"}
    name = light.get(fault, READ[1])
    page = browser.new_page(bypass_csp=True)
    page.goto((printed / f"{name}.html").as_uri())
    page.add_style_tag(content=style)
    pdf = pypdf.PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True)))
    page.close()
    text = squeeze("".join(page.extract_text() for page in pdf.pages))
    assert {
        "answer": lambda: any("worked_" in line for line in missing(lines(name), text)),
        "code": lambda: missing(lines(name), text),
        "address": lambda: missing(addresses(name), text),
        "navigation": lambda: squeeze("Report a mistake") in text,
        "formula": lambda: formula_letters(pdf) == [],
    }[fault]()


def local_links(path: Path) -> list[str]:
    """Return the addresses of files of the site that a page links to, without anchors."""
    found = re.findall(r'<a\b[^>]*?href="([^"#]+)', path.read_text(encoding="utf-8"))
    return [unquote(unescape(url)) for url in found if not urlsplit(url).scheme]


def file_behind(site: Path, path: Path, url: str) -> Path:
    """Return the file that a link on a page leads to; the 404 page names them from the host."""
    name = url.partition("?")[0]
    return (site / name[1:] if name.startswith("/") else path.parent / name).resolve()


def dead_links(site: Path) -> list[str]:
    """Return the links of a site that lead to no file of it."""
    return [
        f"{path.relative_to(site)}: {url}"
        for path in site.rglob("*.html")
        for url in local_links(path)
        if not file_behind(site, path, url).is_file()
    ]


@pytest.mark.parametrize("page", pages())
def test_readers_find_the_files_on_the_page(printed, page):
    site, path = printed.resolve(), printed / f"{page}.html"
    found = [file_behind(site, path, url) for url in local_links(path) if url.endswith(".pdf")]
    wanted = [BOOK, file_of(page)] if page in LESSONS else [BOOK]
    times = 1 if page in ("search", "404") else 2  # at the foot, and in the menu at the top
    assert Counter(found) == {site / name: times for name in wanted}


def test_no_link_is_dead_and_without_pdfs_there_is_none(printed, site, tmp_path):
    assert dead_links(printed) == [] and dead_links(site) == []
    assert not [p for p in site.rglob("*.html") if any(".pdf" in x for x in local_links(p))]
    (tmp_path / "index.html").write_text(
        '<a class="x" href="pdf/a.pdf#page=2">PDF</a> <a href="/index.html">1</a> <a href="/b">2</a>'
    )
    assert dead_links(tmp_path) == ["index.html: pdf/a.pdf", "index.html: /b"]


def test_menu_leads_to_the_file_and_everybody_can_use_it(printed, browser):
    page = browser.new_page()
    page.goto((printed / f"{READ[0]}.html").as_uri())
    page.get_by_role("button", name="Download this page").click()
    menu = page.locator(".dropdown-download-buttons .dropdown-menu")
    for name in (file_of(READ[0]), BOOK):
        menu.locator(f"a[href='../{name}']").wait_for()
    assert menu.get_by_role("button").count() == 0, "the file takes the place of printing"
    assert violations(page) == []
    page.close()


PAGE = """<!doctype html><html lang="en"><title>T</title>{head}<article><h1>One
<a class="headerlink" href="#">#</a></h1><a href="other.html#x">other</a></article>"""


@pytest.mark.parametrize(
    "head, wanted",
    [
        ("", []),
        (
            '<link rel="canonical" href="https://example.org/book/lessons/a.html">',
            ["https://example.org/book/lessons/other.html#x"],
        ),
    ],
    ids=["address unknown", "published"],
)
def test_link_to_another_page_never_names_a_folder(browser, tmp_path, head, wanted):
    (tmp_path / "a.html").write_text(PAGE.format(head=head))
    for name in ("one.pdf", "two.pdf"):
        make_pdf.print_page(browser, tmp_path / "a.html", tmp_path / name)
    pdf = pypdf.PdfReader(tmp_path / "one.pdf")
    assert links(pdf)[0] == wanted
    assert [title for title, _ in outline(pdf)] == ["One"]
    assert (tmp_path / "one.pdf").read_bytes() == (tmp_path / "two.pdf").read_bytes()


def test_outline_that_does_not_fit_the_headings_is_refused(browser, tmp_path):
    (tmp_path / "a.html").write_text(PAGE.format(head=""))
    make_pdf.print_page(browser, tmp_path / "a.html", tmp_path / "a.pdf")
    with pytest.raises(ValueError, match="2 headings, but 1 entries"):
        make_pdf.finish_file(tmp_path / "a.pdf", ["One", "Two"])


@pytest.mark.parametrize(
    "program, message", [("false", "Chromium: "), ("nowhere", "error: CHROMIUM=nowhere is no ")]
)
def test_failure_leaves_the_last_good_site(tmp_path, program, message):
    root = tiny_book(tmp_path / "book")
    (root / "_build/html").mkdir(parents=True)
    (root / "_build/html/index.html").write_text("the last good site")
    before = snapshot(root / "_build")
    done = run_tool(root, "make_pdf.py", CHROMIUM=program)
    assert done.returncode == 1
    assert done.stderr.startswith(message) and "Traceback" not in done.stderr
    assert snapshot(root / "_build") == before
