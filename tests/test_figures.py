"""Lines and marks of figures stand out from the paper, in colour and without."""

import ast

import nbformat
import pytest
from helpers_book import ROOT
from matplotlib.colors import is_color_like, to_rgb

LEAST = 3.0  # of graphics to what they lie on: WCAG 2.2, success criterion 1.4.11
# Colours that may be pale, since they carry nothing by themselves, and why.
PALE = {
    ("45-attention", "lightgrey"): "hatches cells that also hold the text of minus infinity",
    ("45-attention", "white"): "text on dark cells",
}


def contrast(colour: str) -> float:
    """Return the contrast of a colour of matplotlib to white paper (WCAG 2.2, definition)."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(colour)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return 1.05 / (luminance + 0.05)


LINES = {"plot", "step", "errorbar", "bar", "axhline", "axvline"}  # coloured by turns if not told
TURNS = "its colours by turns"  # of which matplotlib's second and third are pale


def colours(source: str) -> set:
    """Return what matplotlib would take for a colour among the values in a cell that draws."""
    if "plt." not in source:
        return set()
    found, tree = set(), ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {node.value} if is_color_like(node.value) else set()
        if isinstance(node, ast.keyword) and "color" in (node.arg or "") + "color" * (
            node.arg == "c"
        ):
            if isinstance(node.value, (ast.Tuple, ast.List)):
                found.add(ast.literal_eval(node.value))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in LINES:
            if not any("color" in (keyword.arg or "") for keyword in node.keywords):
                found.add(TURNS)
    return found


def pale(source: str) -> set[str]:
    """Return the colours of a cell that stand out too little."""
    return {colour for colour in colours(source) if colour == TURNS or contrast(colour) < LEAST}


def cells():
    """Give each figure's cell as (name of the notebook, source)."""
    for path in sorted((ROOT / "lessons").glob("*.ipynb")):
        for cell in nbformat.read(path, 4).cells:
            if cell.cell_type == "code":
                yield path.stem, cell.source


def test_colours_of_figures_stand_out():
    found = {(name, colour) for name, source in cells() for colour in pale(source)}
    assert found == set(PALE)


def test_figures_name_colours():
    """So that the test above has something to look at."""
    assert len([source for _, source in cells() if colours(source) - {"white"}]) >= 5


@pytest.mark.parametrize("colour", ["tab:orange", "yellow", "0.7", "C1", "#bbb", (1, 0.9, 0.5)])
def test_planted_pale_colour_is_found(colour):
    assert pale(f"plt.plot(x, color={colour!r})") == {colour}
    assert pale(f"print({colour!r})") == set()
    assert not pale(
        "plt.plot(x, 'o', c='0.55', color='black', label='white noise', mark='tab:red')"
    )


def test_planted_line_without_a_colour_is_found():
    assert pale("plt.plot(x, y)") == {TURNS}
    assert pale("fig, ax = plt.subplots()\nax.bar(x, y, color='black')") == set()
