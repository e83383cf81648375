"""What the text says rests on what is printed, terms are defined, figures legible."""

import ast
import re

import pytest
from matplotlib.colors import is_color_like, to_rgb

from tools.bands import PATTERNS
from tools.form import prose
from tools.new import PLACEHOLDER
from tools.notebooks import (
    LESSON_NAMES,
    LESSONS,
    NAMES,
    NOTEBOOKS,
    ROOT,
    data_of,
    path_of,
    printed,
    read,
)
from tools.record import PRINTED

TOC = (ROOT / "_toc.yml").read_text(encoding="utf-8")
PAGES = [
    ROOT / f"{name}.md"
    for name in re.findall(r"^ *(?:- file|root): (\w+)$", TOC, re.MULTILINE)
]
every_lesson = pytest.mark.parametrize("number", LESSON_NAMES)
every_notebook = pytest.mark.parametrize("name", NAMES)


def cells_of(path):
    """Return (place, Markdown or "", printed text) of each cell of a page.

    A Markdown file is one cell. The recorded result of a long answer is printed text.
    """
    if path.suffix == ".md":
        return [(path.name, path.read_text(encoding="utf-8"), "")]
    found = []
    for number, cell in enumerate(read(path).cells, start=1):
        markdown = cell.source if cell.cell_type == "markdown" else ""
        text = printed(cell) + "".join(PRINTED.findall(markdown))
        found.append((f"{path.name}, cell {number}", markdown, text))
    return found


@pytest.mark.parametrize("path", [*NOTEBOOKS, *PAGES], ids=lambda path: path.stem)
def test_no_placeholder_is_left(path):
    found = [place for place, text, _ in cells_of(path) if PLACEHOLDER in text]
    assert not found, f"replace {PLACEHOLDER!r} by what the page has to say"


# ---- numbers -------------------------------------------------------------------------

# A percentage, a decimal, a number such as 1e-5, "x times".
WORDS = "two|three|four|five|six|seven|eight|nine|ten|twenty|thirty|hundred|thousand"
RESULT = re.compile(
    r"(?<![\w.,-])(?:"
    r"\d[\d,]*(?:\.\d+)?e[+-]?\d+"
    r"|\d[\d,]*(?:\.\d+)?(?: ?%| per ?cent)"
    r"|\d[\d,]*\.\d+"
    rf"|(?:\d[\d,.]*|{WORDS}) times"
    r")(?![\d.]*\d)",
    re.IGNORECASE,
)
# Identifiers of papers, numbers of sections and versions.
NO_RESULT = re.compile(
    r"(?:arXiv|doi):\S+"
    r"|\b(?:sections?|equations?|tables?|figures?|Python|torch) \d[\d.]*"
    r"(?:(?:, | and | to )\d[\d.]*)*"
)
# Numbers of the pages that are no lessons, and why they may stand there.
PAGE_NUMBERS = {
    "notation": {"0.1": "PyTorch's default, held by tests/test_conventions.py"},
    "teaching": {"4.0": "the name of a licence", "1.4": "gigabytes, as measured"},
}


def is_shown(result, outputs):
    """Say whether the number of a result stands in the outputs, as a whole."""
    number = re.sub(r"( ?%| per ?cent| times)$", "", result).replace(",", "")
    return re.search(rf"(?<![\d.]){re.escape(number)}(?!\d|\.\d)", outputs) is not None


def numbers_not_shown(path):
    """Return (place, number) of each number of the prose that no output shows."""
    cells = cells_of(path)
    outputs = "\n".join(text for *_, text in cells)
    return [
        (place, result)
        for place, markdown, _ in cells
        for _, text in prose(markdown)
        for result in RESULT.findall(NO_RESULT.sub(" ", text.replace("\n", " ")))
        if not is_shown(result, outputs)
    ]


