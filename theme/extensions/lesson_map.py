"""Draw the first page's table of lessons as a map: which lesson stands on which.

The table's last column, "stands on", holds the numbers of other lessons. The map stands before the
table, and links each lesson. What a lesson stands on is said in two places, here and in the links
of its paragraph "You need"; if they differ, the build fails.
"""

import re
from html import escape

from docutils import nodes
from places import line_of
from sphinx.addnodes import pending_xref
from sphinx.util import logging

COLUMN = "stands on"
LESSON = re.compile(r"lessons/(\d+)-(?!exercises$).+")

# Sizes in units of the drawing, which are pixels on a phone: two boxes fill its width.
BOX, GAP, LINE, MARGIN, ABREAST = 164, 16, 18, 9, 2
ARROW, LETTERS = 44, 18  # height between two rows, letters in a line

logger = logging.getLogger(__name__)


class lesson_map(nodes.General, nodes.Element):
    """The map; its attribute `lessons` holds a dictionary for each row of the table."""


def lessons_of(table) -> list[dict]:
    """Return the table's rows as {docname, number, title, needs, line}; [] for other tables.

    The number is as in the table, and `needs` are the numbers it names.
    """
    heads = [entry.astext() for entry in table.next_node(nodes.thead).findall(nodes.entry)]
    if heads[-1:] != [COLUMN]:
        return []
    found = []
    for row in table.next_node(nodes.tbody).findall(nodes.row):
        first, *_, last = row.children
        link = first.next_node(pending_xref)
        number, _, title = first.astext().partition(" ")
        needs = re.findall(r"\d+", last.astext())
        target = link["reftarget"] if link is not None else ""
        found.append(
            dict(docname=target, number=number, title=title, needs=needs, line=line_of(first))
        )
    return found


def read_page(app, doctree) -> None:
    """Put the map before its table, and note what each lesson says that it needs."""
    name = app.env.docname
    if name == app.config.root_doc:
        app.env.course_map = []
        for table in list(doctree.findall(nodes.table)):
            if lessons := lessons_of(table):
                app.env.course_map = lessons
                place = table.parent.index(table)
                table.parent.insert(place, lesson_map("", lessons=lessons))
    if LESSON.fullmatch(name):
        app.env.course_needs[name] = [
            link["reftarget"]
            for paragraph in doctree.findall(nodes.paragraph)
            if paragraph.astext().startswith("You need")
            for link in paragraph.findall(pending_xref)
            if LESSON.fullmatch(link.get("reftarget", ""))
        ]


def prepare(app) -> None:
    """Make the stores, kept between builds: what lessons need, and the rows of the table."""
    if not hasattr(app.env, "course_needs"):
        app.env.course_needs, app.env.course_map = {}, []


def forget(app, env, docname) -> None:
    """Drop what a page said, since it is read again or gone."""
    env.course_needs.pop(docname, None)


def merge(app, env, docnames, other) -> None:
    """Take over what another process has read."""
    for name in docnames:
        if name in other.course_needs:
            env.course_needs[name] = other.course_needs[name]
        if name == app.config.root_doc:
            env.course_map = other.course_map


def check(app, env) -> None:
    """Warn where the table and a lesson's "You need" say different things."""
    above = set()
    for lesson in env.course_map:
        where = (app.config.root_doc, lesson["line"])

        def warn(text: str, where=where) -> None:
            logger.warning(text, location=where, type="course", subtype="map")

        number, needs = lesson["number"], set(lesson["needs"])
        linked = env.course_needs.get(lesson["docname"], [])
        said = {LESSON.fullmatch(docname)[1] for docname in linked}
        if needs != said:
            warn(
                f"the table says that Lesson {number} stands on {in_words(needs)}, and the "
                f"lesson's 'You need' links {in_words(said)}: make them the same"
            )
        if missing := needs - above:
            warn(f"Lesson {number} stands on {in_words(missing)}, not in the table above it")
        above.add(number)


def in_words(numbers) -> str:
    """Return numbers of lessons as "37 and 45", and "nothing" for none."""
    *most, last = sorted(numbers) or ["nothing"]
    return f"{', '.join(most)} and {last}" if most else last


