"""Match citations and references: each entry says where it is cited, and none stands unused.

An entry is a heading `## Name Year` in references.md. A page cites it with an ordinary Markdown
link to that heading, such as `[Vaswani et al., 2017](../references.md#vaswani-2017)`. Below each
entry this adds "Cited in: Lesson 46, Notation". An entry nobody cites is a warning; a citation
without entry already is one, since MyST checks every link to a heading.
"""

import math
import re

from docutils import nodes
from sphinx.addnodes import pending_xref, start_of_file
from sphinx.util import logging

REFERENCES = "references"
ENTRY = re.compile(r".+ \d{4}[a-z]?")

logger = logging.getLogger(__name__)


def entries(env) -> dict[str, tuple[str, int]]:
    """Return, for each entry's anchor, the identifier of its section and its line."""
    slugs = env.metadata.get(REFERENCES, {}).get("myst_slugs", {})
    return {
        anchor: (identifier, line)
        for anchor, (line, identifier, title) in slugs.items()
        if ENTRY.fullmatch(title)
    }


def label(env, docname: str) -> str:
    """Return a page's name in a list of pages: "Lesson 46", "Lesson 46: Exercises", a title."""
    title = env.titles[docname].astext()
    lesson = re.match(r"Lesson \d+(: Exercises$)?", title)
    return lesson[0] if lesson else title


def place(docname: str) -> tuple[float, str]:
    """Return what puts a page into its place among others: its lesson's number, and its name."""
    number = re.match(r"lessons/(\d+)-", docname)
    return (int(number[1]) if number else math.inf), docname


def citing_pages(env) -> dict[str, list[tuple[str, str]]]:
    """Return, for each entry's anchor, the docname and label of the pages citing it.

    Lessons come first, by their number, then the other pages by name.
    """
    found = {anchor: [] for anchor in entries(env)}
    for doc in sorted(env.course_citations, key=place):
        for anchor in env.course_citations[doc]:
            if anchor in found:
                found[anchor].append((doc, label(env, doc)))
    return found


def prepare(app) -> None:
    """Make the store: the anchors each page cites, kept between builds."""
    if not hasattr(app.env, "course_citations"):
        app.env.course_citations = {}
        app.env.course_citations_shown = {}


def forget(app, env, docname) -> None:
    """Drop what a page cited, since it is read again or gone."""
    env.course_citations.pop(docname, None)


def merge(app, env, docnames, other) -> None:
    """Take over what a parallel reader found."""
    found = {doc: other.course_citations[doc] for doc in docnames if doc in other.course_citations}
    env.course_citations.update(found)


def collect(app, doctree) -> None:
    """Note which entries a page cites."""
    docname = app.env.docname
    if docname == REFERENCES:
        return
    cited = {
        node["reftargetid"]
        for node in doctree.findall(pending_xref)
        if node.get("reftarget") == REFERENCES and node.get("reftargetid")
    }
    if cited:
        app.env.course_citations[docname] = cited


def rewrite_references(app, env) -> list[str]:
    """Have the references page written again when what it must show has changed."""
    shown = citing_pages(env)
    if shown == env.course_citations_shown:
        return []
    env.course_citations_shown = shown
    return [REFERENCES] if REFERENCES in env.found_docs else []


def warn_unused(app, env) -> None:
    """Warn about each entry that no page cites."""
    for anchor, pages in citing_pages(env).items():
        if not pages:
            message = f"nobody cites this entry: cite {REFERENCES}.md#{anchor} or remove it"
            _, line = entries(env)[anchor]
            logger.warning(message, location=(REFERENCES, line), type="course", subtype="citation")


def add_cited_in(app, doctree, docname) -> None:
    """Add the links back to the citing pages below each entry."""
    if docname != REFERENCES:
        # the book as one page has the references as a part
        parts = [part for part in doctree.findall(start_of_file) if part["docname"] == REFERENCES]
        for part in parts:
            add_cited_in(app, part, REFERENCES)
        return
    anchors = {identifier: anchor for anchor, (identifier, _) in entries(app.env).items()}
    pages = citing_pages(app.env)
    for section in doctree.findall(nodes.section):
        citing = [page for i in section["ids"] if i in anchors for page in pages[anchors[i]]]
        if not citing:
            continue
        line = nodes.paragraph("", "Cited in: ", classes=["cited-in"])
        for number, (target, name) in enumerate(citing):
            if number:
                line += nodes.Text(", ")
            address = app.builder.get_relative_uri(docname, target)
            line += nodes.reference("", name, refuri=address, internal=True)
        section += line


def setup(app) -> dict:
    """Register with Sphinx."""
    app.connect("builder-inited", prepare)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("doctree-read", collect)
    app.connect("env-updated", rewrite_references)
    app.connect("env-check-consistency", warn_unused)
    app.connect("doctree-resolved", add_cited_in)
    return {
        "version": "1",
        "env_version": 1,
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
