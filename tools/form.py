"""Say what is wrong with a notebook file without running it, and close its cells.

`problems(path)` is what `make book`, `make run` and the tests ask. An exercise is a
section with the task in words, a starter (a function without a body), a check, and two
sections that are closed at first, "Hint" and "Worked answer". What is closed follows
from the headings and from the line `# @title` alone; `closed` tells it the viewers.
"""

import ast
import copy
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from markdown_it import MarkdownIt

from tools.notebooks import display_name, is_exercises, printed

# What a reader must be able to find, in this order (see CONTRIBUTING.md).
OPENING = ["**You will**", "**You need**", "**It takes**"]
EXERCISES_OPENING = ["**How it goes**", *OPENING[1:]]
CLOSING = ["What to take away", "Exercises", "Where this goes next"]

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
NOTEBOOK_METADATA = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
# What an author may write: of a figure, and the printed lines that each claim rests on.
CELL_METADATA = {"code": {"mystnb"}, "markdown": {"evidence"}}
# What a lesson may import beside Python's own: Colab has more, other places have not.
PACKAGES = {"torch", "numpy", "matplotlib"}
MAX_COLUMNS = 80
MIN_ALT_LENGTH = 40
MIN_EXERCISES = 4
CLAIMS = range(5, 8)  # of a lesson, under "What to take away"

# The network, a shell, and what turns nbval's comparison off.
FORBIDDEN = re.compile(
    r"\b(urllib|requests|httpx|aiohttp|socket|ftplib|huggingface_hub|subprocess)\b"
    r"|\b(hub|torchvision|get_ipython|os\.system)\b|https?://"
    r"|(?i:#\s*(NBVAL_|PYTEST_VALIDATE_IGNORE)\w*)"
)

HINT, ANSWER = "### Hint", "### Worked answer"
FORM_TITLE = "# @title "
TEACHES = "**What it teaches.**"
# jupyter.* and jp-* close a cell in JupyterLab, cellView in Colab (which also lists
# collapsed sections by id), the tag in the book. Titled code keeps its output in sight.
HIDDEN = {"source_hidden": True}
TITLED = {"cellView": "form", "jupyter": HIDDEN, "tags": ["hide-input"]}
CLOSED_CODE = {"cellView": "form", "jupyter": {"outputs_hidden": True, **HIDDEN}}


def problems(path: Path) -> list[str]:
    """Return a line for each problem of a file: place, what, and the cure."""
    name = display_name(path)
    try:
        text = path.read_text(encoding="utf-8")
        ids = [cell.get("id") for cell in json.loads(text)["cells"]]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        return [f"{name}: not a notebook: {error}"]
    # nbformat would mend the ids.
    wrong = [n for n, id_ in enumerate(ids, 1) if not id_ or id_ in ids[: n - 1]]
    if wrong:
        cure = "no id of its own; save the notebook in JupyterLab once"
        return [f"{name}, cell {number}: {cure}" for number in wrong]
    try:
        nbformat.validate(json.loads(text))
    except nbformat.ValidationError as error:
        return [f"{name}: not valid at {[*error.absolute_path]}: {error.message}"]

    notebook = nbformat.reads(text, as_version=4)
    found = [f"{name}: {text}" for text in notebook_problems(path, notebook)]
    in_cells = [*cell_problems(notebook)]
    if is_exercises(path):
        in_cells += exercise_problems(notebook)
    return found + [f"{name}, cell {number}: {text}" for number, text in in_cells]


def notebook_problems(path: Path, notebook) -> Iterator[str]:
    """Yield the problems of the notebook as a whole."""
    exercises = is_exercises(path)
    if notebook.metadata != closed(notebook).metadata:
        yield "other notebook metadata than `make run` stores"
    opening = notebook.cells[0].source if notebook.cells else ""
    title = f"# Lesson {path.name.split('-')[0]}: " + "Exercises" * exercises
    if not opening.startswith(title):
        yield f"cell 1 does not start with `{title}`"
    parts = EXERCISES_OPENING if exercises else OPENING
    if not re.search(".*".join(map(re.escape, parts)), opening, re.DOTALL):
        yield f"cell 1 does not say, in this order: {', '.join(parts)}"
    headings = [*headings_of(notebook)]
    for title in [text for level, text in headings if level == 1][1:]:
        yield f"a second title: {title!r}; a section begins with `## `"
    titles = [text for level, text in headings if level == 2]
    if not exercises and titles[-len(CLOSING) :] != CLOSING:
        yield f"the last sections are not, in this order: {', '.join(CLOSING)}"
    claims = any("evidence" in cell.metadata for cell in notebook.cells)
    if claims and not any(map(is_drawing, notebook.cells)):
        yield "no drawing of what is built: a call of `draw` that also prints its text"


