"""Say on each page where its PDF is, and the whole book's.

Only where there will be some: `make pdf` sets `course_pdf`, and prints the files this names. A
plain `make book` needs no browser, and its pages keep the theme's button that prints them.
"""

from pathlib import PurePosixPath

from docutils.nodes import make_id

LESSONS = "lessons/"
ICON = "fas fa-file-pdf"


def page_file(docname: str) -> str:
    """Return the PDF of a lesson or its exercises, as a path inside the site; "" for other pages."""
    return f"pdf/{PurePosixPath(docname).name}.pdf" if docname.startswith(LESSONS) else ""


def book_file(title: str) -> str:
    """Return the PDF of the whole book, as a path inside the site."""
    return f"pdf/{make_id(title)}.pdf"


def add_links(app, pagename, templatename, context, doctree) -> None:
    """Give the footer its links, and put the same into the menu of downloads at the top."""
    if not app.config.course_pdf:
        return
    page, book = page_file(pagename), book_file(app.config.html_title)
    links = [("pdf-page", page, ".pdf", "Download this page as PDF")] if page else []
    links.append(("pdf-book", book, "Whole book, .pdf", "Download the whole book as PDF"))
    context["course_pdf"] = [(context["pathto"](file, 1), label) for label, file, *_ in links]
    for menu in context.get("header_buttons", []):
        if menu.get("label") != "download-buttons":
            continue
        if page:  # printed already: no need for the button that prints
            others = [b for b in menu["buttons"] if b["label"] != "download-pdf-button"]
            menu["buttons"] = others
        menu["buttons"] += [
            {
                "type": "link",
                "url": context["pathto"](file, 1),
                "text": text,
                "tooltip": tooltip,
                "icon": ICON,
                "label": f"download-{label}-button",
            }
            for label, file, text, tooltip in links
        ]


def setup(app) -> dict:
    """Register with Sphinx."""
    app.add_config_value("course_pdf", False, "html", [bool])
    # after the theme has made its buttons, at 501
    app.connect("html-page-context", add_links, priority=510)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
