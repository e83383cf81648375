"""Write a book of many small lessons, to measure and test how the book grows.

Each lesson has what a real one has: text with links to other lessons and to its paper, a formula,
code with a printed output, a figure. Ten lessons make a part. Settings, theme and tools are the
real ones, and every lesson passes the check of notebooks.
"""

import base64
import shutil
import struct
import zlib
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from build_book import ROOT
from check_notebooks import NOTEBOOK_METADATA

PART = 10  # lessons of a part

INDEX = """# A large book

{lessons} lessons, all small.

## Found a mistake?

Say so.
"""

OPENING = """# Lesson {name}: Sums of {number} Numbers

What is the sum of the first {number} numbers, and who found it
([Gauss {number}, 1786](../references.md#gauss-{number}-1786))?

**You will** add up {number} numbers in two ways, and compare.

**You need** {needs}.

**It takes** a minute to read and a second to run."""

IDEA = r"""## Pairs

The first and the last of the numbers make a pair, and so do the second and the last but one. All
pairs have the same sum, and there are ${number} / 2$ of them:

$$\sum_{{k=1}}^{{{number}}} k = \frac{{{number} \cdot ({number} + 1)}}{{2}} = {total}$$"""

CODE = """def sum_by_pairs(n):
    \"\"\"The sum of the first n numbers, from the number of pairs.\"\"\"
    return n * (n + 1) // 2  # every pair has the sum n + 1


by_hand = sum_by_pairs({number})
print(f"by pairs: {{by_hand}}")
print(f"one by one: {{sum(range({number} + 1))}}")"""

CLOSING = """## What to take away

- Pairs give the sum. (`by pairs: {total}`)

## Exercises

None.

## Where this goes next

On."""

EXERCISES = """# Lesson {name}: Exercises

Back to [the lesson]({name}-sums.ipynb).

## 1. One more

What is the sum of {number} numbers and the next?
"""


def picture(number: int) -> str:
    """Return a small grey PNG, other for each number, as a notebook stores it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    pixels = b"\0" + number.to_bytes(4, "big")  # one line of four pixels
    head = struct.pack(">IIBBBBB", 4, 1, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()


def name_of(number: int) -> str:
    """Return a lesson's number as its file and its title have it, with two digits or more."""
    return f"{number:02d}"


def lesson(number: int) -> nbformat.NotebookNode:
    """Return lesson `number`, executed; numbers start at 1."""
    before = name_of(number - 1)
    words = {
        "number": number,
        "name": name_of(number),
        "total": number * (number + 1) // 2,
        "needs": f"[Lesson {before}]({before}-sums.ipynb)" if number > 1 else "nothing",
    }
    printed = f"by pairs: {words['total']}\none by one: {words['total']}\n"
    alt = {"mystnb": {"image": {"alt": f"Four pixels that spell the number {number} in greys."}}}
    figure = {"image/png": picture(number), "text/plain": "<Figure size 4x1>"}
    cells = [
        new_markdown_cell(OPENING.format(**words), id="opening"),
        new_markdown_cell(IDEA.format(**words), id="idea"),
        new_code_cell(
            CODE.format(**words),
            execution_count=1,
            id="code",
            outputs=[new_output("stream", name="stdout", text=printed)],
        ),
        new_code_cell(
            f"draw({number})",
            execution_count=2,
            id="figure",
            outputs=[new_output("display_data", data=figure)],
            metadata=alt,
        ),
        new_markdown_cell(CLOSING.format(**words), id="closing"),
    ]
    return new_notebook(cells=cells, metadata=NOTEBOOK_METADATA)


def toc(lessons: int, part: int, exercises: bool) -> str:
    """Return the text of _toc.yml; arguments as in `write_book`."""
    lines = ["format: jb-book", "root: index", "parts:"]
    for number in range(1, lessons + 1):
        if (number - 1) % part == 0:
            lines += [f"  - caption: Part {(number - 1) // part + 1}", "    chapters:"]
        lines.append(f"      - file: lessons/{name_of(number)}-sums")
        if exercises:
            lines += [
                "        sections:",
                f"          - file: exercises/{name_of(number)}-exercises",
            ]
    lines += ["  - caption: Reference", "    chapters:", "      - file: references"]
    return "\n".join(lines) + "\n"


def write_book(target: Path, lessons: int, part: int = PART, exercises: bool = False) -> Path:
    """Write the book into a new folder, and return the folder.

    Arguments: how many lessons, how many of them make a part, and whether each has a page of
    exercises below it.
    """
    for name in ("tools", "theme"):
        shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "_config.yml", target)
    (target / "lessons").mkdir()
    (target / "exercises").mkdir()
    entries = [f"## Gauss {number} 1786\n\nSchool.\n" for number in range(1, lessons + 1)]
    texts = {
        "_toc.yml": toc(lessons, part, exercises),
        "index.md": INDEX.format(lessons=lessons),
        "references.md": "\n".join(["# References\n", *entries]),
    }
    for name, text in texts.items():
        (target / name).write_text(text, encoding="utf-8")
    for number in range(1, lessons + 1):
        name = name_of(number)
        nbformat.write(lesson(number), target / f"lessons/{name}-sums.ipynb")
        if exercises:
            text = EXERCISES.format(name=name, number=number)
            path = target / f"exercises/{name}-exercises.md"
            path.write_text(text.replace("](", "](../lessons/"), encoding="utf-8")
    return target
