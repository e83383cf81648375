"""Where on a page something stands, for the messages of the other extensions."""


def line_of(node) -> int | None:
    """Return the line of a node, or of the nearest one around it that has a line.

    An image inside a paragraph has line 0, the paragraph the true one.
    """
    while node is not None and not node.line:
        node = node.parent
    return node.line if node is not None else None
