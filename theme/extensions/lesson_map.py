"""Show on the first page what each lesson asks, and which lesson stands on which.

A map and a table take the place of the comment `<!-- lesson map -->` in index.md and
of the paragraph after it. All comes from the lessons: the title, the last question of
the first paragraph, and the lessons that the paragraph "You need" links.
"""

import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.util import logging

from theme.extensions.reading import line_of, sentences

MARK = "<!-- lesson map -->"
LESSON = re.compile(r"lessons/(\d+)-(?!exercises$).+")

logger = logging.getLogger(__name__)


class lesson_map(nodes.General, nodes.Element):
    """The place of the map and the table, until all lessons are read."""


def question(paragraph) -> str:
    """Return the last question of a paragraph, or its first sentence without one."""
    found = sentences(paragraph)
    asked = [sentence for sentence in found if sentence.endswith("?")]
    text = (asked or found[:1])[-1].removeprefix("So ")
    return text[:1].upper() + text[1:]


def mark_place(app, doctree) -> None:
    """Replace the comment on the first page, and the paragraph after it."""
    for comment in list(doctree.findall(nodes.raw)):
        if comment.astext().strip() == MARK:
            paragraph = comment.next_node(siblings=True, descend=False)
            paragraph.parent.remove(paragraph)
            comment.replace_self(lesson_map())


def read_lesson(app, doctree) -> None:
    """Keep what a lesson says of itself, and warn where it needs a later one."""
    match = LESSON.fullmatch(app.env.docname)
    title, opening = doctree.next_node(nodes.title), doctree.next_node(nodes.paragraph)
    if not match or title is None or opening is None:
        return
    needs = []
    for paragraph in doctree.findall(nodes.paragraph):
        if paragraph.astext().startswith("You need"):
            found = [link["reftarget"] for link in paragraph.findall(pending_xref)]
            needs += [LESSON.fullmatch(name)[1] for name in found if LESSON.match(name)]
            if max(needs, default="") >= match[1]:
                logger.warning(
                    f"'You need' links Lesson {max(needs)}, which does not come before",
                    location=(app.env.docname, line_of(paragraph)),
                )
    app.env.metadata[app.env.docname]["lesson"] = {
        "page": app.env.docname,
        "number": match[1],
        "title": title.astext().partition(": ")[2],
        "question": question(opening),
        "needs": sorted(set(needs)),
    }


def show(app, doctree, docname) -> None:
    """Put the map and the table into their place, as lesson-map.html draws them."""
    if docname != app.config.root_doc or app.builder.format != "html":
        return
    data = sorted(app.env.metadata.items())
    lessons = [page["lesson"] for _, page in data if "lesson" in page]
    numbers = [lesson["number"] for lesson in lessons]
    titles, arcs = [0], [0]
    for row, lesson in enumerate(lessons):
        lesson["href"] = app.builder.get_relative_uri(docname, lesson["page"])
        above = [numbers.index(need) for need in lesson["needs"] if need in numbers]
        lesson["above"] = [row - place for place in above]
        arcs += lesson["above"]
        titles.append(len(lesson["title"]))
    context = {"lessons": lessons, "longest": max(arcs), "letters": max(titles)}
    for place in list(doctree.findall(lesson_map)):
        html = app.builder.templates.render("lesson-map.html", context)
        place.replace_self(nodes.raw("", html, format="html"))


def setup(app) -> dict:
    """Register with Sphinx."""
    app.add_node(lesson_map)
    app.connect("doctree-read", mark_place)
    app.connect("doctree-read", read_lesson)
    # the first page shows what others say, and so is written again whatever has changed
    app.connect("env-updated", lambda app, env: [env.config.root_doc])
    app.connect("doctree-resolved", show)
    return {"version": "1", "env_version": 1, "parallel_read_safe": True}
