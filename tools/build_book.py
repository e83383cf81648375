"""Build the book, strictly, into _build/html.

    .venv/book/bin/python tools/build_book.py [--verbose]

Any warning fails the build, and each is printed as one line that names file and line, or notebook
and cell. The site is built in a fresh folder and takes the place of the old one only when it is
whole, so a failed build leaves the last good site as it was.
"""

import argparse
import contextlib
import io
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "_build"
SITE = BUILD / "html"
OLD_SITE = BUILD / "html.old"
FRESH = BUILD / "fresh"

# How Sphinx writes a warning: `place: WARNING: message [type.subtype]`; the place may be missing.
WARNING = re.compile(
    r"(?:(?P<place>.*?): )?(?:WARNING|ERROR|CRITICAL|SEVERE): (?P<message>.*)", re.DOTALL
)
PLACE = re.compile(r"(?P<file>.+?)(?::(?P<line>\d+|None)?)?(?::<[^>]*>)?")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Records(io.TextIOBase):
    """A stream that keeps each write apart: Sphinx writes every warning at once, whole."""

    def __init__(self, echo=None):
        self.texts, self.echo = [], echo

    def write(self, text: str) -> int:
        self.texts.append(text)
        if self.echo:
            self.echo.write(text)
        return len(text)


def one_line(text: object) -> str:
    """Return a message as one line, without colours and with paths relative to the project."""
    return " ".join(COLOUR.sub("", str(text)).replace(f"{ROOT}{os.sep}", "").split())


def in_words(warning: str) -> str:
    """Turn a warning of Sphinx into `file, line N: message` or `file, cell N, line M: message`.

    MyST-NB numbers the lines of a notebook as 10000 times the cell, counted from 1, plus the line
    inside the cell, counted from 2. A warning about the whole book has no place, and comes back
    as it is.
    """
    match = WARNING.fullmatch(COLOUR.sub("", warning).strip())
    if not match:
        return one_line(warning)
    message = one_line(match["message"])
    where = PLACE.fullmatch(match["place"] or "")
    if not where:
        return message
    file = Path(where["file"])
    name = file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else where["file"]
    if not (where["line"] or "").isdigit():
        return f"{name}: {message}"
    cell, line = divmod(int(where["line"]), 10000)
    if name.endswith(".ipynb"):
        place = f"{name}, cell {cell}, line {max(line - 1, 1)}" if cell else name
        return f"{place}: {message}"
    return f"{name}, line {where['line']}: {message}"


def load_once(text: str) -> dict:
    """Return YAML as a dictionary.

    Errors: `yaml.YAMLError`, also when a key stands twice: the second would silently win.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node, deep=False):
            seen = set()
            for key, _ in node.value:
                if key.value in seen:
                    problem = f"{key.value} stands here for the second time"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
                seen.add(key.value)
            return super().construct_mapping(node, deep)

    return yaml.load(text, Loader)


def read_settings() -> tuple[list[str], list[str]]:
    """Read _config.yml and _toc.yml.

    Returns the pages of the toc as paths without suffix, the first page first, and the problems,
    one line each; after a problem the pages may be missing.
    """
    import yaml
    from jsonschema import ValidationError
    from jupyter_book.config import PATH_YAML_DEFAULT, validate_yaml
    from sphinx_external_toc.parsing import MalformedError, parse_toc_yaml

    pages, problems = [], []
    try:
        settings = load_once((ROOT / "_config.yml").read_text(encoding="utf-8"))
        validate_yaml(settings, raise_on_errors=True)
        # jupyter-book ignores a key it does not know, so a slip of the pen would go unseen.
        known = yaml.safe_load(PATH_YAML_DEFAULT.read_text(encoding="utf-8"))
        unknown = [key for key in settings if key not in known]
        for section, default in known.items():
            if isinstance(default, dict):
                ours = settings.get(section) or {}
                unknown += [f"{section}.{key}" for key in ours if key not in default]
        problems += [f"_config.yml: {key} is not a setting of jupyter-book" for key in unknown]
    except (OSError, yaml.YAMLError, ValidationError) as error:
        problems.append(f"_config.yml: {one_line(error)}")
    try:
        site_map = parse_toc_yaml(ROOT / "_toc.yml")
        pages = [page.removesuffix(".md").removesuffix(".ipynb") for page in site_map]
    except (OSError, yaml.YAMLError, MalformedError) as error:
        problems.append(f"_toc.yml: {one_line(error)}")
    return pages, problems


def title() -> str:
    """Return the book's title, as _config.yml has it."""
    import yaml

    return yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["title"]


def notebook_problems(notebook: Path) -> list[str]:
    """Check one notebook by itself; return one line a problem."""
    from check_notebooks import problems

    return problems(notebook)


