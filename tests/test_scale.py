"""A page costs the same in a book of a thousand lessons: its bytes, its building, an edit.

Nothing here depends on time; `make bench` measures that. Books are generated, with the real theme
and settings. The same book with the theme's own sidebar shows that each measure sees its fault.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from helpers_book import ROOT, build, run_tool, tiny_book

import large_book as generated
from check_notebooks import problems
from large_book import name_of, write_book

sys.path.insert(0, str(ROOT / "theme/extensions"))
import citations
import sidebar

pytestmark = pytest.mark.xdist_group(__name__)

LIMIT = 12  # lines a list holds in the books built here, to keep these small
SMALL, LARGE = 9, 18  # lessons, each with its exercises: both more lines than that
OURS = "theme/templates/sbt-sidebar-nav.html"

# An extension that notes what Sphinx does: entries of a toc that it makes lines of a list of, and
# pages that it takes from the store of pages read before.
COUNT = """
import json
from pathlib import Path
from sphinx.environment import BuildEnvironment
from sphinx.environment.adapters import toctree

entry, get_doctree, entries, taken = toctree._toctree_entry, BuildEnvironment.get_doctree, [], []

def count_entry(*arguments):
    entries.append(1)
    return entry(*arguments)

def count_page(env, docname):
    taken.append(docname)
    return get_doctree(env, docname)

def write(app, error):
    found = {"entries": len(entries), "taken": taken}
    (Path(app.srcdir) / "count.json").write_text(json.dumps(found))

def setup(app):
    toctree._toctree_entry = count_entry
    BuildEnvironment.get_doctree = count_page
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
"""


def replace(path: Path, old: str, new: str) -> None:
    """Edit a file, where the old text must stand once."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def large_book(target: Path, lessons: int, exercises: bool) -> Path:
    """Write a book whose lists hold `LIMIT` lines, and which counts; a part has three lessons."""
    root = write_book(target, lessons, part=3, exercises=exercises)
    (root / "theme/extensions/count.py").write_text(COUNT)
    replace(root / "_config.yml", "      - sidebar\n", "      - sidebar\n      - count\n")
    replace(root / "theme/extensions/sidebar.py", f"LIMIT = {sidebar.LIMIT} ", f"LIMIT = {LIMIT} ")
    return root


@dataclass
class Built:
    """A built book: its pages' folder, how many the toc lists, of how many Sphinx made lines."""

    site: Path
    pages: int
    entries: int

    def text(self, page: str) -> str:
        """Return the HTML of a page."""
        return (self.site / f"{page}.html").read_text(encoding="utf-8")

    def list(self, page: str):
        """Return the list of pages beside a page, parsed."""
        return BeautifulSoup(self.text(page), "html.parser").select_one("nav.bd-docs-nav")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return a function that builds a book, with our sidebar or the theme's, each once."""
    found = {}

    def make(lessons: int, ours: bool = True) -> Built:
        if (lessons, ours) not in found:
            folder = tmp_path_factory.mktemp("scale") / "book"
            root = large_book(folder, lessons, exercises=True)
            if not ours:
                (root / OURS).unlink()
            done = build(root)
            assert done.returncode == 0, done.stderr
            entries = json.loads((root / "count.json").read_text())["entries"]
            found[lessons, ours] = Built(root / "_build/html", 2 * lessons + 1, entries)
        return found[lessons, ours]

    return make


def lesson(number: int) -> str:
    """Return the docname of a lesson."""
    return f"lessons/{name_of(number)}-sums"


def exercises(number: int) -> str:
    """Return the docname of a lesson's exercises."""
    return f"exercises/{name_of(number)}-exercises"


