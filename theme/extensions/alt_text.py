"""Warn about every image without alternative text, for a reader who cannot see it.

In Markdown the text stands in the brackets: `![what the figure shows](figure.png)`. For a figure
that a cell draws it stands in the cell's metadata, as `mystnb.image.alt`; without it the page
would read out a file name.
"""

import re

from docutils import nodes
from places import line_of
from sphinx.util import logging

RAW_IMAGE = re.compile(r"<img\b[^>]*>", re.IGNORECASE)
RAW_ALT = re.compile(r"\balt\s*=\s*(\"\s*[^\"\s]|'\s*[^'\s])", re.IGNORECASE)

logger = logging.getLogger(__name__)


def drawn_by_cell(node) -> bool:
    """Say whether a node is the output of a notebook's cell."""
    while node is not None:
        if isinstance(node, nodes.Element) and node.get("nb_element") == "mime_bundle":
            return True
        node = node.parent
    return False


def check(app, doctree) -> None:
    """Look at every image of a page that was just read."""
    bad = [node for node in doctree.findall(nodes.image) if not node.get("alt", "").strip()]
    for node in doctree.findall(nodes.raw):
        if any(not RAW_ALT.search(image) for image in RAW_IMAGE.findall(node.astext())):
            bad.append(node)
    for node in bad:
        where = "mystnb.image.alt in the cell's metadata" if drawn_by_cell(node) else "its alt text"
        logger.warning(
            f"image without alternative text: say what it shows, in {where}",
            location=(app.env.docname, line_of(node)),
            type="course",
            subtype="alt",
        )


def setup(app) -> dict:
    """Register with Sphinx."""
    app.connect("doctree-read", check)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
