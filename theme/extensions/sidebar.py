"""Keep the list of pages beside each page short, however long the book grows.

The rule: the list holds the `LIMIT` lines nearest to the reader's page, in the order of the book,
and what these stand under. A line is a page or the caption of a part. So a book of no more lines
is shown whole, as the theme shows it. In a larger one a page `all-pages.html` holds the whole list,
and links lead there: one at the top, and one at each end where lines are left out. (A smaller book
has no such page, since the list beside every page is whole.)

The theme would write out the whole book again for each page: with twice the pages four times the
work, and ever heavier pages. Here the order of the book is found once, and each page costs the
same. When a title or the order changes, the pages that show it are written again. How the lines
look is said in the templates sbt-sidebar-nav.html and all-pages.html.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from html import escape

from docutils import nodes
from sphinx.addnodes import toctree
from sphinx.environment.adapters.toctree import global_toctree_for_doc

LIMIT = 64  # three parts of ten lessons, each with its exercises, are 63 lines
ALL_PAGES = "all-pages"


@dataclass(frozen=True)
class Line:
    """A page, or the caption of a part.

    ref: the page's docname, an address elsewhere, or "" for a caption. name: what the toc calls
    it, if anything. title: the page's own title, with all its markup. depth: 0 for captions, 1 for
    the pages of a part. parent: the place of the line it stands under, which moves when a line is
    added far away, and is no change by itself.
    """

    ref: str
    name: str | None
    title: str
    depth: int
    parent: int | None = field(compare=False)


def lines_of(env) -> list[Line]:
    """Return the lines of the whole book in their order; the first page is not among them."""
    lines = []

    def add(docname: str, depth: int, parent: int | None) -> None:
        for tree in env.tocs[docname].findall(toctree):
            if depth == 1:
                parent = len(lines)
                lines.append(Line("", tree["caption"], "", 0, None))
            for name, ref in tree["entries"]:
                lines.append(Line(ref, name, str(env.titles.get(ref, "")), depth, parent))
                if ref in env.tocs:
                    add(ref, depth + 1, len(lines) - 1)

    add(env.config.root_doc, 1, None)
    return lines


def places_of(lines: list[Line]) -> dict[str, int]:
    """Return the place of each page among the lines."""
    return {line.ref: place for place, line in enumerate(lines) if line.ref}


def window(count: int, place: int | None) -> range:
    """Return the places of the `LIMIT` lines of `count` that are nearest to a place.

    Without a place, which the first page and the search have not, they are the first.
    """
    start = max(0, min((place or 0) - LIMIT // 2, count - LIMIT))
    return range(start, min(start + LIMIT, count))


def above(lines: list[Line], place: int | None) -> list[int]:
    """Return the places of what a line stands under, the outermost first."""
    parent = None if place is None else lines[place].parent
    return [] if parent is None else [*above(lines, parent), parent]


def changed(env, old: list[Line], new: list[Line]) -> list[str]:
    """Return the pages beside which other lines stand now than before."""

    def listed(lines: list[Line], place: int | None) -> tuple[bool, bool, list[Line]]:
        near = window(len(lines), place)
        head = above(lines, near.start) if near else []
        found = [lines[place] for place in (*head, *near)]
        return near.start > 0, near.stop < len(lines), found

    was, now = places_of(old), places_of(new)
    pages = [page for page in env.found_docs if page in now or page == env.config.root_doc]
    return [page for page in pages if listed(old, was.get(page)) != listed(new, now.get(page))]


class Book:
    """The lines of a book whose pages are all read, in the form that templates want."""

    def __init__(self, builder) -> None:
        self.builder = builder
        self.lines = lines_of(builder.env)
        self.places = places_of(self.lines)
        self.is_large = len(self.lines) > LIMIT
        self.titles = {}

    def title(self, line: Line) -> str:
        """Return as HTML how the toc calls a line's page, else its own title, with its number."""
        if line.ref not in self.titles:
            node = self.builder.env.titles.get(line.ref, nodes.title("", line.ref)).deepcopy()
            number = ".".join(str(part) for part in node.attributes.pop("secnumber", ()))
            number += self.builder.config.html_secnumber_suffix if number else ""
            if line.name or all(isinstance(part, nodes.Text) for part in node.children):
                text = escape(line.name or node.astext(), quote=False)
            else:
                text = self.builder.render_partial(node)["title"]
            self.titles[line.ref] = number + text
        return self.titles[line.ref]

    def tree(self, page: str, places: list[int]) -> list[dict]:
        """Return lines as a page shows them, each with those that stand under it.

        Arguments: the page, and the lines' places, in which a line comes after what it stands
        under. Returns the captions, without those that have nothing under them here.
        """
        place = self.places.get(page)
        current = {place, *above(self.lines, place)}
        items = {}
        for place in places:
            line = self.lines[place]
            inside = line.ref in self.places and line.ref in self.builder.env.found_docs
            items[place] = {
                "ref": line.ref,
                "title": self.title(line) if line.ref else escape(line.name or "", quote=False),
                "depth": line.depth,
                "address": self.builder.get_relative_uri(page, line.ref) if inside else line.ref,
                "inside": inside,
                "here": line.ref == page,
                "current": place in current,
                "below": [],
            }
            if line.parent is not None:
                items[line.parent]["below"].append(items[place])
        return [item for item in items.values() if item["depth"] == 0 and item["below"]]

    def sidebar(self, page: str) -> dict:
        """Return what stands beside a page: its `parts`, and the pages where these are cut off.

        `first` and `last` are the first and last page listed, or "" where nothing is left out.
        """
        near = window(len(self.lines), self.places.get(page))
        head = above(self.lines, near.start) if near else []
        refs = [self.lines[place].ref for place in near if self.lines[place].ref]
        return {
            "parts": self.tree(page, [*head, *near]),
            "is_large": self.is_large,
            "first": refs[0] if near.start > 0 else "",
            "last": refs[-1] if near.stop < len(self.lines) else "",
        }


@lru_cache(maxsize=1)
def book(builder) -> Book:
    """Return the book that a builder writes; its lines are found at the first page only."""
    return Book(builder)


def rewrite_pages(app, env) -> list[str]:
    """Have the pages written again beside which other lines stand than before."""
    old, new = getattr(env, "course_lines", None), lines_of(env)
    env.course_lines = new
    return changed(env, old, new) if old else []


def warn_of_entries(app, env) -> None:
    """Have Sphinx resolve the whole toc, once, for its warnings: of a page without title, say.

    The theme had it do so for every page.
    """
    root = env.config.root_doc
    global_toctree_for_doc(env, root, app.builder, includehidden=True, titles_only=True)


def add_to_context(app, pagename, templatename, context, doctree) -> None:
    """Give the templates what stands beside the page."""
    context["nearby"] = book(app.builder).sidebar(pagename)


def collect_all_pages(app) -> list[tuple[str, dict, str]]:
    """Return the page that lists all pages, when the lists beside the pages are not whole."""
    whole = book(app.builder)
    if not whole.is_large:
        return []
    parts = whole.tree(ALL_PAGES, range(len(whole.lines)))
    return [(ALL_PAGES, {"title": "All pages", "parts": parts}, "all-pages.html")]


def setup(app) -> dict:
    """Register with Sphinx."""
    app.connect("env-updated", rewrite_pages)
    app.connect("env-check-consistency", warn_of_entries)
    # before the theme tries out which templates are empty, which it does at priority 500
    app.connect("html-page-context", add_to_context, priority=100)
    app.connect("html-collect-pages", collect_all_pages)
    return {
        "version": "1",
        "env_version": 1,
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