def places(lessons: list[dict]) -> dict[str, tuple[int, int]]:
    """Return the row of each lesson's box, and its left edge, by the lesson's number.

    A lesson stands below all that it stands on.
    """
    depth = {}
    for lesson in lessons:
        above = [depth[number] for number in lesson["needs"] if number in depth]
        depth[lesson["number"]] = max(above, default=-1) + 1
    found, row = {}, 0
    for level in range(max(depth.values(), default=-1) + 1):
        numbers = [number for number, own in depth.items() if own == level]
        for start in range(0, len(numbers), ABREAST):
            side_by_side = numbers[start : start + ABREAST]
            free = (ABREAST - len(side_by_side)) * (BOX + GAP) // 2
            for place, number in enumerate(side_by_side):
                found[number] = row, free + place * (BOX + GAP)
            row += 1
    return found


def lines(title: str) -> list[str]:
    """Return a title in lines that fit into a box."""
    found = [""]
    for word in title.split():
        if found[-1] and len(found[-1]) + 1 + len(word) > LETTERS:
            found.append("")
        found[-1] = f"{found[-1]} {word}".strip()
    return found


def draw(lessons: list[dict], address) -> str:
    """Return the map as SVG. `address` gives the link to a page, by its name."""
    where = places(lessons)
    texts = {lesson["number"]: lines(lesson["title"]) for lesson in lessons}
    height = (max(map(len, texts.values())) + 1) * LINE + 2 * MARGIN
    step = height + ARROW
    arrows, boxes = [], []
    for lesson in lessons:
        number = lesson["number"]
        row, left = where[number]
        top, middle = row * step, left + BOX // 2
        sources = sorted((where[need][1], need) for need in lesson["needs"] if need in where)
        for place, (source, need) in enumerate(sources, 1):
            end = left + BOX * place // (len(sources) + 1)
            start, bottom = source + BOX // 2, where[need][0] * step + height
            bend = (top - bottom) // 2
            arrows.append(
                f'<path d="M{start} {bottom}C{start} {bottom + bend} {end} {top - bend - 6} '
                f'{end} {top - 6}" marker-end="url(#lesson-map-arrow)"/>'
            )
        shown = [f"Lesson {number}", *texts[number]]
        stands = f", stands on {in_words(lesson['needs'])}" if lesson["needs"] else ""
        name = escape(f"Lesson {number} {lesson['title']}{stands}")
        text = "".join(
            f'<tspan x="{middle}" y="{top + MARGIN + LINE * place - 4}">{escape(line)}</tspan> '
            for place, line in enumerate(shown, 1)
        )
        boxes.append(
            f'<a href="{escape(address(lesson["docname"]))}" aria-label="{name}">'
            f'<rect x="{left + 1}" y="{top + 1}" width="{BOX - 2}" height="{height - 2}" rx="6"/>'
            f"<text>{text}</text></a>"
        )
    rows = max(row for row, _ in where.values()) + 1
    return (
        f'<svg viewBox="0 0 {ABREAST * (BOX + GAP) - GAP} {rows * step - ARROW}" role="group" '
        'aria-label="Map of the lessons">'
        '<marker id="lesson-map-arrow" viewBox="0 0 8 8" refX="2" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker>'
        f'<g class="lesson-map-arrows">{"".join(arrows)}</g>{"".join(boxes)}</svg>'
    )


def visit_html(translator, node) -> None:
    """Write the map as a figure."""
    builder = translator.builder
    root = builder.current_docname
    drawing = draw(node["lessons"], lambda name: builder.get_relative_uri(root, name))
    translator.body.append(
        f'<figure class="lesson-map">{drawing}'
        "<figcaption>An arrow leads from a lesson to one that stands on it.</figcaption></figure>"
    )
    raise nodes.SkipNode


def skip(translator, node) -> None:
    """Write nothing in other formats, which have the table."""
    raise nodes.SkipNode


def setup(app) -> dict:
    """Register with Sphinx."""
    other = (skip, None)
    app.add_node(lesson_map, html=(visit_html, None), latex=other, text=other)
    app.connect("builder-inited", prepare)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("doctree-read", read_page)
    app.connect("env-check-consistency", check)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