def is_drawing(cell) -> bool:
    """Say whether a cell calls `draw`, and has stored its picture and its text."""
    kinds = {output.output_type for output in cell.get("outputs", [])}
    calls = re.search(r"(?<!def )\bdraw\(", cell.source)
    return bool(calls) and kinds == {"display_data", "stream"}


def cell_problems(notebook) -> Iterator[tuple[int, str]]:
    """Yield (cell number, text) for the problems that a cell can have by itself."""
    executed, after = 0, closed(notebook).cells
    for number, cell in enumerate(notebook.cells, start=1):
        executed += cell.cell_type == "code"
        if cell.cell_type == "code":
            texts = [*code_problems(cell, executed), *output_problems(cell)]
        else:
            texts = [*markdown_problems(cell.source)]
        if set(cell.metadata.get("mystnb", {"image"})) != {"image"}:
            texts.append("mystnb metadata may say nothing but image")
        if cell.metadata != after[number - 1].metadata:
            texts.append("not the metadata of its place; `make run` sets it")
        if "evidence" in cell.metadata:
            texts += evidence_problems(cell)
        yield from ((number, text) for text in texts)


def code_problems(cell, expected: int) -> Iterator[str]:
    """Yield the problems of a code cell; expected: its place among the code cells."""
    source, count = cell.source, cell.execution_count
    if count != expected:
        yield f"run out of order or never: [{count}] should be [{expected}]; `make run`"
    try:
        nodes = [*ast.walk(ast.parse(source))]
    except SyntaxError:
        nodes = []
    if not nodes[1:]:
        yield "empty, or not plain Python: a magic, a shell command, a syntax error"
    names = [a.name for n in nodes if isinstance(n, ast.Import) for a in n.names]
    names += [n.module or "." for n in nodes if isinstance(n, ast.ImportFrom)]
    modules = {name.partition(".")[0] or name for name in names}
    for module in sorted(modules - PACKAGES - sys.stdlib_module_names):
        yield f"imports {module!r}; a lesson needs only {', '.join(sorted(PACKAGES))}"
    if match := FORBIDDEN.search(source):
        yield f"reaches for the network or a shell, or turns nbval off: {match[0]!r}"
    width = max(map(len, source.splitlines()), default=0)
    if width > MAX_COLUMNS:
        yield f"a line of {width} columns, over {MAX_COLUMNS}"


def output_problems(cell) -> Iterator[str]:
    """Yield the problems of what a code cell has stored."""
    for output in cell.outputs:
        if output.get("name") == "stderr":
            yield f"wrote to stderr: {output.text.strip().partition(chr(10))[0]}"
        if output.output_type == "execute_result":
            yield "shows a value; print it, or end the line with a semicolon"
    images = sum("image/" in " ".join(o.get("data", {})) for o in cell.outputs)
    alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
    if images > 1:
        yield f"{images} figures in one cell; one figure makes one point"
    if images and len(alt.strip()) < MIN_ALT_LENGTH:
        yield "a figure without alternative text; say what it shows in mystnb.image.alt"


def evidence_problems(cell) -> Iterator[str]:
    """Yield what is wrong with the claims of a lesson, or with what they rest on."""
    claims, evidence = cell.source.split("\n")[2:], cell.metadata["evidence"]
    if len(claims) not in CLAIMS or not all(c.startswith("- ") for c in claims):
        yield "not a heading and five to seven lines that begin with `- `, a claim each"
    if len(evidence) != len(claims):
        yield f"{len(claims)} claims, and evidence of {len(evidence)}"


# ---- Markdown, as JupyterLab, Colab and GitHub read it -------------------------------

