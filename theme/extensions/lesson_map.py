"""Show on the first page what each lesson asks, and which lesson stands on which.

A map and a table take the place of the comment `<!-- lesson map -->` in index.md and
of the paragraph after it, which other viewers of the file show. All comes from the
lessons: the title, the last question of the first paragraph, and the lessons that the
paragraph "You need" links.
"""

import re
from collections import defaultdict
from html import escape
from textwrap import wrap

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.util import logging

from theme.extensions.reading import line_of, sentences

MARK = "<!-- lesson map -->"
HEADS = ("lesson", "the question it answers", "stands on")
LESSON = re.compile(r"lessons/(\d+)-(?!exercises$).+")

# Sizes in units of the drawing, which are pixels on a phone: two boxes fill its width.
BOX, GAP, LINE, ARROW, ABREAST = 164, 16, 18, 44, 2
LETTERS = 18  # in a line

DRAWING = """<figure class="lesson-map">
<svg viewBox="0 0 {width} {height}" role="group" aria-label="Map of the lessons">
<marker id="lesson-map-arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8"
markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker>
<g class="lesson-map-arrows">{arrows}</g>{boxes}</svg>
<figcaption>An arrow leads from a lesson to one that stands on it.</figcaption>
</figure>"""
BOXED = """<a href="{href}"><rect x="{x}" y="{y}" width="{width}" height="{height}"
rx="6"/><text>{text}</text></a>"""
ARROWED = """<path d="M{x} {y}L{end_x} {end_y}" marker-end="url(#lesson-map-arrow)"/>"""

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
        "needs": sorted(needs),
    }


def places(lessons: list[dict]) -> dict[str, tuple[int, int]]:
    """Return the row of each lesson's box, and its left edge, by the lesson's number.

    A lesson stands below all that it stands on.
    """
    rows, row_of, found = defaultdict(list), {}, {}
    for lesson in lessons:
        above = [row_of[need] for need in lesson["needs"] if need in row_of]
        row = max(above, default=-1) + 1
        while len(rows[row]) == ABREAST:
            row += 1
        rows[row].append(lesson["number"])
        row_of[lesson["number"]] = row
    for row, numbers in rows.items():
        free = (ABREAST - len(numbers)) * (BOX + GAP) // 2
        for place, number in enumerate(numbers):
            found[number] = row, free + place * (BOX + GAP)
    return found


def draw(lessons: list[dict], address) -> str:
    """Return the map as HTML. `address` gives the link to a page, by its name."""
    where = places(lessons)
    titles = {lesson["number"]: wrap(lesson["title"], LETTERS) for lesson in lessons}
    height = (max(map(len, titles.values())) + 2) * LINE
    step = height + ARROW
    arrows, boxes = [], []
    for lesson in lessons:
        row, left = where[lesson["number"]]
        top, middle = row * step, left + BOX // 2
        for need in where.keys() & set(lesson["needs"]):
            above, start = where[need]
            end = middle + (start - left) // 4  # so that several arrows have room
            ends = {"x": start + BOX // 2, "y": above * step + height, "end_x": end}
            arrows.append(ARROWED.format(end_y=top, **ends))
        text = ""
        lines = [f"Lesson {lesson['number']}", *titles[lesson["number"]]]
        for place, line in enumerate(lines, 1):
            text += f'<tspan x="{middle}" y="{top + LINE * place + 5}">'
            text += f"{escape(line)}</tspan> "
        box = {"x": left + 1, "y": top + 1, "width": BOX - 2, "height": height - 2}
        boxes.append(
            BOXED.format(href=escape(address(lesson["page"])), text=text, **box)
        )
    return DRAWING.format(
        width=ABREAST * (BOX + GAP) - GAP,
        height=(max(where.values())[0] + 1) * step - ARROW,
        arrows="".join(sorted(arrows)),
        boxes="".join(boxes),
    )


def table(lessons: list[dict], address) -> nodes.table:
    """Return a row a lesson: a link, the question, the lessons it stands on."""

    def row(*texts) -> nodes.row:
        return nodes.row(
            "", *(nodes.entry("", nodes.paragraph("", "", t)) for t in texts)
        )

    rows = []
    for lesson in lessons:
        name = f"{lesson['number']} {lesson['title']}"
        link = nodes.reference("", name, refuri=address(lesson["page"]), internal=True)
        needs = nodes.Text(", ".join(lesson["needs"]))
        rows.append(row(link, nodes.Text(lesson["question"]), needs))
    columns = [nodes.colspec(colwidth=width) for width in (30, 50, 20)]
    head = nodes.thead("", row(*map(nodes.Text, HEADS)))
    group = nodes.tgroup("", *columns, head, nodes.tbody("", *rows), cols=len(columns))
    return nodes.table("", group, classes=["colwidths-auto"])


def show(app, doctree, docname) -> None:
    """Put the map and the table into their place."""
    data = sorted(app.env.metadata.items())
    lessons = [found["lesson"] for _, found in data if "lesson" in found]

    def address(page: str) -> str:
        return app.builder.get_relative_uri(app.config.root_doc, page)

    for place in list(doctree.findall(lesson_map)):
        drawing = nodes.raw("", draw(lessons, address), format="html")
        place.replace_self([drawing, table(lessons, address)])


def setup(app) -> dict:
    """Register with Sphinx."""
    app.add_node(lesson_map)
    app.connect("doctree-read", mark_place)
    app.connect("doctree-read", read_lesson)
    # the first page shows what others say, and so is written again whatever has changed
    app.connect("env-updated", lambda app, env: [env.config.root_doc])
    app.connect("doctree-resolved", show)
    return {"version": "1", "env_version": 1, "parallel_read_safe": True}
