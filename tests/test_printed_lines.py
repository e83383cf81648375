"""What is stored is true: each parity and accuracy line lies in its band,
each claim rests on a printed line, and the pinned torch printed it all.

nbval compares a stored line with a new one after both were sanitized. Two raw
lines that are equal would pass whatever they say, so the stored ones are held
to their bands here.
"""

import re
from pathlib import Path

import nbformat
import pytest

from lesson_code import (
    BANDS,
    NOTEBOOKS,
    every_lesson,
    every_notebook,
    lesson_path,
    printed,
)
from long_answers import PRINTED

ROOT = Path(__file__).resolve().parent.parent
# a line that must be compared by band, and what must not remain raw in it
BANDED = re.compile(r"max abs diff|\bacc\b|\baccurac(y|ies)\b.*\d", re.IGNORECASE)
RAW = re.compile(r"\d(\.\d+)?e[+-]?\d|\d%|\b(nan|inf)\b", re.IGNORECASE)
# as Python prints it; a lesson may well print the word NaN
NOT_A_NUMBER = re.compile(r"[:=] *-?(nan|inf)\b")
MIN_QUOTE = 10  # characters; a shorter quote could stand anywhere


def without_banded_numbers(line):
    """The line without every part that lies inside a band."""
    for regex, _ in BANDS:
        line = re.sub(regex, "", line)
    return line


def printed_lines(path):
    """(cell number, line) of everything a notebook has stored as text.

    The recorded results of long worked answers, in Markdown, included.
    """
    notebook = nbformat.read(path, as_version=4)
    recorded = [
        (number, match[1])
        for number, cell in enumerate(notebook.cells, start=1)
        if cell.cell_type == "markdown"
        for match in PRINTED.finditer(cell.source)
    ]
    return [
        (number, line)
        for number, text in printed(notebook) + recorded
        for line in text.splitlines()
    ]


def out_of_band(line):
    """Why a stored line cannot stand, or None."""
    if NOT_A_NUMBER.search(line):
        return "not a number"
    if BANDED.search(line):
        rest = without_banded_numbers(line)
        if rest == line or RAW.search(rest):
            return "in no band of tests/nbval_sanitize.cfg"
    return None


def is_printed(quote, lines):
    """Whether a quote is a printed line's start, or follows its label."""
    return len(quote) >= MIN_QUOTE and any(
        line.startswith(quote) or f": {quote}" in line or f", {quote}" in line
        for line in lines
    )


def unsupported_claims(notebook):
    """The lines of "What to take away" that quote no printed line.

    The section is its heading, a sentence, and one bullet a claim; whatever
    else stands in it is unsupported too.
    """
    lines = [line for _, text in printed(notebook) for line in text.splitlines()]
    section = "\n\n".join(
        cell.source
        for cell in notebook.cells
        if cell.source.startswith("## What to take away")
    )
    _, _, claims = section.partition("\n\n")[2].partition("\n\n")
    bullets = re.split(r"\n(?=- )", claims.strip())
    assert len(bullets) >= 3, "What to take away lists no claims"
    unsupported = []
    for bullet in bullets:
        evidence = re.search(r" \((`.*`)\)$", bullet)
        quotes = re.findall(r"`([^`]+)`", evidence.group(1)) if evidence else []
        is_claim = bullet.startswith("- ") and "\n" not in bullet
        if not is_claim or not quotes or not all(is_printed(q, lines) for q in quotes):
            unsupported.append(bullet)
    return unsupported


@every_notebook
def test_stored_lines_are_in_their_bands(path):
    wrong = [
        f"{path.name}, cell {number}: {reason}: {line}"
        for number, line in printed_lines(path)
        if (reason := out_of_band(line))
    ]
    assert not wrong, "\n".join(wrong)


@every_lesson
def test_claims_rest_on_printed_lines(path):
    wrong = [
        f"{path.name}, What to take away: no printed line for the claim {claim!r}"
        for claim in unsupported_claims(nbformat.read(path, as_version=4))
    ]
    assert not wrong, "\n".join(wrong)


@every_notebook
def test_the_pinned_torch_printed_the_outputs(path):
    pin = re.search(
        r"^torch==(\S+)$",
        (ROOT / "requirements.txt").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    line = f"the outputs below were printed by torch {pin.group(1)}"
    assert line in [text for _, text in printed_lines(path)]


def test_every_band_is_used():
    """A band that no lesson prints any more guards nothing."""
    stored = "\n".join(line for path in NOTEBOOKS for _, line in printed_lines(path))
    unused = [regex for regex, _ in BANDS if not re.search(regex, stored)]
    assert not unused


@pytest.mark.parametrize(
    "line",
    [
        "max abs diff vs nn.MultiheadAttention: 1.00e-05",
        "max abs diff vs nn.MultiheadAttention: 7.45e-03",
        "max abs diff vs nn.MultiheadAttention: 1.1e+00",
        "max abs diff vs nn.MultiheadAttention: nan",
        "max abs diff vs nn.MultiheadAttention: inf",
        "max abs diff vs nn.MultiheadAttention, float64: 1.00e-12",
        "max abs diff vs nn.MultiheadAttention, float64: 7.45e-08",
        "max abs diff vs something new",
        "without positional encoding: mean test acc = 44.9%  (+/- 1.0%)",
        "without positional encoding: mean test acc = 55.0%  (+/- 1.0%)",
        "without positional encoding: mean test acc = 50.0%  (+/- 9.0%)",
        "with positional encoding:    mean test acc = 94.9%  (+/- 1.0%)",
        "with positional encoding:    mean test acc = 100.1%  (+/- 0.0%)",
        "with positional encoding:    mean test acc = nan%  (+/- nan%)",
        "an arm without a band: mean test acc = 99.0%  (+/- 0.0%)",
        "max abs diff vs a: 4.17e-07; max abs diff vs b: 2.10e+00",
        "max abs difference vs nn.X: 3.0e+00",
        "test accuracies = 12.0%",
    ],
)
def test_a_line_out_of_band_is_refused(line):
    assert out_of_band(line)


@pytest.mark.parametrize(
    "line",
    [
        "max abs diff vs nn.MultiheadAttention: 9.99e-06",
        "max abs diff vs nn.MultiheadAttention: 0.00e+00",
        "max abs diff vs nn.MultiheadAttention, float64: 9.99e-13",
        "without positional encoding: mean test acc = 45.0%  (+/- 1.2%)",
        "with positional encoding:    mean test acc = 100.0%  (+/- 0.0%)",
        "a line with neither",
    ],
)
def test_a_line_in_band_is_accepted(line):
    assert out_of_band(line) is None


@pytest.mark.parametrize(
    "bullet",
    [
        "- Heads are wonderful.",
        "- A claim. (`a line nobody printed: 1`)",
        "- Too short a quote. (`0`)",
        "- Not where a line starts. (`abs diff vs nn.`)",
        "* Another kind of bullet.",
        "A claim without a bullet.",
    ],
)
def test_a_claim_without_its_line_is_refused(bullet):
    notebook = nbformat.read(lesson_path("46"), as_version=4)
    for cell in notebook.cells:
        if cell.source.startswith("## What to take away"):
            cell.source += "\n" + bullet
    assert bullet in unsupported_claims(notebook)[0]
