"""Show the book while it is being written.

    .venv/book/bin/python tools/preview.py [--port 8000]    # serve, build again on every save
    .venv/book/bin/python tools/preview.py --once           # build once, only what changed

Served on this machine only. Warnings are printed in the form that tools/build_book.py has, and
stop nothing. The pages go to _build/preview, never to the good site in _build/html. Only what
changed is read, checked and written, so that a save costs seconds however many lessons there are.
"""

import argparse
import hashlib
import json
import logging
import subprocess
import sys
import time
from pathlib import Path

from build_book import (
    BUILD,
    ROOT,
    notebook_problems,
    page_problems,
    read_settings,
    run_sphinx,
)

SITE = BUILD / "preview" / "html"
CHECKED = BUILD / "preview" / "checked.json"
WATCHED = ["_config.yml", "_toc.yml", "*.md", "lessons/*.ipynb", "theme/*/*.*"]


def problems_of_changed(pages: list[str]) -> list[str]:
    """Check what `page_problems` does, but a notebook only if it is not as it was the last time.

    What was found then stands in `CHECKED`, under a hash of the notebook's name and bytes and of
    the tools that check it. Arguments: the pages of the toc. Returns one line a problem.
    """
    try:
        known = json.loads(CHECKED.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none yet, or a build that was cut off
        known = {}
    tools = hashlib.sha256()
    for path in sorted((ROOT / "tools").glob("*.py")):
        tools.update(path.read_bytes())
    now = {}

    def check(notebook: Path) -> list[str]:
        seen = tools.copy()
        seen.update(notebook.name.encode() + notebook.read_bytes())
        key = seen.hexdigest()
        now[key] = known[key] if key in known else notebook_problems(notebook)
        return now[key]

    found = page_problems(pages, check)
    CHECKED.parent.mkdir(parents=True, exist_ok=True)
    CHECKED.write_text(json.dumps(now), encoding="utf-8")
    return found


def build_once() -> int:
    """Build the pages that changed, print every problem; return the exit code."""
    start = time.perf_counter()
    pages, found = read_settings()
    if not found:
        found = problems_of_changed(pages)
        found += run_sphinx(SITE, settings={"content_security": False})
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"Built in {time.perf_counter() - start:.1f} s, {len(found)} problem(s).", flush=True)
    return 1 if found else 0


def build_apart() -> None:
    """Run `build_once` in a process of its own, so that changed extensions are loaded again."""
    subprocess.run([sys.executable, __file__, "--once"])


def serve(port: int) -> int:
    """Serve the site until Ctrl-C, and build again when a file is saved; return the exit code.

    Arguments: the port on the loopback address.
    """
    from livereload import Server

    print("Building the preview; the first time takes some seconds ...", flush=True)
    build_apart()
    server = Server()
    for pattern in WATCHED:
        server.watch(str(ROOT / pattern), build_apart)
    logging.disable(logging.INFO)  # a line for every request helps nobody
    print(f"Serving http://127.0.0.1:{port}/ - stop with Ctrl-C.", flush=True)
    try:
        server.serve(host="127.0.0.1", port=port, root=str(SITE))
    except OSError as error:
        print(f"error: port {port}: {error.strerror}; try --port {port + 1}", file=sys.stderr)
        return 1
    return 0


def main() -> int:
    """Read the command line and do as it says; return the exit code."""
    parser = argparse.ArgumentParser(description="Show the book while it is being written.")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--once", action="store_true", help="build once and do not serve")
    options = parser.parse_args()
    return build_once() if options.once else serve(options.port)


if __name__ == "__main__":
    sys.exit(main())
