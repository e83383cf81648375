"""Refuse a built site that is not whole: the last look before it is published.

    make verify

Every page of the toc must be there with its heading, its text and, if it is a notebook, all its
outputs; and the files that any page of the site names within the site, by `href` and `src`, must be
there too. Not looked at are places inside a page (`#heading`) and the pictures of a `srcset`. The
build looks for most of this itself; this one trusts no build, and refuses an empty site.
"""

import argparse
import re
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
from bs4 import BeautifulSoup, Tag

from build_book import ROOT, SITE, read_settings


def stored_outputs(page: str) -> int:
    """Return how many cells of a page's notebook have outputs; 0 for a page that is none."""
    path = ROOT / f"{page}.ipynb"
    if not path.is_file():
        return 0
    cells = nbformat.read(path, as_version=4).cells
    return sum(bool(cell.get("outputs")) for cell in cells)


def content_problems(article: Tag | None, outputs: int) -> list[str]:
    """Say what the content of a page lacks.

    Arguments: its `article`, None when it has none, and how many cells have outputs.
    """
    heading = article.find("h1") if article else None
    if not heading or not heading.get_text(strip=True):
        return ["has no heading"]
    found = []
    if article.get_text(strip=True) == heading.get_text(strip=True):
        found.append("has a heading and nothing below it")
    shown = len(article.select(".cell_output"))
    if shown != outputs:
        found.append(f"shows outputs of {shown} cells, and its notebook has {outputs}")
    return found


def base_path(html: BeautifulSoup) -> str:
    """Return where the site lies on its host, as its 404 page says by where its own files are."""
    own = html.find(href=re.compile(r"^/(?!/).*\b_static/"))
    return own["href"].partition("_static/")[0] if own else "/"


def absent(page: Path, site: Path, html: BeautifulSoup) -> list[str]:
    """Return what a page refers to within the site that is not there, in the page's words."""
    found = []
    # The 404 page is served at any depth, so it alone names files from the root of the host.
    base = base_path(html) if page == site / "404.html" else None
    for name in ("href", "src"):
        for element in html.find_all(attrs={name: True}):
            address = urlsplit(element[name])
            if address.scheme or address.netloc or not address.path:
                continue
            path = unquote(address.path)
            inside = base and path.startswith(base)
            target = (site / path.removeprefix(base) if inside else page.parent / path).resolve()
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or not target.is_relative_to(site.resolve()):
                found.append(element[name])
    return list(dict.fromkeys(found))


def missing(site: Path, pages: list[str]) -> list[str]:
    """Return which pages of the toc a site lacks, one line each; the first page included."""
    if not pages:
        return ["_toc.yml lists no page, so there is nothing to publish"]
    found = [
        f"{page}.html: missing, though _toc.yml lists it"
        for page in pages
        if not (site / f"{page}.html").is_file()
    ]
    if not (site / "index.html").is_file():
        found.append("index.html: missing, so the site's address would show nothing")
    return found


def page_problems(path: Path, site: Path, pages: list[str]) -> list[str]:
    """Return what a page lacks, one line a problem.

    Arguments: the page's file, the folder of the site, and the pages of the toc.
    """
    html = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    page = path.relative_to(site).with_suffix("").as_posix()
    found = []
    if page in pages:
        found += content_problems(html.find("article"), stored_outputs(page))
    found += [f"refers to {what}, which is not there" for what in absent(path, site, html)]
    return [f"{page}.html: {what}" for what in found]


def problems(site: Path, pages: list[str]) -> list[str]:
    """Return what a site lacks, one line a problem.

    Arguments: the folder of the site, and the pages of the toc, the first page first.
    """
    found = missing(site, pages)
    for path in sorted(site.rglob("*.html")):
        if path.relative_to(site).parts[0] != "_static":
            found += page_problems(path, site, pages)
    return list(dict.fromkeys(found))


def main() -> int:
    """Check a site; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", nargs="?", type=Path, default=SITE)
    site = parser.parse_args().site
    if not any(site.rglob("*.html")):
        print(f"error: nothing was built in {site}; run `make book`", file=sys.stderr)
        return 1
    pages, found = read_settings()
    found = found or problems(site, pages)
    for problem in found:
        print(problem, file=sys.stderr)
    if found:
        print(f"error: {site} is not whole, {len(found)} problem(s) above", file=sys.stderr)
        return 1
    print(f"{site} is whole: {len(pages)} pages of the toc, and the files that they refer to.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
