"""Keep links right where the whole book is one page, from which `make pdf` prints it.

Each page has its own "Exercises" and "Where this goes next". Sphinx puts them on one page as they
are, several with the same anchor, and a link leads to the first of them (sphinx-doc/sphinx#4814).
Here each anchor gets the name of its page in front, and each link the same.
"""

from docutils import nodes
from sphinx.addnodes import start_of_file

PAGE = "#document-"  # Sphinx's anchor of a page, followed by the page's name


def anchor(docname: str, identifier: str) -> str:
    """Return the anchor of something on a page; `docname` is "" for the first page."""
    return f"{docname}/{identifier}" if docname else identifier


def address(refuri: str, docname: str, first: str) -> str:
    """Return where a link leads in the one page.

    Arguments: where it leads by Sphinx, the page it stands on, "" for the first page, and the
    first page's name.
    """
    if refuri.startswith(PAGE):
        target, _, identifier = refuri.removeprefix(PAGE).partition("#")
        if target == first:
            return f"#{identifier}"  # without an identifier this is the top, as it should be
        return f"#{anchor(target, identifier)}" if identifier else refuri
    return f"#{anchor(docname, refuri[1:])}" if refuri.startswith("#") else refuri


def rename(node, docname: str, first: str) -> None:
    """Name the anchors and links of a node and of all below it after their page."""
    if isinstance(node, start_of_file):
        docname = node["docname"]
    if isinstance(node, nodes.Element):
        node["ids"] = [anchor(docname, identifier) for identifier in node["ids"]]
        if "refid" in node:
            node["refid"] = anchor(docname, node["refid"])
        if "refuri" in node:
            node["refuri"] = address(node["refuri"], docname, first)
    for child in node.children:
        rename(child, docname, first)


def make_anchors_unique(app, doctree, docname) -> None:
    """Rename what is on the one page; in other builds there is nothing to do."""
    if app.builder.name == "singlehtml":
        rename(doctree, "", docname)


def setup(app) -> dict:
    """Register with Sphinx."""
    # after the extensions that add links of their own
    app.connect("doctree-resolved", make_anchors_unique, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
