"""Match citations and references: each entry says where it is cited, none is unused.

An entry is a heading `## Name Year` in references.md. A page cites it with a Markdown
link to that heading, such as `[Vaswani et al., 2017](../references.md#vaswani-2017)`.
"""

import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.util import logging

REFERENCES = "references"
ENTRY = re.compile(r".+ \d{4}[a-z]?")
LESSON = re.compile(r"(Lesson \d+)(?!: Exercises$).*")  # named by its number alone

logger = logging.getLogger(__name__)


def entries(env) -> dict[str, tuple[str, int]]:
    """Return, for each entry's anchor, the identifier of its section and its line."""
    slugs = env.metadata[REFERENCES].get("myst_slugs", {})
    return {
        anchor: (identifier, line)
        for anchor, (line, identifier, title) in slugs.items()
        if ENTRY.fullmatch(title)
    }


def citing_pages(env, anchor: str) -> list[str]:
    """Return the pages that cite an entry: lessons by their number, then the others."""
    found = [
        page for page, data in env.metadata.items() if anchor in data.get("cites", ())
    ]
    return sorted(found, key=lambda page: (not page.startswith("lessons/"), page))


def collect(app, doctree) -> None:
    """Note which entries a page cites."""
    if app.env.docname != REFERENCES:
        app.env.metadata[app.env.docname]["cites"] = {
            node.get("reftargetid")
            for node in doctree.findall(pending_xref)
            if node.get("reftarget") == REFERENCES
        }


def warn_unused(app, env) -> None:
    """Warn about each entry that no page cites."""
    for anchor, (_, line) in entries(env).items():
        if not citing_pages(env, anchor):
            cure = f"cite {REFERENCES}.md#{anchor} or remove it"
            where = (REFERENCES, line)
            logger.warning(f"nobody cites this entry: {cure}", location=where)


def add_cited_in(app, doctree, docname) -> None:
    """Add the links back to the citing pages below each entry."""
    if docname != REFERENCES:
        return
    anchors = {place: anchor for anchor, (place, _) in entries(app.env).items()}
    for section in doctree.findall(nodes.section):
        for identifier in anchors.keys() & set(section["ids"]):
            line = nodes.paragraph(classes=["cited-in"])
            for page in citing_pages(app.env, anchors[identifier]):
                uri = app.builder.get_relative_uri(docname, page)
                name = LESSON.sub(r"\1", app.env.titles[page].astext())
                line += nodes.Text(", " if len(line) else "Cited in: ")
                line += nodes.reference("", name, refuri=uri, internal=True)
            section += line.children and [line]


def setup(app) -> dict:
    """Register with Sphinx."""
    app.connect("doctree-read", collect)
    # the page shows what others say, and so is written again whatever has changed
    app.connect("env-updated", lambda app, env: [REFERENCES])
    app.connect("env-check-consistency", warn_unused)
    app.connect("doctree-resolved", add_cited_in)
    return {"version": "1", "env_version": 1, "parallel_read_safe": True}
