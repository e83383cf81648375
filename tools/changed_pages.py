"""Say which pages of a built site differ from an older one, as Markdown for a reviewer.

    make changes OLD=../before/_build/html

A page counts as changed when its content does: text, formulas, outputs, figures. What stands
around the content (menus, lists of pages, scripts) changes on all pages at once, so it is only
counted. Left out is what differs without any change: see `BY_NATURE`.
"""

import argparse
import filecmp
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from bs4 import BeautifulSoup

from build_book import SITE

# These, and the copies of the sources, are made from the pages and change with them, or are notes
# of a build for the next one.
BY_NATURE = (".buildinfo", "searchindex.js", "objects.inv", "sitemap.xml")
SOURCES = "_sources"
STAMP = re.compile(r"\?v=[0-9a-f]+")  # Sphinx's mark of a file's content, listed by itself


@dataclass
class Changes:
    """What became of the files of a site, by their paths inside it."""

    new: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    around: list[str] = field(default_factory=list)  # pages of which only what stands around did
    others: list[str] = field(default_factory=list)  # files that are no pages


def parts(page: Path) -> tuple[str, str]:
    """Return the content of a page, and what stands around it; all is content if it has none."""
    html = BeautifulSoup(STAMP.sub("", page.read_text(encoding="utf-8")), "html.parser")
    article = html.find("article") or html.find("main")
    if article is None:
        return str(html), ""
    content = str(article.extract())
    return content, str(html)


def files_of(site: Path) -> set[str]:
    """Return the files of a site that are worth a look, as paths inside it."""
    files = [path.relative_to(site) for path in site.rglob("*") if path.is_file()]
    return {
        path.as_posix()
        for path in files
        if path.parts[0] != SOURCES and not any(path.match(pattern) for pattern in BY_NATURE)
    }


def compare(old: Path, new: Path) -> Changes:
    """Compare two built sites.

    Errors: `FileNotFoundError` when one of them has no first page, and so is no site.
    """
    for site in (old, new):
        if not (site / "index.html").is_file():
            raise FileNotFoundError(f"{site} is no built site: it has no index.html")
    before, after = files_of(old), files_of(new)
    found = Changes()
    for name in sorted(before | after):
        if not name.endswith(".html") or name.startswith("_static/"):
            if name in before & after:
                same = filecmp.cmp(old / name, new / name, shallow=False)
            else:  # with a figure that comes or goes, the page that shows it changes
                same = name.startswith("_images/")
            if not same:
                found.others.append(name)
        elif name not in before:
            found.new.append(name)
        elif name not in after:
            found.gone.append(name)
        elif not filecmp.cmp(old / name, new / name, shallow=False):
            (content, rest), (content_now, rest_now) = parts(old / name), parts(new / name)
            if content != content_now:
                found.changed.append(name)
            elif rest != rest_now:
                found.around.append(name)
    return found


def summary(changes: Changes) -> str:
    """Return the changes as Markdown."""
    lines = ["## What changes on the site", ""]
    for title, names in (
        ("Pages that change", changes.changed),
        ("New pages", changes.new),
        ("Pages that go", changes.gone),
        ("Other files", changes.others),
    ):
        if names:
            lines += [f"**{title}** ({len(names)})", "", *(f"- `{name}`" for name in names), ""]
    if changes.around:
        lines += [f"On {len(changes.around)} other pages only what stands around the text.", ""]
    if lines[2:] == []:
        lines += ["Nothing.", ""]
    return "\n".join(lines)


def main() -> int:
    """Print the changes; return the exit code, which is 0 whatever they are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", nargs="?", default="", help="folder of the older site")
    parser.add_argument("new", type=Path, nargs="?", default=SITE, help="folder of the newer one")
    options = parser.parse_args()
    if not options.old:  # as from `make changes`
        print(
            "error: OLD= is missing; name the folder of the older site, for example: "
            "make changes OLD=../before/_build/html",
            file=sys.stderr,
        )
        return 1
    try:
        print(summary(compare(Path(options.old), options.new)))
    except FileNotFoundError as error:
        print(f"error: {error}; build it with `make book`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
