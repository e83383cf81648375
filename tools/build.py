"""Build the book, strictly, into _build/html: `python -m tools book`.

Any warning fails the build, and each is one line that names file and line, or notebook
and cell. A failed build leaves the last good site as it was.
"""

import contextlib
import io
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from tools.notebooks import ROOT

SITE = ROOT / "_build/html"

# How Sphinx writes a warning: `place: WARNING: message`; the place may be missing.
WARNING = re.compile(
    r"(?:(?P<place>.*?): )?(?:WARNING|ERROR|CRITICAL|SEVERE): (?P<message>.*)",
    re.DOTALL,
)
PLACE = re.compile(r"(?P<file>.+?)(?::(?P<line>\d+|None)?)?(?::<[^>]*>)?")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Records(io.TextIOBase):
    """A stream that keeps each write apart: Sphinx writes every warning at once."""

    def __init__(self):
        self.texts = []

    def write(self, text: str) -> int:
        self.texts.append(COLOUR.sub("", text))
        return len(text)


def one_line(text: object, source: Path) -> str:
    """Return a message as one line, with paths relative to the book's folder."""
    short = str(text).replace(str(source) + "/", "").replace(str(source) + "\\", "")
    return " ".join(short.split())


def located(warning: str, source: Path) -> str:
    """Return a warning as "file, line N: message" or "file, cell N, line M: message".

    MyST-NB numbers a notebook's lines as 10000 times the cell plus the line, from 2.
    """
    match = WARNING.fullmatch(warning.strip())
    message = one_line(match["message"], source)
    where = PLACE.fullmatch(match["place"] or "")
    if not where:
        return message
    place = one_line(where["file"], source).replace("\\", "/")
    if (where["line"] or "").isdigit():
        cell, line = divmod(int(where["line"]), 10000)
        if not place.endswith(".ipynb"):
            place += f", line {where['line']}"
        elif cell:
            place += f", cell {cell}, line {max(line - 1, 1)}"
    return f"{place}: {message}"


def read_settings(source: Path) -> tuple[list[str], list[str]]:
    """Return the pages of _toc.yml, the first page first, and problems, one a line."""
    import yaml
    from jsonschema import ValidationError
    from jupyter_book.config import PATH_YAML_DEFAULT, validate_yaml
    from sphinx_external_toc.parsing import MalformedError, parse_toc_yaml

    pages, problems = [], []
    try:
        settings = yaml.safe_load((source / "_config.yml").read_text(encoding="utf-8"))
        validate_yaml(settings, raise_on_errors=True)
        # jupyter-book ignores a key it does not know
        known = yaml.safe_load(PATH_YAML_DEFAULT.read_text(encoding="utf-8"))
        unknown = [key for key in settings if key not in known]
        for section, default in known.items():
            if isinstance(default, dict):
                ours = settings.get(section) or {}
                unknown += [f"{section}.{key}" for key in ours if key not in default]
        for key in unknown:
            problems.append(f"_config.yml: {key} is not a setting of jupyter-book")
    except (OSError, yaml.YAMLError, ValidationError) as error:
        problems.append(f"_config.yml: {one_line(error, source)}")
    try:
        for page in parse_toc_yaml(source / "_toc.yml"):
            pages.append(page.removesuffix(".md").removesuffix(".ipynb"))
    except (OSError, yaml.YAMLError, MalformedError) as error:
        problems.append(f"_toc.yml: {one_line(error, source)}")
    return pages, problems


def page_problems(source: Path, pages: list[str]) -> list[str]:
    """Return where toc and files disagree, and what notebooks lack, one a line."""
    from tools.form import problems

    absent = [page for page in pages if not any(source.glob(f"{page}.*"))]
    found = [f"_toc.yml: there is no {page}.md or {page}.ipynb" for page in absent]
    for path in sorted((source / "lessons").glob("*.ipynb")):
        page = f"lessons/{path.stem}"
        if page not in pages:
            cure = f"add `- file: {page}` to its part"
            found.append(f"{page}.ipynb: not in _toc.yml; {cure}")
        found += problems(path)
    return found


def run_sphinx(source: Path, output: Path, settings: dict) -> list[str]:
    """Write the pages with jupyter-book; return one line a warning."""
    from jupyter_book.sphinx import build_sphinx

    warnings, log = Records(), io.StringIO()
    strict = {
        "nitpicky": True,
        "external_toc_path": "_toc.yml",
        "latex_individualpages": False,  # jupyter-book asks for it
    }
    with contextlib.redirect_stderr(warnings), contextlib.redirect_stdout(log):
        result = build_sphinx(
            source,
            output,
            path_config=source / "_config.yml",
            noconfig=True,
            confoverrides=settings | strict,
            warningiserror=True,
            keep_going=True,
            quiet=True,
        )
    if isinstance(result, BaseException):
        return [f"{type(result).__name__}: {one_line(result, source)}"]
    found = [located(text, source) for text in warnings.texts if WARNING.search(text)]
    if result and not found:
        found.append("Sphinx gave no reason; see `jupyter-book build . -v`")
    return list(dict.fromkeys(found))


def build(
    source: Path = ROOT,
    site: Path = SITE,
    settings: dict | None = None,
    finish: Callable[[Path, list[str]], list[str]] = lambda fresh, pages: [],
) -> list[str]:
    """Build a book, check it, and put it in place; return one line a problem.

    `settings` come on top of those in _config.yml. `finish` does what else the site
    needs, and gets the fresh folder and the pages of the toc; it returns problems too.
    """
    fresh = site.parent / "fresh"
    pages, found = read_settings(source)
    if found := found or page_problems(source, pages):
        return found
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        found = run_sphinx(source, fresh / "html", settings or {})
        found = found or finish(fresh, pages)
        if not found:
            if site.exists():
                site.rename(fresh / "old")
            (fresh / "html").rename(site)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return found


def report(found: list[str]) -> int:
    """Print what a build found, one problem a line; return the exit code."""
    for problem in found:
        print(problem, file=sys.stderr)
    if found:
        kept = "; the last good site is unchanged" if SITE.exists() else ""
        message = f"error: not built, {len(found)} problem(s) above{kept}"
        print(message, file=sys.stderr)
        return 1
    print(f"Open {(SITE / 'index.html').as_uri()}")
    return 0


def main(arguments: list[str]) -> int:
    """Build the book; return the exit code."""
    print("Building the book; this takes some seconds ...", flush=True)
    return report(build())
