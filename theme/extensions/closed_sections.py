"""Close hints, worked answers and titled cells, until a reader opens them.

A section "Hint" or "Worked answer" becomes an HTML `details` element, and leaves the
page's table of contents. A closed code cell bears the title of its first line,
`# @title Check exercise 1`.
"""

import re

from docutils import nodes

CLOSED = {"Hint", "Worked answer"}
TITLE = re.compile(r"# @title (.+)")


class closed_section(nodes.General, nodes.Element):
    """What is under a heading, closed; `summary` holds the heading's text."""


def close(app, doctree) -> None:
    """Replace the sections to close on a new page, and name its closed cells."""
    for section in list(doctree.findall(nodes.section)):
        title = section.next_node(nodes.title)
        if title is not None and title.astext() in CLOSED:
            closed = closed_section("", ids=section["ids"], summary=title.astext())
            closed += [child for child in section.children if child is not title]
            section.replace_self(closed)
    for cell in doctree.findall(nodes.container):
        code = cell.next_node(nodes.literal_block) if "hide_mode" in cell else None
        if code is not None and (title := TITLE.match(code.astext())):
            cell["prompt_show"] = cell["prompt_hide"] = title[1]


def visit_html(self, node) -> None:
    """Open the element, with the heading's text as what one presses."""
    self.body.append(self.starttag(node, "details", CLASS="closed-section"))
    self.body.append(f"<summary>{self.encode(node['summary'])}</summary>\n")


def depart_html(self, node) -> None:
    """Close the element."""
    self.body.append("</details>\n")


def name_cells(app, pagename, templatename, context, doctree) -> None:
    """Let a closed cell's title be its name: MyST-NB names each alike."""
    label = ' aria-label="Toggle hidden content"'
    context["body"] = context.get("body", "").replace(label, "")


def setup(app) -> dict:
    """Register with Sphinx."""
    app.add_node(closed_section, html=(visit_html, depart_html))
    app.connect("html-page-context", name_cells)
    # before Sphinx collects the page's table of contents, which it does at priority 500
    app.connect("doctree-read", close, priority=100)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
