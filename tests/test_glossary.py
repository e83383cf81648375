"""The glossary: one entry a term, each linked to the lesson it comes from,
and each lesson's key terms among them.

That the links' anchors exist is checked by the strict build.
"""

import re

import nbformat
import pytest

from check_notebooks import LESSONS, ROOT

ENTRY = re.compile(
    r"- \*\*(?P<term>[^*]+)\*\*: (?P<text>.+\.) "
    r"\(\[Lesson (?P<number>\d\d)\]\(lessons/(?P<file>[^)#]+)#(?P<anchor>[^)]+)\)\)"
)
# What a reader of the lesson must be able to look up.
KEY_TERMS = {
    "37": {
        "batch norm",
        "biased variance",
        "jacobian",
        "layer norm",
        "residual block",
        "running statistics",
        "shortcut",
        "vanishing gradient",
    },
    "45": {
        "attention",
        "causal mask",
        "cross-attention",
        "key",
        "leak test",
        "padding mask",
        "permutation equivariance",
        "query",
        "scores",
        "self-attention",
        "temperature",
        "value",
    },
    "46": {
        "decoder",
        "encoder",
        "encoder block",
        "feed-forward network",
        "head",
        "multi-head attention",
        "positional encoding",
        "post-norm",
        "pre-norm",
    },
    "47": {
        "class token",
        "gelu",
        "inductive bias",
        "learned positions",
        "patch",
        "patch embedding",
        "vision transformer",
    },
}


def entries(text):
    """The entries of the glossary as matches.

    Raises AssertionError for a bullet that is no entry.
    """
    found = []
    for line in text.splitlines():
        if line.startswith("- "):
            match = ENTRY.fullmatch(line)
            assert match, f"not of the form of an entry: {line}"
            found.append(match)
    return found


def wrong_entries(text):
    """One line for each thing that is wrong with the glossary."""
    found = entries(text)
    wrong = []
    terms = [entry["term"].lower() for entry in found]
    if terms != sorted(set(terms)):
        wrong.append("terms are not in alphabetical order, or one stands twice")
    for entry in found:
        path = LESSONS / entry["file"]
        if not path.is_file():
            wrong.append(f"{entry['term']}: no file lessons/{entry['file']}")
            continue
        if not entry["file"].startswith(entry["number"]):
            wrong.append(f"{entry['term']}: links another lesson than it names")
        words = " ".join(
            cell.source for cell in nbformat.read(path, as_version=4).cells
        ).lower()
        # the lesson may inflect: "permutation *equivariant*", "equivariance"
        stem = entry["term"].lower().split()[-1].rstrip("s")[:8]
        if stem not in words:
            wrong.append(f"{entry['term']}: not a word of {entry['file']}")
    for number, expected in KEY_TERMS.items():
        here = {e["term"].lower() for e in found if e["number"] == number}
        wrong += [f"{term}: missing for Lesson {number}" for term in expected - here]
    return wrong


GLOSSARY = (ROOT / "glossary.md").read_text(encoding="utf-8")


def test_the_glossary_is_in_order():
    assert wrong_entries(GLOSSARY) == []


def test_every_lesson_has_key_terms():
    numbers = {path.name[:2] for path in LESSONS.glob("*.ipynb")}
    assert numbers == set(KEY_TERMS), "KEY_TERMS has one entry a lesson"


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("(lessons/45-attention.ipynb#", "(lessons/45-gone.ipynb#", "no file"),
        ("[Lesson 45](lessons/45-", "[Lesson 46](lessons/45-", "another lesson"),
        ("- **Query**", "- **Zebra**", "query: missing for Lesson 45"),
        ("- **Query**", "- **Zebra**", "Zebra: not a word"),
        ("- **Query**", "- **Attention**", "stands twice"),
    ],
)
def test_a_broken_glossary_is_refused(old, new, message):
    assert old in GLOSSARY
    found = wrong_entries(GLOSSARY.replace(old, new, 1))
    assert any(message in line for line in found), found


def test_an_entry_without_link_is_refused():
    with pytest.raises(AssertionError, match="not of the form"):
        wrong_entries(GLOSSARY + "- **Term**: no link.\n")
