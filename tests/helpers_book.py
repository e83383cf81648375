"""What the tests of the book share: copies of the repository, a tiny book, the tools."""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

ROOT = Path(__file__).resolve().parent.parent

# What a publishing workflow knows: with it pages have every button, and their address.
PUBLISHED = {"GITHUB_REPOSITORY": "some-teacher/class", "SITE_URL": "https://course.example"}

# The smallest PNG: one transparent dot.
DOT = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChw"
    "GA60e6kgAAAABJRU5ErkJggg=="
)

INDEX = """# A tiny book

The first page, which cites [Ada, 1843](references.md#ada-1843).

![one dot](dot.png)

## Found a mistake?

Say so.
"""

REFERENCES = """# References

## Ada 1843

Notes.

## Noether 1918

Symmetry.
"""

TOC = """format: jb-book
root: index
parts:
  - caption: Lessons
    chapters:
      - file: lessons/07-tiny
  - caption: Reference
    chapters:
      - file: references
"""


# Runs a script as `python script` does, but for one slow import (see conftest.py).
RUN = """
import os, runpy, sys
sys.modules["rfc3987_syntax"] = None
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def files_of_repository() -> list[str]:
    """List the files of the working tree that belong to the project, committed or not yet."""
    done = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True
    )
    if done.returncode == 0:
        names = done.stdout.decode().split("\0")
    else:
        unwanted = {".venv", "_build", ".git", "__pycache__", ".pytest_cache"}
        names = []
        for folder, below, files in os.walk(ROOT):
            below[:] = [name for name in below if name not in unwanted]
            names += [os.path.relpath(os.path.join(folder, file), ROOT) for file in files]
    return [name for name in names if (ROOT / name).is_file()]


def copy_repository(target: Path) -> Path:
    """Copy the project's files into `target`, without history, environments or builds."""
    for name in files_of_repository():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name)
    return target


def tiny_lesson() -> nbformat.NotebookNode:
    """Return a lesson of three cells: text that cites, code that prints, code that draws."""
    picture = new_output("display_data", data={"image/png": DOT, "text/plain": "<Figure size 1x1>"})
    alt = {"mystnb": {"image": {"alt": "one dot"}}}
    cells = [
        new_markdown_cell(
            "# Lesson 07: Tiny\n\nSee [Noether, 1918](../references.md#noether-1918).", id="text"
        ),
        new_code_cell("1 + 1", execution_count=1, id="code"),
        new_code_cell("draw()", execution_count=2, outputs=[picture], metadata=alt, id="figure"),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def tiny_book(target: Path) -> Path:
    """Write a book of three pages with the real settings, theme and tools around it.

    The check of notebooks is left out: it has rules for real lessons, and its own tests.
    """
    for name in ("tools", "theme"):
        shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "_config.yml", target)
    (target / "tools/check_notebooks.py").write_text("def problems(path):\n    return []\n")
    (target / "lessons").mkdir()
    (target / "_toc.yml").write_text(TOC)
    (target / "index.md").write_text(INDEX)
    (target / "references.md").write_text(REFERENCES)
    (target / "dot.png").write_bytes(base64.b64decode(DOT))
    nbformat.write(tiny_lesson(), target / "lessons/07-tiny.ipynb")
    return target


def run_tool(
    root: Path, tool: str, *arguments: str, **variables: str
) -> subprocess.CompletedProcess:
    """Run a tool of the copy at `root`, in its own process, and return what it said.

    Variables are added to the environment; those a workflow sets are taken out of it first.
    """
    set_by_workflow = ("GITHUB_", "SITE_URL")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(set_by_workflow)}
    command = [sys.executable, "-c", RUN, str(root / "tools" / tool), *arguments]
    return subprocess.run(
        command, cwd=root, env=environment | variables, capture_output=True, text=True, timeout=300
    )


def build(root: Path, **variables: str) -> subprocess.CompletedProcess:
    """Build the book at `root` strictly, and return what the tool said."""
    return run_tool(root, "build_book.py", **variables)


def snapshot(folder: Path) -> dict[str, str]:
    """Return a hash of every file below a folder, to see whether anything changed."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
