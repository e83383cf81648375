"""Set the head of a lesson apart: what you will be able to do, what you need, how long it takes.

In the notebook these are ordinary paragraphs below the title, each with its name in bold. On the
page they stand in one box, which course.css lays out.
"""

from docutils import nodes

# The name that opens a paragraph, and the class of its part of the box. A list belongs to the
# paragraph before it.
PARTS = {
    "You will": "lesson-head-will",
    "How it goes": "lesson-head-will",
    "You need": "lesson-head-need",
    "It takes": "lesson-head-takes",
}


def part_of(node) -> str | None:
    """Return the name in bold that opens a paragraph, if it is one of a lesson's head."""
    if isinstance(node, nodes.paragraph) and (bold := node.next_node(nodes.strong)) is not None:
        name = bold.astext()
        return name if name in PARTS and node.astext().startswith(name) else None
    return None


def gather(app, doctree) -> None:
    """Move the head of the lesson that was just read into a box."""
    section = doctree.next_node(nodes.section)
    if not app.env.docname.startswith("lessons/") or section is None:
        return
    head, place = nodes.container(classes=["lesson-head"]), None
    for node in list(section.children):
        if (name := part_of(node)) is not None:
            place = section.index(node) if place is None else place
            section.remove(node)
            head += nodes.container("", node, classes=[PARTS[name]])
        elif place is not None:
            if not isinstance(node, nodes.bullet_list):
                break
            section.remove(node)
            head.children[-1].append(node)
    if place is not None:
        section.insert(place, head)


def setup(app) -> dict:
    """Register with Sphinx."""
    app.connect("doctree-read", gather)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
