"""Say on each page where its PDF is: `python -m tools pdf` sets `course_pdf`."""

from pathlib import PurePosixPath

from docutils import nodes


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
    own, book = page_file(pagename), book_file(app.config.html_title)
    files = {"this page": own, "the whole book": book}
    for menu in context.get("header_buttons", []):
        if menu.get("label") == "download-buttons":
            if own:  # printed already: no button to do that
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


def setup(app) -> dict:
    """Register with Sphinx."""
    app.add_config_value("course_pdf", False, "html", [bool])
    # after the theme has made its buttons, at 501
    app.connect("html-page-context", add_links, priority=510)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