# CommonMark with tables, and no HTML. Formulas are taken out before, as viewers do it.
PLAIN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
# Code comes first, for a dollar in it is one. No formula goes over an empty line, and
# none that is displayed has a label behind it.
FORMULA = re.compile(
    r"(?P<code>^ *```.*?^ *```|`[^`]*`)"
    r"|\$\$(?:(?!\n\n)[^$])+\$\$(?! *\(\S+\)$)|\$(?:(?!\n\n)[^$])+\$",
    re.DOTALL | re.MULTILINE,
)
STAR = re.compile(r'<span class="landmark-paper" [^>]+>&#9733;</span>')
REPLACED = {"softbreak": "\n", "hardbreak": "\n", "code_inline": "x"}
# What still looks like markup was none to a plain viewer: a reader would see it raw.
LEFT = {
    "a directive": r":::|```|~~~",
    "a role, an attribute or a substitution": r"[{}]",
    "a dollar without its partner or with a label": r"\$",
    "a bar of no table, a footnote or a power": r"[|^]",
    "a link that is none": r"\]\(|\]\[",
    "emphasis or code that is none": r"`|\*\*|__|(?<!\w)[*_](?=\w)",
    "a label, a definition, a comment or a break": r"^(\(\S+\)=|: |%|\+\+\+)",
    "HTML": r"</?[a-zA-Z!]",
    "a heading that is none": r"^#",
}


def parse(source: str) -> list:
    """Return the Markdown tokens of a text without its formulas."""
    text = STAR.sub("", source)
    text = FORMULA.sub(lambda m: m["code"] or "\n" * m[0].count("\n") + "x", text)
    return PLAIN.parse(text)


