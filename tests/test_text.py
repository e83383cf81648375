"""What the text says rests on what is printed, terms are defined, figures legible."""

import re

import pytest

from tools.bands import PATTERNS
from tools.form import prose
from tools.new import PLACEHOLDER
from tools.notebooks import LESSON_NAMES, NAMES, ROOT, data_of, path_of, printed, read

TOC = (ROOT / "_toc.yml").read_text(encoding="utf-8")
PAGES = re.findall(r"^ *(?:- file|root): (\w+)$", TOC, re.MULTILINE)
every_lesson = pytest.mark.parametrize("number", LESSON_NAMES)
every_notebook = pytest.mark.parametrize("name", NAMES)


def cells_of(name):
    """Return (place, Markdown or "", printed text) of each cell of a notebook or page.

    A page is one cell. The recorded result of a long answer is printed text.
    """
    if name in PAGES:
        return [(f"{name}.md", (ROOT / f"{name}.md").read_text(encoding="utf-8"), "")]
    found = []
    for number, cell in enumerate(read(path_of(name)).cells, start=1):
        markdown = cell.source if cell.cell_type == "markdown" else ""
        text = printed(cell) + "".join(re.findall(r"```text\n(.*?)```", markdown, re.S))
        found.append((f"{path_of(name).name}, cell {number}", markdown, text))
    return found


@pytest.mark.parametrize("name", [*NAMES, *PAGES])
def test_no_placeholder_is_left(name):
    cells = read(path_of(name)).cells if name in NAMES else cells_of(name)
    found = [n for n, cell in enumerate(cells, start=1) if PLACEHOLDER in str(cell)]
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
    "checking": {
        "1e-5": "the limit in float32, by LIMIT in tests/checking.py",
        "1e-12": "the limit in float64, by the same",
    },
    "teaching": {
        "4.0": "the name of a licence",
        "1.4": "GB, by tests/deep/test_binder.py",
    },
}


def numbers_not_shown(name):
    """Yield (place, number) of each number of the prose that no output shows, whole."""
    cells = cells_of(name)
    outputs = "\n".join(text for *_, text in cells)
    for place, markdown, _ in cells:
        for _, text in prose(markdown):
            for result in RESULT.findall(NO_RESULT.sub(" ", text.replace("\n", " "))):
                number = re.sub(r"( ?%| per ?cent| times)$|,", "", result)
                shown = rf"(?<![\d.]){re.escape(number)}(?!\d|\.\d)"
                if not re.search(shown, outputs):
                    yield place, result


@pytest.mark.parametrize("page", [*LESSON_NAMES, *PAGES])
def test_numbers_of_the_prose_are_printed(page):
    allowed = PAGE_NUMBERS.get(page) or data_of(page).get("NUMBERS", {})
    names = [page, f"{page}-exercises"] if page in LESSON_NAMES else [page]
    found = [row for name in names for row in numbers_not_shown(name)]
    wrong = [f"{place}: {number}" for place, number in found if number not in allowed]
    assert not wrong, "print it, or say in NUMBERS of its lesson why it may stand there"
    assert set(allowed) == {number for _, number in found}, "not needed any more"


# ---- printed lines -------------------------------------------------------------------

# A line that must be compared by band, and what must not remain in it then.
BANDED = re.compile(r"max abs diff|\bacc\b|\baccurac(y|ies)\b.*\d", re.IGNORECASE)
RAW = re.compile(r"\d(\.\d+)?e[+-]?\d|\d%|\b(nan|inf)\b", re.IGNORECASE)
# As Python prints it; a lesson may well print the word NaN.
NOT_A_NUMBER = re.compile(r"[:=] *-?(nan|inf)\b")


def printed_lines(name):
    """Return (place, line) of everything that a notebook has printed."""
    cells = cells_of(name)
    return [(place, line) for place, _, text in cells for line in text.splitlines()]


