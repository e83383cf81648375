"""A tiny book with the real settings and theme, to plant faults in."""

import base64
import shutil
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools.notebooks import ROOT

DOT = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChw"
    "GA60e6kgAAAABJRU5ErkJggg=="
)
PAGES = {
    "_toc.yml": "format: jb-book\nroot: index\nchapters:\n- file: lessons/07-tiny\n"
    "- file: references\n",
    "index.md": "# A tiny book\n\n<!-- lesson map -->\n\nNo book.\n\n"
    "[Ada](references.md#ada-1843)\n\n![one dot](dot.png)\n\n"
    '<img src="_static/favicon.svg" alt="squares">\n\n## Found a mistake?\n\nSo.\n',
    "references.md": "# References\n\n## Ada 1843\n\nNotes.\n\n"
    "## Noether 1918\n\nSymmetry.\n",
}
OPENING = "# Lesson 07: Tiny\n\nLet $d > 0$. So why? "
OPENING += "[Noether](../references.md#noether-1918)"


def lesson(opening=OPENING, *texts, alt="one dot"):
    """Return a lesson: text, code that draws, and more text."""
    image = new_output(
        "display_data", data={"image/png": DOT, "text/plain": "<Figure>"}
    )
    metadata = {"mystnb": {"image": {"alt": alt}}} if alt else {}
    cells = [
        new_markdown_cell(opening),
        new_code_cell("draw()", execution_count=1, outputs=[image], metadata=metadata),
        *map(new_markdown_cell, texts),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def write_book(folder: Path) -> None:
    """Write a book of three pages into a new folder."""
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "theme", folder / "theme", ignore=unwanted)
    shutil.copy2(ROOT / "_config.yml", folder)
    for name, text in PAGES.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "dot.png").write_bytes(base64.b64decode(DOT))
    (folder / "lessons").mkdir()
    nbformat.write(lesson(), folder / "lessons/07-tiny.ipynb")


def change(file: Path, old: str, new: str) -> None:
    """Replace a text in a file, where it must stand once; "" is the file's end."""
    text = file.read_text(encoding="utf-8")
    assert not old or text.count(old) == 1, old
    file.write_text(text.replace(old, new) if old else text + new, encoding="utf-8")