def page_problems(pages: list[str], check=notebook_problems) -> list[str]:
    """Check that the toc and the files agree both ways, and every notebook by itself.

    Arguments: the pages of the toc, and what checks a notebook. Returns one line a problem.
    """
    found = []
    for page in pages:
        if not any((ROOT / (page + suffix)).is_file() for suffix in (".md", ".ipynb")):
            found.append(f"_toc.yml: {page} is listed, but there is no {page}.md or {page}.ipynb")
    for lesson in sorted((ROOT / "lessons").glob("*.ipynb")):
        page = lesson.relative_to(ROOT).with_suffix("").as_posix()
        if page not in pages:
            found.append(f"{page}.ipynb: not in _toc.yml; add `- file: {page}` to its part")
        found += check(lesson)
    return found


def run_sphinx(
    output: Path, verbose: bool = False, builder: str = "html", settings: dict | None = None
) -> list[str]:
    """Build the pages with jupyter-book, nitpicking, and going on after a problem.

    Arguments: the folder for the pages (beside it Sphinx keeps what it needs to build again
    faster), whether to show Sphinx's own log, Sphinx's builder, and settings of Sphinx on top of
    those in _config.yml. Returns one line a problem.
    """
    from jupyter_book.sphinx import build_sphinx

    log = io.StringIO()
    warnings = Records(sys.stderr if verbose else None)
    with contextlib.redirect_stderr(warnings):
        with contextlib.redirect_stdout(sys.stdout if verbose else log):
            result = build_sphinx(
                ROOT,
                output,
                path_config=ROOT / "_config.yml",
                noconfig=True,
                builder=builder,
                confoverrides={
                    **(settings or {}),
                    "nitpicky": True,
                    "external_toc_path": "_toc.yml",
                    "latex_individualpages": False,
                },
                warningiserror=True,
                keep_going=True,
                quiet=not verbose,
            )
    if isinstance(result, BaseException):
        return [f"{type(result).__name__}: {one_line(result)} (more with --verbose)"]
    found = [in_words(text) for text in warnings.texts if WARNING.search(COLOUR.sub("", text))]
    if result and not found:
        found.append("Sphinx failed and gave no reason; run again with --verbose")
    return list(dict.fromkeys(found))


def put_in_place() -> None:
    """Let the fresh site take the place of the old one.

    The old one is kept under another name until the new one stands; `restore` brings it back
    should this be interrupted between the two moves.
    """
    shutil.rmtree(OLD_SITE, ignore_errors=True)
    if SITE.exists():
        SITE.rename(OLD_SITE)
    try:
        (FRESH / "html").rename(SITE)
    except OSError:
        restore()
        raise
    shutil.rmtree(OLD_SITE, ignore_errors=True)


def restore() -> None:
    """Bring back the last good site after an interruption of `put_in_place`."""
    if OLD_SITE.exists() and not SITE.exists():
        OLD_SITE.rename(SITE)


def build(
    verbose: bool,
    settings: dict | None = None,
    finish: Callable[[list[str]], list[str]] | None = None,
) -> tuple[list[str], str]:
    """Build, check and put in place.

    Arguments: whether to show Sphinx's own log, settings of Sphinx on top of those in _config.yml,
    and what else the site must have before it is whole: a function that gets the pages of the toc,
    adds to the fresh site, and returns one line a problem.
    Returns one line a problem, and the first page's path inside the site.
    """
    restore()
    pages, found = read_settings()
    found = found or page_problems(pages)
    if found:
        return found, ""
    shutil.rmtree(FRESH, ignore_errors=True)
    try:
        found = run_sphinx(FRESH / "html", verbose, settings=settings)
        if not found:
            missing = [page for page in pages if not (FRESH / "html" / f"{page}.html").is_file()]
            found = [f"_toc.yml: no page was built for {page}" for page in missing]
        if not found and finish:
            found = finish(pages)
        if not found:
            put_in_place()
    finally:
        shutil.rmtree(FRESH, ignore_errors=True)
    return found, f"{pages[0]}.html"


def report(found: list[str]) -> int:
    """Print the problems of a build that failed, one a line; return the exit code."""
    for problem in found:
        print(problem, file=sys.stderr)
    kept = "; the last good site is unchanged" if SITE.exists() else ""
    print(f"error: not built, {len(found)} problem(s) above{kept}", file=sys.stderr)
    return 1


def main() -> int:
    """Build the book; return the exit code."""
    parser = argparse.ArgumentParser(description="Build the book, strictly, into _build/html.")
    parser.add_argument("--verbose", action="store_true", help="show Sphinx's own log")
    options = parser.parse_args()
    start = time.perf_counter()
    print("Building the book; this takes some seconds ...", flush=True)
    found, first_page = build(options.verbose)
    if found:
        return report(found)
    print(f"Built in {time.perf_counter() - start:.1f} s. Open {(SITE / first_page).as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
