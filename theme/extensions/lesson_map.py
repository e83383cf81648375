"""Show on the first page what each lesson asks, and which lesson stands on which.

A map and a table take the place of the comment `<!-- lesson map -->` in index.md and
of the paragraph after it, which other viewers of the file show. All comes from the
lessons: the title, the last question of the first paragraph, and the lessons that the
paragraph "You need" links.
"""

import re
from html import escape
from textwrap import wrap

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.util import logging

from theme.extensions.reading import line_of, sentences

MARK = "<!-- lesson map -->"
HEADS = ("lesson", "the question it answers", "stands on")
CAPTION = "An arrow leads from a lesson to one that stands on it."
LESSON = re.compile(r"lessons/(\d+)-(?!exercises$).+")

# Sizes in units of the drawing, which are pixels on a phone: two boxes fill its width.
BOX, GAP, LINE, MARGIN, ABREAST = 164, 16, 18, 9, 2
ARROW, LETTERS = 44, 18  # height between two rows, letters in a line

DRAWING = """<figure class="lesson-map">
<svg viewBox="0 0 {width} {height}" role="group" aria-label="Map of the lessons">
<marker id="lesson-map-arrow" viewBox="0 0 8 8" refX="2" refY="4" markerWidth="8"
markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker>
<g class="lesson-map-arrows">{arrows}</g>{boxes}</svg>
<figcaption>{caption}</figcaption></figure>"""
BOXED = """<a href="{href}" aria-label="{name}"><rect x="{x}" y="{y}" width="{width}"
height="{height}" rx="6"/><text>{text}</text></a>"""

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
                    type="course",
                    subtype="map",
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
    depth = {}
    for lesson in lessons:
        above = [depth[number] for number in lesson["needs"] if number in depth]
        depth[lesson["number"]] = max(above, default=-1) + 1
    found, row = {}, 0
    for level in sorted(set(depth.values())):
        numbers = [number for number, own in depth.items() if own == level]
        for start in range(0, len(numbers), ABREAST):
            abreast = numbers[start : start + ABREAST]
            free = (ABREAST - len(abreast)) * (BOX + GAP) // 2
            for place, number in enumerate(abreast):
                found[number] = row, free + place * (BOX + GAP)
            row += 1
    return found


def draw(lessons: list[dict], address) -> str:
    """Return the map as HTML. `address` gives the link to a page, by its name."""
    where = places(lessons)
    titles = [
        wrap(lesson["title"], LETTERS, break_long_words=False) for lesson in lessons
    ]
    height = (max(map(len, titles)) + 1) * LINE + 2 * MARGIN
    step = height + ARROW
    arrows, boxes = [], []
    for lesson, title in zip(lessons, titles, strict=True):
        row, left = where[lesson["number"]]
        top, middle = row * step, left + BOX // 2
        sources = sorted(where[need][::-1] for need in lesson["needs"] if need in where)
        for place, (source, above) in enumerate(sources, 1):
            start, bottom = source + BOX // 2, above * step + height
            end, bend = left + BOX * place // (len(sources) + 1), (top - bottom) // 2
            curve = f"{start} {bottom + bend} {end} {top - bend - 6} {end} {top - 6}"
            path = f"M{start} {bottom}C{curve}"
            arrows.append(f'<path d="{path}" marker-end="url(#lesson-map-arrow)"/>')
        name = f"Lesson {lesson['number']} {lesson['title']}"
        if lesson["needs"]:
            name += f", stands on {' and '.join(lesson['needs'])}"
        text = ""
        for place, line in enumerate([f"Lesson {lesson['number']}", *title], 1):
            y = top + MARGIN + LINE * place - 4
            text += f'<tspan x="{middle}" y="{y}">{escape(line)}</tspan> '
        box = {"x": left + 1, "y": top + 1, "width": BOX - 2, "height": height - 2}
        href = escape(address(lesson["page"]))
        boxes.append(BOXED.format(href=href, name=escape(name), text=text, **box))
    return DRAWING.format(
        width=ABREAST * (BOX + GAP) - GAP,
        height=(max(where.values())[0] + 1) * step - ARROW,
        arrows="".join(arrows),
        boxes="".join(boxes),
        caption=CAPTION,
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