def prose(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each block of Markdown, without code, formulas and targets.

    Of a fenced block the line that opens it, if that says more than a language.
    """
    for token in parse(source):
        if token.type == "fence" and not re.fullmatch("[a-z]*", token.info):
            yield token.map[0] + 1, f"```{token.info}"
        if token.type == "inline":
            parts = (REPLACED.get(part.type, part.content) for part in token.children)
            yield token.map[0] + 1, "".join(parts)


def markdown_problems(source: str) -> Iterator[str]:
    """Yield the problems of a Markdown cell."""
    for first, text in prose(source):
        for number, line in enumerate(text.splitlines(), first):
            for what, pattern in LEFT.items():
                if re.search(pattern, line):
                    what = f"{what} shows raw in JupyterLab and Colab"
                    yield f"line {number}: {what}: {line.strip()[:40]!r}"
    parts = [part for token in parse(source) for part in token.children or []]
    if any(part.type == "image" for part in parts):
        yield "an image file; a lesson draws in code"
    for target in (part.attrGet("href") or "" for part in parts):
        if re.match(r"/|(?!\w+:)[^#]*\.html?(#|$)", target):
            yield f"{target!r} is only in the built site; link the .ipynb or .md file"


def headings_of(notebook) -> Iterator[tuple[int, str]]:
    """Yield (level, text) of every Markdown heading."""
    for cell in notebook.cells:
        tokens = parse(cell.source) if cell.cell_type == "markdown" else []
        for opening, text in zip(tokens, tokens[1:], strict=False):
            if opening.type == "heading_open":
                yield int(opening.tag[1]), text.content


# ---- exercises -----------------------------------------------------------------------

# A function with a docstring and nothing else.
STARTER = re.compile(r'def (\w+)\(.*?\):\n    """(?:(?!""").)+"""', re.DOTALL)


@dataclass
class Exercise:
    """One exercise: its cells, each with its number; first: that of its heading."""

    first: int
    number: int
    title: str
    open: list = field(default_factory=list)
    hint: list = field(default_factory=list)
    answer: list = field(default_factory=list)

    @property
    def starter(self) -> str | None:
        """Return the name of the function to write; None where there is none."""
        code = [cell.source for _, cell in self.open if cell.cell_type == "code"]
        match = STARTER.fullmatch(code[-2]) if len(code) > 1 else None
        return match and match[1]


def exercises_of(notebook) -> list[Exercise]:
    """Return the exercises of a notebook, in order."""
    found = []
    for number, (cell, section) in enumerate(sections(notebook), start=1):
        heading = re.match(r"## (?:(\d+)\. )?(.+)", cell.source)
        if cell.cell_type == "markdown" and heading:
            found.append(Exercise(number, int(heading[1] or 0), heading[2]))
        if found:
            place = {HINT: found[-1].hint, ANSWER: found[-1].answer}
            place.get(section, found[-1].open).append((number, cell))
    return [exercise for exercise in found if exercise.number]


def sections(notebook) -> list[tuple]:
    """Return (cell, section) of each cell: HINT, ANSWER, or "" where it is open."""
    section, found = "", []
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source.startswith(("## ", "### ")):
            section = cell.source if cell.source in (HINT, ANSWER) else ""
        found.append((cell, section))
    return found


def closing_metadata(cell, section: str) -> dict:
    """Return the metadata that closes a cell, by its place and its first line."""
    if cell.source in (HINT, ANSWER):
        return {"id": cell.id, "jp-MarkdownHeadingCollapsed": True}
    if cell.cell_type == "markdown":
        return {"jupyter": HIDDEN} if section else {}
    if section:
        return CLOSED_CODE
    return TITLED if cell.source.startswith(FORM_TITLE) else {}


def closed(notebook):
    """Return the notebook with an author's metadata, and those that close cells."""
    notebook = copy.deepcopy(notebook)
    for cell, section in sections(notebook):
        allowed = CELL_METADATA.get(cell.cell_type, ())
        kept = {k: v for k, v in cell.metadata.items() if k in allowed}
        cell.metadata = nbformat.from_dict({**kept, **closing_metadata(cell, section)})
    # Colab knows closed sections by the ids of their headings.
    ids = [cell.id for cell in notebook.cells if cell.source in (HINT, ANSWER)]
    colab = {"colab": {"collapsed_sections": ids}} if ids else {}
    notebook.metadata = nbformat.from_dict({**NOTEBOOK_METADATA, **colab})
    return notebook


def exercise_problems(notebook) -> Iterator[tuple[int, str]]:
    """Yield (cell number, text) of everything that is out of form."""
    for number, (cell, section) in enumerate(sections(notebook), start=1):
        is_code = cell.cell_type == "code"
        if section and is_code and not cell.source.startswith(FORM_TITLE):
            yield number, f"a closed code cell starts with `{FORM_TITLE.strip()}`"
    found = exercises_of(notebook)
    if len(found) < MIN_EXERCISES:
        yield 1, f"{len(found)} exercises; there should be at least {MIN_EXERCISES}"
    for expected, exercise in enumerate(found, start=1):
        if exercise.number != expected:
            yield exercise.first, f"exercise {exercise.number} should be {expected}"
        yield from problems_of_exercise(exercise)


def problems_of_exercise(exercise: Exercise) -> Iterator[tuple[int, str]]:
    """Yield (cell number, text) of everything that is out of form in one exercise."""
    number, name, first = exercise.number, exercise.starter, exercise.first
    if name is None:
        yield first, "no starter before the check: a function with only a docstring"
        return
    last, check = exercise.open[-1]
    title, call = f"{FORM_TITLE}Check exercise {number}", f"check_{name}({name})"
    if not check.source.startswith(f"{title}\n"):
        yield last, f"the check starts with `{title}`"
    if not check.source.endswith(f"\n{call}"):
        yield last, f"the check does not end with `{call}`"
    if f"Exercise {number}: not attempted yet" not in printed(check):
        yield last, "the stored output of the check is not `not attempted yet`"
    hints = [cell.cell_type for _, cell in exercise.hint]
    if len(hints) < 2 or "code" in hints:
        yield first, "no hint, or one that is not plain Markdown"
    answers = [cell for _, cell in exercise.answer]
    calls = [c for c in answers if f"\ncheck_{name}(worked_{name})" in c.source]
    right = [f"Exercise {number}: right. " in printed(cell) for cell in calls]
    if not right or not all(right):
        yield first, f"no worked answer that check_{name} found right"
    if not answers or not answers[-1].source.startswith(TEACHES):
        yield first, f"the worked answer does not end with {TEACHES}"