@pytest.mark.parametrize("page", [*LESSON_NAMES, *(path.stem for path in PAGES)])
def test_numbers_of_the_prose_are_printed(page):
    if page in LESSON_NAMES:
        paths, allowed = LESSONS.glob(f"{page}-*.ipynb"), data_of(page)["NUMBERS"]
    else:
        paths, allowed = [ROOT / f"{page}.md"], PAGE_NUMBERS.get(page, {})
    found = [row for path in paths for row in numbers_not_shown(path)]
    wrong = [f"{place}: {number}" for place, number in found if number not in allowed]
    assert not wrong, "print it, or say in NUMBERS of its lesson why it may stand there"
    assert set(allowed) == {number for _, number in found}, "not needed any more"


# ---- printed lines -------------------------------------------------------------------

# A line that must be compared by band, and what must not remain in it then.
BANDED = re.compile(r"max abs diff|\bacc\b|\baccurac(y|ies)\b.*\d", re.IGNORECASE)
RAW = re.compile(r"\d(\.\d+)?e[+-]?\d|\d%|\b(nan|inf)\b", re.IGNORECASE)
# As Python prints it; a lesson may well print the word NaN.
NOT_A_NUMBER = re.compile(r"[:=] *-?(nan|inf)\b")


def out_of_band(line):
    """Return why a stored line cannot stand; "" where it can.

    nbval would not see it: two lines that are equal pass, whatever they say.
    """
    if NOT_A_NUMBER.search(line):
        return "not a number"
    rest = line
    for regex, _ in PATTERNS:
        rest = re.sub(regex, "", rest)
    if BANDED.search(line) and (rest == line or RAW.search(rest)):
        return "in no band of its lesson's BANDS"
    return ""


def printed_lines(path):
    """Return (place, line) of everything that a notebook has printed."""
    cells = cells_of(path)
    return [(place, line) for place, _, text in cells for line in text.splitlines()]


@every_notebook
def test_stored_lines_are_in_their_bands(name):
    lines = printed_lines(path_of(name))
    wrong = [f"{p}: {out_of_band(x)}: {x}" for p, x in lines if out_of_band(x)]
    assert not wrong


def test_every_band_is_used():
    stored = "\n".join(line for path in NOTEBOOKS for _, line in printed_lines(path))
    assert not [regex for regex, _ in PATTERNS if not re.search(regex, stored)]


@every_notebook
def test_the_pinned_torch_printed_the_outputs(name):
    pins = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    pin = re.search(r"^torch==([\d.]+)", pins, re.MULTILINE)[1]
    lines = [line for _, line in printed_lines(path_of(name))]
    assert f"the outputs below were printed by torch {pin}" in lines


MIN_QUOTE = 10  # characters; a shorter quote could stand anywhere


def unsupported_claims(path):
    """Return the lines of "What to take away" that quote no printed line.

    The section is its heading, a sentence, and one bullet a claim, which ends on its
    quotes: each the beginning of a printed line, or of what follows a label there.
    """
    lines = [line for _, line in printed_lines(path)]
    sections = [
        text for _, text, _ in cells_of(path) if text.startswith("## What to ta")
    ]
    claims = "\n\n".join(sections).split("\n\n", 2)[-1].strip()
    bullets = re.split(r"\n(?=- )", claims)
    unsupported = ["fewer than three claims"] if len(bullets) < 3 else []
    for bullet in bullets:
        evidence = re.search(r" \((`.*`)\)$", bullet)
        quotes = re.findall(r"`([^`]+)`", evidence[1]) if evidence else []
        shown = [
            len(quote) >= MIN_QUOTE
            and any(re.search(rf"(^|: |, ){re.escape(quote)}", line) for line in lines)
            for quote in quotes
        ]
        is_bullet = bullet.startswith("- ") and "\n" not in bullet
        if not is_bullet or not quotes or not all(shown):
            unsupported.append(bullet)
    return unsupported


@every_lesson
def test_claims_rest_on_printed_lines(number):
    assert unsupported_claims(path_of(number)) == []


# ---- terms ---------------------------------------------------------------------------

