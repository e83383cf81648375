"""Set the head of a lesson apart: what you will do, what you need, how long it takes.

In the notebook these are paragraphs below the title, each with its name in bold.
"""

from docutils import nodes

# What opens a paragraph, and the class of its part of the box. A list belongs to the
# paragraph before it.
PARTS = {
    "You will": "lesson-head-will",
    "How it goes": "lesson-head-will",
    "You need": "lesson-head-need",
    "It takes": "lesson-head-takes",
}


def part_of(node) -> str | None:
    """Return the class of a paragraph that opens as one of a lesson's head does."""
    bold = node.next_node(nodes.strong) if isinstance(node, nodes.paragraph) else None
    if bold is not None and node.astext().startswith(bold.astext()):
        return PARTS.get(bold.astext())
    return None


def gather(app, doctree) -> None:
    """Move the head of the lesson that was just read into a box."""
    section = doctree.next_node(nodes.section)
    if not app.env.docname.startswith("lessons/") or section is None:
        return
    head = nodes.container(classes=["lesson-head"])
    for node in list(section.children):
        if (part := part_of(node)) is not None:
            if not head.children:
                section.insert(section.index(node), head)
            head += nodes.container(classes=[part])
        elif head.children and not isinstance(node, nodes.bullet_list):
            break
        if head.children:
            section.remove(node)
            head[-1] += node


def setup(app) -> dict:
    """Register with Sphinx."""
    app.connect("doctree-read", gather)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
