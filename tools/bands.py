"""How nbval compares the lines whose digits may differ between processors.

A line inside its band becomes a token, in the stored output and in the new one, so that
the two are equal. A line outside its band stays as it is, differs from the token, and
fails. Everything else that a notebook prints is compared letter by letter.

Parity lines ("max abs diff ...: 7.45e-08") share two limits. Each accuracy line has a
band of its own, for each is a claim: BANDS in tests/lessons/lesson_NN.py holds

    "attention: mean test acc": (96, 100, 9.9),

for the line "attention: mean test acc = 98.6%  (+/- 0.3%)": lowest, highest, and the
largest spread, which is left out where the line has none. `{ViT|CNN}` in a label stands
for either word, and a label with # holds a whole number there: "# of 6 seeds solve it".
"""

import re
from pathlib import Path

from tools.notebooks import LESSON_NAMES, data_of

# As `compare` prints them; under 1e-12 in float64, else under 1e-5.
SMALL = r"(?:0\.00e\+00|\d\.\d\de-(?:{}|[1-9]\d{{2}}))(?!\d)"
FIXED = [
    (
        r"(max abs diff[^:\n]*, float64): " + SMALL.format(r"1[3-9]|[2-9]\d"),
        r"\1: under 1e-12",
    ),
    (
        r"(max abs diff(?:(?!, float64)[^:\n])*): " + SMALL.format(r"0[6-9]|[1-9]\d"),
        r"\1: under 1e-5",
    ),
    (r"(the outputs below were printed by torch) \d+\.\d+\.\d+", r"\1 X.Y.Z"),
]


def either(label: str) -> str:
    """Return a label as a regular expression, its `{a|b}` as a choice."""
    parts = re.split(r"\{(.*?)\}", label)
    parts[::2] = map(re.escape, parts[::2])
    parts[1::2] = [
        f"(?:{'|'.join(map(re.escape, part.split('|')))})" for part in parts[1::2]
    ]
    return "".join(parts)


def tenths(low: float, high: float) -> str:
    """Return a regular expression for the numbers of one decimal from low to high."""
    steps = range(round(10 * low), round(10 * high) + 1)
    return f"(?:{'|'.join(rf'{step // 10}[.]{step % 10}' for step in steps)})"


def pattern_of(label: str, low: float, high: float, spread=None) -> tuple[str, str]:
    """Return regular expression and replacement for one row of BANDS."""
    if "#" in label:
        before, after = map(either, label.split("#"))
        whole = "|".join(map(str, range(low, high + 1)))
        return rf"({before})(?:{whole})({after})", rf"\g<1>{low} to {high}\2"
    line = rf"(?<!\w)({either(label)}) = {tenths(low, high)}%"
    if spread is not None:
        line += rf"  \(\+/- {tenths(0, spread)}%\)"
    return line, rf"\1 = {low} to {high}%"


PATTERNS = FIXED + [
    pattern_of(label, *band)
    for name in LESSON_NAMES
    for label, band in data_of(name).get("BANDS", {}).items()
]


def sanitize(text: str) -> str:
    """Return a text with each number that lies inside its band as a token."""
    for regex, replacement in PATTERNS:
        text = re.sub(regex, replacement, text)
    return text


def write_for_nbval(path: Path) -> Path:
    """Write the bands in the form that nbval reads; return the path."""
    rows = (f"[{n}]\nregex: {r}\nreplace: {t}\n" for n, (r, t) in enumerate(PATTERNS))
    path.write_text("\n".join(rows), encoding="utf-8")
    return path