@every_notebook
def test_stored_lines_are_in_their_bands(name):
    # nbval would not see it: two lines that are equal pass, whatever they say.
    for place, line in printed_lines(name):
        rest = line
        for regex, _ in PATTERNS:
            rest = re.sub(regex, "", rest)
        raw = BANDED.search(line) and (rest == line or RAW.search(rest))
        assert not raw, f"{place}: in no band of its lesson's BANDS: {line}"
        assert not NOT_A_NUMBER.search(line), f"{place}: not a number: {line}"


def test_every_band_is_used():
    stored = "\n".join(line for name in NAMES for _, line in printed_lines(name))
    assert not [regex for regex, _ in PATTERNS if not re.search(regex, stored)]


@every_notebook
def test_the_pinned_torch_printed_the_outputs(name):
    pins = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    pin = re.search(r"^torch==([\d.]+)", pins, re.MULTILINE)[1]
    lines = [line for _, line in printed_lines(name)]
    assert f"the outputs below were printed by torch {pin}" in lines


MIN_QUOTE = 10  # characters; a shorter quote could stand anywhere


@every_lesson
def test_claims_rest_on_printed_lines(number):
    # A line a claim. Its quotes are each the beginning of a printed line, or of what
    # follows a label there; they stand in the cell's metadata, or end the line.
    lines = "\n".join(line for _, line in printed_lines(number))
    cells = read(path_of(number)).cells
    (cell,) = [c for c in cells if c.source.startswith("## What to take away")]
    claims = re.findall("^- .*", cell.source, re.MULTILINE)
    quoted = [re.findall("`([^`]+)`", c[c.rfind(" (`") :]) for c in claims]
    evidence = cell.metadata.get("evidence", quoted)
    assert len(claims) >= 3, "fewer than three claims"
    for claim, quotes in zip(claims, evidence, strict=True):
        for quote in quotes or [""]:
            shown = re.search(rf"(^|: |, ){re.escape(quote)}", lines, re.MULTILINE)
            assert len(quote) >= MIN_QUOTE and shown, f"{claim} ({quote})"


# ---- terms ---------------------------------------------------------------------------

GLOSSARY = (ROOT / "glossary.md").read_text(encoding="utf-8")
ENTRY = re.compile(
    r"- \*\*(?P<term>[^*]+)\*\*: .+\. "
    r"\(\[Lesson (?P<number>\d\d)\]\(lessons/(?P=number)-[^)#]+#[^)]+\)\)"
)


def test_the_glossary_is_in_order():
    entries, previous = re.findall("^- .*", GLOSSARY, re.MULTILINE), ""
    for line in entries:  # that its link leads somewhere is checked by the build
        entry = ENTRY.fullmatch(line)
        assert entry and entry["number"] in LESSON_NAMES, line
        term, text = entry["term"].lower(), path_of(entry["number"]).read_text("utf-8")
        # the lesson may inflect: "permutation *equivariant*", "equivariance"
        assert term.split()[-1].rstrip("s")[:8] in text.lower(), line
        assert term > previous, f"not in order: {line}"
        previous = term


@every_lesson
def test_the_glossary_has_terms_of_every_lesson(number):
    lessons = [entry["number"] for entry in ENTRY.finditer(GLOSSARY)]
    assert lessons.count(number) >= 5, "define a term in glossary.md, with a link"


# ---- figures -------------------------------------------------------------------------

# Colours that stand out too little from white paper, as WCAG 2.2 has it (1.4.11).
PALE = r"""["'](C1|(tab:)?orange|yellow|gold|lime|cyan|pink|0?\.[6-9]\d*)["']"""


@every_notebook
def test_colours_of_figures_stand_out(name):
    cells = [cell for cell in read(path_of(name)).cells if cell.cell_type == "code"]
    drawing = [cell.source for cell in cells if "plt." in cell.source]
    assert not [match[0] for code in drawing for match in re.finditer(PALE, code)]