GLOSSARY = (ROOT / "glossary.md").read_text(encoding="utf-8")
ENTRY = re.compile(
    r"- \*\*(?P<term>[^*]+)\*\*: (?P<text>.+\.) "
    r"\(\[Lesson (?P<number>\d\d)\]\(lessons/(?P<file>[^)#]+)#(?P<anchor>[^)]+)\)\)"
)


def wrong_entries(glossary):
    """Return a line for each entry out of order, out of form, or not of its lesson.

    That a link leads somewhere is checked by the build.
    """
    lines = [line for line in glossary.splitlines() if line.startswith("- ")]
    wrong = [f"not an entry: {line}" for line in lines if not ENTRY.fullmatch(line)]
    entries = [match for line in lines if (match := ENTRY.fullmatch(line))]
    terms = [entry["term"].lower() for entry in entries]
    if terms != sorted(set(terms)):
        wrong.append("not in alphabetical order, or a term stands twice")
    for term, entry in zip(terms, entries, strict=True):
        path = LESSONS / entry["file"]
        if not path.is_file() or not path.name.startswith(entry["number"]):
            wrong.append(f"{term}: lessons/{path.name} is not Lesson {entry['number']}")
            continue
        words = "".join(cell.source for cell in read(path).cells).lower()
        # the lesson may inflect: "permutation *equivariant*", "equivariance"
        if term.split()[-1].rstrip("s")[:8] not in words:
            wrong.append(f"{term}: not a word of {path.name}")
    return wrong


def test_the_glossary_is_in_order():
    assert wrong_entries(GLOSSARY) == []


@every_lesson
def test_terms_of_a_lesson_stand_in_the_glossary(number):
    terms = data_of(number)["TERMS"]
    entries = ENTRY.finditer(GLOSSARY)
    defined = {e["term"].lower() for e in entries if e["number"] == number}
    assert terms, f"TERMS of lesson_{number}.py names none"
    assert not set(terms) - defined, (
        "define it in glossary.md, with a link to its lesson"
    )


# ---- figures -------------------------------------------------------------------------

LEAST_CONTRAST = 3.0  # of lines to what they lie on: WCAG 2.2, success criterion 1.4.11
DRAWS_LINES = {"plot", "step", "errorbar", "bar", "axhline", "axvline"}
BY_TURNS = "its colours by turns"  # of which matplotlib's second and third are pale
# Colours that may be pale, since they carry nothing by themselves.
PALE = {
    "45": {
        "lightgrey",  # hatches cells that also hold the text of minus infinity
        "white",  # text on dark cells
    }
}


def contrast(colour):
    """Return the contrast of a matplotlib colour to white paper (WCAG 2.2)."""
    linear = [
        v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4
        for v in to_rgb(colour)
    ]
    weights = (0.2126, 0.7152, 0.0722)
    return 1.05 / (sum(w * v for w, v in zip(weights, linear, strict=True)) + 0.05)


def pale_colours(source):
    """Return the colours of a cell that draws which stand out too little from paper."""
    nodes = list(ast.walk(ast.parse(source if "plt." in source else "")))
    found = {node.value for node in nodes if isinstance(node, ast.Constant)}
    found = {c for c in found if isinstance(c, str) and is_color_like(c)}
    for node in nodes:
        if isinstance(node, ast.Call):
            colours = [k for k in node.keywords if re.search("color|^c$", k.arg or "")]
            tuples = [k.value for k in colours if isinstance(k.value, ast.Tuple)]
            found |= {ast.literal_eval(value) for value in tuples}
            draws_lines = getattr(node.func, "attr", "") in DRAWS_LINES
            found |= {BY_TURNS} if draws_lines and not colours else set()
    return {c for c in found if c == BY_TURNS or contrast(c) < LEAST_CONTRAST}


@every_notebook
def test_colours_of_figures_stand_out(name):
    cells = [cell for cell in read(path_of(name)).cells if cell.cell_type == "code"]
    found = {colour for cell in cells for colour in pale_colours(cell.source)}
    assert found == PALE.get(name, set())