def grows(small: Built, large: Built) -> list[str]:
    """Say what of the same page is larger in a book of twice the lessons, by more than 2 %."""
    page = lesson(SMALL // 2)
    measures = {
        "page": lambda book: len(book.text(page)),
        "list": lambda book: len(str(book.list(page))),
        "lines": lambda book: len(book.list(page).select("li")),
        "entries a page": lambda book: book.entries / book.pages,
    }
    return [name for name, of in measures.items() if of(large) > 1.02 * of(small)]


def test_a_page_and_its_making_do_not_grow_with_the_book(built):
    assert grows(built(SMALL), built(LARGE)) == []
    assert built(LARGE).entries == built(LARGE).pages, "the toc is resolved once"


def test_growth_is_seen_with_the_sidebar_of_the_theme(built):
    stock = grows(built(SMALL), built(LARGE, ours=False))
    assert stock == ["page", "list", "lines", "entries a page"]


def test_no_list_is_longer_than_the_rule_says(built):
    book = built(LARGE)
    for number in range(1, LARGE + 1):
        for page in (lesson(number), exercises(number)):
            beside = book.list(page)
            lines = len(beside.select("li, .caption"))
            # the first page, three links to all pages, and what the first line stands under
            assert LIMIT < lines <= LIMIT + 4 + 2, page


def test_the_readers_page_is_marked_and_its_exercises_are_open(built):
    book = built(LARGE)
    for number in range(1, LARGE + 1):
        for page in (lesson(number), exercises(number)):
            beside = book.list(page)
            here = [link.get_text() for link in beside.select("a.current")]
            title = BeautifulSoup(book.text(page), "html.parser").h1.get_text()
            assert here == [title.removesuffix("#")]
            around = beside.select("li.toctree-l1.current")
            assert len(around) == 1 and around[0].details.has_attr("open")
            links = [link.get_text() for link in around[0].select("a")]
            assert links == [
                f"Lesson {name_of(number)}: Sums of {number} Numbers",
                f"Lesson {name_of(number)}: Exercises",
            ]


def links_from(book: Built, page: str, where: str) -> list[str]:
    """Return the docnames that the links in a piece of a page lead to, in order, each once."""
    soup = BeautifulSoup(book.text(page), "html.parser").select_one(where)
    base = (book.site / f"{page}.html").parent
    targets = [link["href"].partition("#")[0] for link in soup.select("a[href]")]
    found = [(base / target).resolve() for target in targets if target]
    return list(dict.fromkeys(p.relative_to(book.site).as_posix()[:-5] for p in found))


def unreachable(book: Built, lessons: int) -> set[str]:
    """Return the pages that no two links lead to, beside the first page and then in all pages."""
    wanted = {each(number) for number in range(1, lessons + 1) for each in (lesson, exercises)}
    found = links_from(book, "index", "nav.bd-docs-nav")
    if "all-pages" in found:
        found += links_from(book, "all-pages", "article")
    return wanted - set(found)


def test_every_page_is_two_links_from_every_other(built, tmp_path):
    book = built(LARGE)
    assert unreachable(book, LARGE) == set()
    for number in range(1, LARGE + 1):
        assert "all-pages" in links_from(book, lesson(number), "nav.bd-docs-nav")
        assert "all-pages" in links_from(book, exercises(number), "nav.bd-docs-nav")
    in_order = [each(n) for n in range(1, LARGE + 1) for each in (lesson, exercises)]
    assert links_from(book, "all-pages", "article") == ["index", *in_order, "references"]
    # a fault is seen: without the link to all pages most of the book is lost
    site = tmp_path / "site"
    site.mkdir()
    index = book.text("index").replace("all-pages.html", "")
    (site / "index.html").write_text(index)
    assert lesson(LARGE) in unreachable(Built(site, 1, 0), LARGE)


def test_the_links_at_the_ends_lead_to_where_the_list_is_cut(built):
    book = built(LARGE)
    everything = BeautifulSoup(book.text("all-pages"), "html.parser").article
    ids = [item["id"] for item in everything.select("li[id]")]
    middle = book.list(lesson(LARGE // 2))
    ends = {link.get_text(): link["href"] for link in middle.select("a[href*=all-pages]")}
    first, last = (ends[name].partition("#")[2] for name in ("Earlier pages", "Later pages"))
    listed = links_from(book, lesson(LARGE // 2), "nav.bd-docs-nav")
    pages = [page for page in listed if page in ids]
    assert ends["All pages"] == "../all-pages.html"
    assert first in pages[:2], "the first page listed may be what the first line stands under"
    assert last == pages[-1]
    assert 0 < ids.index(first) < ids.index(last) < len(ids) - 1
    assert book.list("all-pages").select_one("li.active").get_text().strip() == "All pages"
    names = {page: book.list(page).get_text() for page in (lesson(1), lesson(LARGE))}
    assert "Earlier pages" not in names[lesson(1)] and "Later pages" in names[lesson(1)]
    assert "Earlier pages" in names[lesson(LARGE)] and "Later pages" not in names[lesson(LARGE)]


@pytest.mark.parametrize("count", [0, 1, sidebar.LIMIT, sidebar.LIMIT + 1, 3 * sidebar.LIMIT])
def test_the_nearest_lines_are_listed(count):
    for place in range(count):
        nearest = sorted(range(count), key=lambda other: (abs(other - place), other))
        assert list(sidebar.window(count, place)) == sorted(nearest[: sidebar.LIMIT])
    assert list(sidebar.window(count, None)) == list(range(min(count, sidebar.LIMIT)))


@pytest.mark.parametrize("number", [1, 20, 300, 4000])
def test_a_lesson_of_any_number_passes_the_check(tmp_path, number):
    path = tmp_path / f"{name_of(number)}-sums.ipynb"
    nbformat.write(generated.lesson(number), path)
    assert problems(path) == []


def test_citing_lessons_stand_in_the_order_of_their_numbers():
    pages = ["notation", "lessons/100-c", "index", "lessons/37-b", "lessons/37-a", "lessons/9-d"]
    in_order = ["lessons/9-d", "lessons/37-a", "lessons/37-b", "lessons/100-c", "index", "notation"]
    assert sorted(pages, key=citations.place) == in_order


TOC = """format: jb-book
root: index
parts:
  - caption: First & foremost
    numbered: true
    chapters:
      - file: lessons/07-tiny
        sections:
          - file: deep
            sections:
              - file: deeper
      - file: named
        title: Another <name>
  - chapters:
      - file: references
      - url: https://example.invalid/?a=1&b=2
        title: Elsewhere
"""


def test_a_book_that_fits_is_listed_as_the_theme_lists_it(tmp_path):
    lists = []
    for name in ("ours", "theirs"):
        root = tiny_book(tmp_path / name)
        (root / "_toc.yml").write_text(TOC)
        (root / "deep.md").write_text("# Deep `code` & *stress*, $x^2$ < y\n")
        (root / "deeper.md").write_text("# Deeper\n\n## With a section\n")
        (root / "named.md").write_text("# Named\n")
        if name == "theirs":
            (root / OURS).unlink()
        done = build(root)
        assert done.returncode == 0, done.stderr
        site = root / "_build/html"
        assert not (site / "all-pages.html").exists()
        pages = ["index", "lessons/07-tiny", "deep", "deeper", "named", "references", "search"]
        found = [str(Built(site, 7, 0).list(page)) for page in pages]
        named = '<summary aria-label="Pages below this one">'
        found = [text.replace("<summary>", named) for text in found]
        lists.append([text.replace("\n", "").replace("  ", "") for text in found])
    assert lists[0] == lists[1]
    assert "Another &lt;name&gt;" in lists[0][0] and "1.1.1. Deeper" in lists[0][0]


LESSONS = 3 * LIMIT
CHECK = """
from pathlib import Path

def problems(path):
    with (Path(__file__).parent / "checked.txt").open("a") as log:
        log.write(path.stem + "\\n")
    return ["a problem"] if "07" in path.name else []
"""


class Preview:
    """A book of more lines than a list holds, whose preview is built again after each edit."""

    def __init__(self, root: Path):
        self.root = root
        (root / "tools/check_notebooks.py").write_text(CHECK)
        self.build()

    def build(self) -> tuple[set[str], set[str], str]:
        """Build; return the pages that were written, the notebooks checked, and the messages."""
        site, log = self.root / "_build/preview/html", self.root / "tools/checked.txt"
        before = {path: path.stat().st_mtime_ns for path in site.rglob("*.html")}
        log.write_text("")
        done = run_tool(self.root, "preview.py", "--once")
        pages = [path for path in site.rglob("*.html") if "_static" not in path.parts]
        written = [path for path in pages if before.get(path) != path.stat().st_mtime_ns]
        names = {path.relative_to(site).as_posix()[:-5] for path in written}
        return names, set(log.read_text().split()), done.stderr


@pytest.fixture(scope="module")
def preview(tmp_path_factory) -> Preview:
    """Build the preview of a large book once."""
    return Preview(large_book(tmp_path_factory.mktemp("scale") / "book", LESSONS, exercises=False))


ALWAYS = {"index", "all-pages", "search", "404"}  # the toc's page, and those made of the whole book


def test_an_edit_has_one_lesson_checked_and_written(preview):
    replace(preview.root / f"{lesson(20)}.ipynb", "make a pair", "are a pair")
    written, checked, said = preview.build()
    assert written == {lesson(20), *ALWAYS}
    assert checked == {"20-sums"}
    taken = json.loads((preview.root / "count.json").read_text())["taken"]
    assert set(taken) <= {lesson(20), "index"}, "no other page is looked at"
    assert "a problem" in said, "what was found before is said again"


def test_a_new_title_is_written_where_it_is_listed_and_nowhere_else(preview):
    replace(preview.root / f"{lesson(24)}.ipynb", "Sums of 24 Numbers", "A Sum of 24 Numbers")
    written, checked, _ = preview.build()
    site = preview.root / "_build/preview/html"
    texts = {path.stem: path.read_text(encoding="utf-8") for path in site.glob("lessons/*.html")}
    shows = {f"lessons/{page}" for page, text in texts.items() if "A Sum of 24" in text}
    assert 0.7 * LIMIT < len(shows) < 1.3 * LIMIT
    assert written == shows | ALWAYS
    assert not any("Sums of 24" in text for text in texts.values())
    assert checked == {"24-sums"}


def test_a_change_of_the_tools_has_every_notebook_checked(preview):
    replace(preview.root / "tools/check_notebooks.py", "a problem", "another problem")
    written, checked, said = preview.build()
    assert len(checked) == LESSONS
    assert "another problem" in said
