"""Load an image when a reader comes near it, and keep its place free until then.

Figures are most of the weight of a lesson. With width and height in the page nothing moves when
they arrive, so a link to a heading still leads there.
"""

from pathlib import Path

from docutils import nodes
from sphinx.util.images import get_image_size
from sphinx.writers.html5 import HTML5Translator


def visit_html(translator, node) -> None:
    """Write an image as Sphinx does, and add what the browser needs to wait with it."""
    node["loading"] = "lazy"
    size = get_image_size(Path(translator.builder.srcdir) / node["uri"])
    HTML5Translator.visit_image(translator, node)
    if size:
        image = f'<img width="{size[0]}" height="{size[1]}" '
        translator.body[-1] = translator.body[-1].replace("<img ", image, 1)


def depart_html(translator, node) -> None:
    """Add nothing after an image."""


def setup(app) -> dict:
    """Register with Sphinx."""
    app.add_node(nodes.image, override=True, html=(visit_html, depart_html))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
