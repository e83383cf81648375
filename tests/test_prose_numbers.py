"""A result quoted in the prose stands in an output of the same page.

What counts as a result: a percentage, a decimal, a number such as 1e-5, and
"x times". What is none (a size, a threshold that a cell asserts, a paper's
figure) is an exception with a reason, in tests/prose_numbers.toml.
"""

import re
import tomllib
from pathlib import Path

import nbformat
import pytest

from build_book import read_settings
from check_notebooks import ROOT, prose_lines
from lesson_code import NOTEBOOKS, parametrize_paths, printed
from long_answers import PRINTED

EXCEPTIONS = Path(__file__).resolve().parent / "prose_numbers.toml"
PAGES = [*NOTEBOOKS, *(ROOT / f"{p}.md" for p in read_settings()[0] if "/" not in p)]
IN_WORDS = "two three four five six seven eight nine ten twenty thirty hundred thousand"
RESULT = re.compile(
    r"(?<![\w.,-])(?:"
    r"\d[\d,]*(?:\.\d+)?e[+-]?\d+"  # 1e-5
    r"|\d[\d,]*(?:\.\d+)?(?: ?%| per ?cent)"  # 95 %
    r"|\d[\d,]*\.\d+"  # 0.05
    rf"|(?:\d[\d,.]*|{IN_WORDS.replace(' ', '|')}) times"
    r")(?![\d.]*\d)",
    re.IGNORECASE,
)
# What looks like a result and is none: formulas, targets of links, identifiers
# of papers, numbers of sections and versions.
NO_RESULT = re.compile(
    r"\$[^$]*\$|\]\([^)]*\)|(?:arXiv|doi):\S+"
    r"|\b(?:sections?|equations?|tables?|figures?|Python|torch) \d[\d.]*"
    r"(?:(?:, | and | to )\d[\d.]*)*"
)


def exceptions():
    """{page: {number as in the prose: reason}}."""
    table = tomllib.loads(EXCEPTIONS.read_text(encoding="utf-8"))
    return {page["name"]: page["numbers"] for page in table["page"]}


def results_in(markdown):
    """Every result that a piece of Markdown quotes; code is no prose."""
    prose = "\n".join(text for _, text in prose_lines(markdown))
    return RESULT.findall(NO_RESULT.sub(" ", prose))


def is_shown(result, outputs):
    """Whether the number of a result stands in the outputs, as a whole."""
    number = re.sub(r"( ?%| per ?cent| times)$", "", result).replace(",", "")
    return re.search(rf"(?<![\d.]){re.escape(number)}(?!\d|\.\d)", outputs) is not None


def unsupported(name, cells, allowed):
    """(line a result that nothing shows, the exceptions that were needed).

    cells: (place, Markdown or None, text printed); allowed: the exceptions.
    """
    outputs = "\n".join(text for _, _, text in cells)
    wrong, needed = [], set()
    for place, markdown, _ in cells:
        for result in results_in(markdown or ""):
            if is_shown(result, outputs):
                continue
            if result in allowed:
                needed.add(result)
            else:
                wrong.append(
                    f"{name}{place}: {result!r} stands in no output of this page; "
                    "print it, or list it with a reason in tests/prose_numbers.toml"
                )
    return wrong, needed


def cells_of(path):
    """(place, Markdown or None, text printed) of each cell of a page.

    A Markdown file is one cell. Recorded results of long worked answers are
    printed text, though they stand in Markdown.
    """
    if path.suffix == ".md":
        return [("", path.read_text(encoding="utf-8"), "")]
    notebook = nbformat.read(path, as_version=4)
    texts = {}
    for number, text in printed(notebook):
        texts[number] = texts.get(number, "") + text
    cells = []
    for number, cell in enumerate(notebook.cells, start=1):
        markdown = cell.source if cell.cell_type == "markdown" else None
        recorded = "".join(PRINTED.findall(markdown or ""))
        cells.append((f", cell {number}", markdown, texts.get(number, "") + recorded))
    return cells


@parametrize_paths(PAGES)
def test_every_result_in_the_prose_is_shown(path):
    allowed = exceptions().get(path.stem, {})
    wrong, needed = unsupported(path.name, cells_of(path), allowed)
    assert not wrong, "\n".join(wrong)
    assert needed == set(allowed), f"not needed: {set(allowed) - needed}"


def test_every_exception_has_a_page_and_a_reason():
    table = exceptions()
    assert set(table) <= {path.stem for path in PAGES}
    for page, numbers in table.items():
        for number, reason in numbers.items():
            assert len(reason) > 10, f"{page}: {number}"


@pytest.mark.parametrize(
    "text, results",
    [
        ("It reaches 98.6 % and 50%.", ["98.6 %", "50%"]),
        ("ninety-nine per cent, 99 per cent", ["99 per cent"]),
        ("a ratio of 4.47, under 1e-5.", ["4.47", "1e-5"]),
        ("ten times as large, 3 times", ["ten times", "3 times"]),
        ("twice, sometimes, 400 sequences, 2,000 steps, T = 8", []),
        ("section 3.2.1, equations 1.2 and 1.3, torch 2.13.0", []),
        ("$0.5 x$ and `0.5` and [a](b.md#1.5) and arXiv:1706.03762", []),
    ],
)
def test_what_counts_as_a_result(text, results):
    assert results_in(text) == results


@pytest.mark.parametrize(
    "result, shown",
    [
        ("98.6 %", True),
        ("8.6 %", False),
        ("98 %", False),
        ("1,088", True),
        ("10", False),
    ],
)
def test_a_number_is_shown_as_a_whole(result, shown):
    assert is_shown(result, "acc = 98.6%  (+/- 0.3%)\n1088 parameters\n") is shown


def test_a_number_without_source_is_refused_by_cell():
    cells = [(", cell 1", "It reaches 98.6 %.", ""), (", cell 2", None, "98.5%\n")]
    wrong, _ = unsupported("46.ipynb", cells, {})
    assert len(wrong) == 1
    assert wrong[0].startswith("46.ipynb, cell 1: '98.6 %' stands in no output")
    assert unsupported("46.ipynb", cells, {"98.6 %": "a reason"}) == ([], {"98.6 %"})
