"""What other extensions ask of a page: where something is, and what it says."""

import re

from docutils import nodes

FORMULA = "\0"
ASIDE = re.compile(r"\s*\([^()]*\)")
END = re.compile(r"(?<=[.?!])\s+(?=\W?[A-Z])")


def line_of(node) -> int | None:
    """Return the line of a node, or of the nearest one around it that has a line."""
    while node is not None and not node.line:  # an image in a paragraph has line 0
        node = node.parent
    return node.line if node is not None else None


def sentences(paragraph) -> list[str]:
    """Return a paragraph's sentences without asides, with FORMULA for a formula."""
    text = ""
    for node in paragraph.findall():
        if isinstance(node, nodes.math):
            text += FORMULA
        elif isinstance(node, nodes.Text):
            text += "" if isinstance(node.parent, nodes.math | nodes.raw) else node
    return END.split(ASIDE.sub("", " ".join(text.split())))
