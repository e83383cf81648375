"""What the tests of PDFs share: to read one with a library that had no part in making it."""

import re
import unicodedata

import nbformat
import pypdf
from helpers_book import ROOT

NAVIGATION = ["Skip to main content", "Ctrl+K", "Report a mistake", "Download this page"]


def squeeze(text: str) -> str:
    """Return a text without white space, since lines are broken anew, and without ligatures."""
    return "".join(unicodedata.normalize("NFKC", text).replace("\u200b", "").split())


def text_of(pdf: pypdf.PdfReader) -> list[str]:
    """Return the squeezed text of each page, without what stands below it.

    Errors: `AssertionError` where the title or the number of the page does not stand there.
    """
    texts = []
    for number, page in enumerate(pdf.pages, 1):
        text = squeeze(page.extract_text())
        foot = squeeze(f"{pdf.metadata.title}{number}/{len(pdf.pages)}")
        assert text.endswith(foot) or foot in text, f"page {number} is not numbered"
        texts.append(text.replace(foot, ""))
    return texts


def formula_letters(pdf: pypdf.PdfReader) -> list[str]:
    """Return all that is set in KaTeX's fonts, sorted."""
    found = []

    def note(text, cm, tm, font, size) -> None:
        if font and "KaTeX" in font.get("/BaseFont", ""):
            found.extend(squeeze(text))

    for page in pdf.pages:
        page.extract_text(visitor_text=note)
    return sorted(found)


def outline(pdf: pypdf.PdfReader) -> list[tuple[str, int]]:
    """Return title and page, counted from 0, of each entry of the outline."""

    def flat(entries):
        for entry in entries:
            if isinstance(entry, list):
                yield from flat(entry)
            else:
                yield entry.title, pdf.get_destination_page_number(entry)

    return list(flat(pdf.outline))


def tags(pdf: pypdf.PdfReader) -> list[tuple[str, str]]:
    """Return the kind and the alternative text of each tag, in order."""
    found, todo = [], [pdf.trailer["/Root"]["/StructTreeRoot"]]
    while todo:
        tag = todo.pop()
        tag = tag.get_object() if isinstance(tag, pypdf.generic.PdfObject) else tag
        if isinstance(tag, list):
            todo += reversed(tag)
        elif isinstance(tag, dict):
            if "/S" in tag:
                found.append((tag["/S"], tag.get("/Alt", "")))
            todo.append(tag.get("/K"))
    return found


def fonts(pdf: pypdf.PdfReader) -> dict[str, dict]:
    """Return the descriptor of each font by the font's name; an empty one where it has none."""
    found = {}
    for page in pdf.pages:
        for font in (page["/Resources"].get("/Font") or {}).values():
            font = font.get_object()
            inner = font["/DescendantFonts"][0].get_object() if "/DescendantFonts" in font else font
            found[font.get("/BaseFont", "?")] = inner.get("/FontDescriptor", {})
    return found


def links(pdf: pypdf.PdfReader) -> tuple[list[str], list[str]]:
    """Return the addresses, and the names of places inside the file, that links lead to."""
    outside, inside = [], []
    for page in pdf.pages:
        for note in page.get("/Annots") or []:
            note = note.get_object()
            action = note.get("/A", {})
            if "/URI" in action:
                outside.append(action["/URI"])
            else:
                inside.append(str(note.get("/Dest", action.get("/D"))).lstrip("/"))
    return outside, inside


def faults(pdf: pypdf.PdfReader) -> list[str]:
    """Return what every PDF of the course must be and this one is not, one line each."""
    root = pdf.trailer["/Root"]
    found = []
    if not root.get("/MarkInfo", {}).get("/Marked") or "/StructTreeRoot" not in root:
        found.append("not tagged")
    if root.get("/Lang") != "en":
        found.append("does not say its language")
    if not pdf.outline:
        found.append("no outline")
    for name, descriptor in fonts(pdf).items():
        if not {"/FontFile", "/FontFile2", "/FontFile3"} & set(descriptor):
            found.append(f"{name} is not embedded")
    places = set(pdf.named_destinations)
    outside, inside = links(pdf)
    found += [f"{name} is no place in it" for name in inside if f"/{name}" not in places]
    found += [f"{url} is not public" for url in outside if not url.startswith("https://")]
    return found


def sources(page: str) -> list[tuple[str, str]]:
    """Return kind and text of each cell of a page; a page that is no notebook has one."""
    path = ROOT / f"{page}.ipynb"
    if not path.is_file():
        return [("markdown", (ROOT / f"{page}.md").read_text(encoding="utf-8"))]
    cells = nbformat.read(path, as_version=4).cells
    return [(cell.cell_type, cell.source) for cell in cells]


def headings(page: str) -> list[str]:
    """Return the headings of a page as written, but for those that become closed sections."""
    found = []
    for kind, text in sources(page):
        if kind == "markdown":
            text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
            found += re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    found = [re.sub(r"[$`]", "", title).replace("'", "\u2019") for title in found]
    if page.endswith("-exercises"):
        found = [title for title in found if title not in ("Hint", "Worked answer")]
    return found


def lines(page: str) -> list[str]:
    """Return every line of code of a page, and every line that its code printed."""
    path = ROOT / f"{page}.ipynb"
    if not path.is_file():
        return []
    found = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            printed = [output.get("text", "") for output in cell.outputs]
            found += "\n".join([cell.source, *printed]).splitlines()
    return [line for line in found if line.strip()]


def missing(wanted: list[str], text: str) -> list[str]:
    """Return the lines that a squeezed text does not hold whole."""
    return [line for line in wanted if squeeze(line) not in text]


def addresses(page: str) -> list[str]:
    """Return the addresses that a page links to."""
    found = [re.findall(r"\]\((https?://[^)\s]+)\)", text) for _, text in sources(page)]
    return [address for some in found for address in some]
