"""Say on each page where its PDF is, and keep links right where the book is one page.

`python -m tools pdf` prints the files, sets `course_pdf`, and builds the whole book as
one page to print it. Sphinx puts pages together as they are, several with the anchor
"exercises", and a link leads to the first (sphinx-doc/sphinx#4814). Here each anchor
gets the name of its page in front, and each link the same.
"""

from pathlib import PurePosixPath

from docutils import nodes
from sphinx.addnodes import start_of_file

PAGE = "#document-"  # Sphinx's anchor of a page, followed by the page's name


def page_file(docname: str) -> str:
    """Return the PDF of a lesson or its exercises, inside the site; "" for others."""
    name = PurePosixPath(docname).name
    return f"pdf/{name}.pdf" if docname.startswith("lessons/") else ""


def book_file(title: str) -> str:
    """Return the PDF of the whole book, inside the site."""
    return f"pdf/{nodes.make_id(title)}.pdf"


def add_links(app, pagename, templatename, context, doctree) -> None:
    """Put the links into the menu of downloads at the top."""
    if not app.config.course_pdf:
        return
    book = book_file(app.config.html_title)
    files = {"this page": page_file(pagename), "the whole book": book}
    for menu in context.get("header_buttons", []):
        if menu.get("label") == "download-buttons":
            if page_file(pagename):  # printed already: no button to do that
                labels = [button["label"] for button in menu["buttons"]]
                del menu["buttons"][labels.index("download-pdf-button")]
            menu["buttons"] += [
                {
                    "type": "link",
                    "url": context["pathto"](file, 1),
                    "text": f"PDF of {text}",
                    "tooltip": f"Download a PDF of {text}",
                    "icon": "fas fa-file-pdf",
                    "label": "download-file-button",
                }
                for text, file in files.items()
                if file
            ]


def anchor(docname: str, identifier: str) -> str:
    """Return the anchor of something on a page; `docname` is "" for the first page."""
    return f"{docname}/{identifier}" if docname and identifier else identifier


def rename(node, docname: str, first: str) -> None:
    """Name the anchors and links of a node and of all below it after their page.

    Arguments: the node, its page, "" for the first page, and the first page's name.
    """
    docname = node["docname"] if isinstance(node, start_of_file) else docname
    node["ids"] = [anchor(docname, identifier) for identifier in node["ids"]]
    if "refid" in node:
        node["refid"] = anchor(docname, node["refid"])
    uri = node.get("refuri", "")
    if uri.startswith(PAGE):
        target, _, identifier = uri.removeprefix(PAGE).partition("#")
        place = anchor("" if target == first else target, identifier)
        node["refuri"] = f"#{place}" if identifier or target == first else uri
    elif uri.startswith("#"):
        node["refuri"] = f"#{anchor(docname, uri[1:])}"
    for child in node.children:
        if isinstance(child, nodes.Element):
            rename(child, docname, first)


def make_anchors_unique(app, doctree, docname) -> None:
    """Rename what is on the one page; in other builds there is nothing to do."""
    if app.builder.name == "singlehtml":
        rename(doctree, "", docname)


def setup(app) -> dict:
    """Register with Sphinx."""
    app.add_config_value("course_pdf", False, "html", [bool])
    # after the theme has made its buttons, at 501
    app.connect("html-page-context", add_links, priority=510)
    # after the extensions that add links of their own
    app.connect("doctree-resolved", make_anchors_unique, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
