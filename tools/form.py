"""Say what is wrong with a notebook file without running it, and close its answers.

`problems(path)` is what `make book`, `make run` and the tests ask. The form of an
exercise notebook: below its title each exercise is a section with the task in words, a
starter (a function without a body), a check, and two sections that are closed at first,
"Hint" and "Worked answer". `close` writes the metadata by which the viewers know what
is closed; it follows from the headings and from the line `# @title` alone.
"""

import ast
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
OPENING = ("**You will**", "**You need**", "**It takes**")
EXERCISES_OPENING = ("**How it goes**", "**You need**", "**It takes**")
CLOSING = ("What to take away", "Exercises", "Where this goes next")

NOTEBOOK_METADATA = {
    "kernelspec": {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python"},
}
CELL_METADATA = {"mystnb"}
# What a lesson may import beside Python's own: Colab has more, other places have not.
PACKAGES = {"torch", "numpy", "matplotlib"}
MAX_COLUMNS = 80
MIN_ALT_LENGTH = 40
MIN_EXERCISES = 4

SKIP_COMMENT = re.compile(r"#\s*(NBVAL_|PYTEST_VALIDATE_IGNORE)\w*", re.IGNORECASE)
ABSOLUTE_PATH = re.compile(
    r"(?<![\w.:/])/(home|Users|root|tmp|var|mnt|opt|etc|work|content)/"
    r"|(?<![\w/])~/|\b[A-Z]:\\"
)
NETWORK = re.compile(
    r"\b(urllib|requests|httpx|aiohttp|socket|ftplib|huggingface_hub)\b"
    r"|\bhub\b|\btorchvision\b|https?://|\bsubprocess\b|\bos\.system\b"
)

HINT, ANSWER = "### Hint", "### Worked answer"
FORM_TITLE = "# @title "
TEACHES = "**What it teaches.**"
# jupyter.* and jp-* close a cell in JupyterLab, cellView in Colab (which also lists
# collapsed sections by id), the tag in the book. Titled code keeps its output in sight.
TITLED = {
    "cellView": "form",
    "jupyter": {"source_hidden": True},
    "tags": ["hide-input"],
}
CLOSED_CODE = {
    "cellView": "form",
    "jupyter": {"outputs_hidden": True, "source_hidden": True},
}
CLOSED_TEXT = {"jupyter": {"source_hidden": True}}


def problems(path: Path) -> list[str]:
    """Return a line for each problem of a notebook file: place, what, and the cure.

    A file that is no notebook is a problem like any other; nothing is raised.
    """
    name = display_name(path)
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text)
    except json.JSONDecodeError as error:
        return [f"{name}, line {error.lineno}: not valid JSON ({error.msg})"]
    except (OSError, UnicodeDecodeError) as error:
        return [f"{name}: cannot be read as UTF-8 text ({error})"]
    if wrong := list(id_problems(content)):
        return [f"{name}, {text}" for text in wrong]
    try:
        nbformat.validate(content)
    except nbformat.ValidationError as error:
        where = "".join(f"[{part!r}]" for part in error.absolute_path)
        return [f"{name}: not a valid notebook at {where}: {error.message}"]

    notebook = nbformat.reads(text, as_version=4)
    found = [f"{name}: {text}" for text in notebook_problems(path, notebook)]
    in_cells = [*cell_problems(notebook, is_exercises(path)), *outline(notebook)]
    if is_exercises(path):
        in_cells += exercise_problems(notebook)
    return found + [f"{name}, cell {number}: {text}" for number, text in in_cells]


def id_problems(content) -> Iterator[str]:
    """Yield the cells without an id of their own; asked first: nbformat mends ids."""
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        yield "top level: no list of cells, so not a notebook"
        return
    seen = set()
    for number, cell in enumerate(cells, start=1):
        id_ = cell.get("id") if isinstance(cell, dict) else None
        if not id_:
            yield f"cell {number}: no id; save the notebook in JupyterLab once"
        elif id_ in seen:
            yield f"cell {number}: the id {id_!r} stands twice"
        seen.add(id_)


def notebook_problems(path: Path, notebook) -> Iterator[str]:
    """Yield the problems of the notebook as a whole."""
    exercises = is_exercises(path)
    stored = {k: v for k, v in notebook.metadata.items() if k != "colab"}
    colab = {"collapsed_sections": collapsed_sections(notebook)} if exercises else None
    if stored != NOTEBOOK_METADATA or notebook.metadata.get("colab") != colab:
        yield "volatile notebook metadata; `make run` stores it clean"
    if not re.fullmatch(r"\d{2,}-[a-z0-9-]+\.ipynb", path.name):
        yield "the file name is not of the form NN-slug.ipynb"
    opening = notebook.cells[0].source if notebook.cells else ""
    title = f"# Lesson {path.name.split('-')[0]}: " + "Exercises" * exercises
    if not opening.startswith(title):
        yield f"cell 1 does not start with `{title}`"
    parts = EXERCISES_OPENING if exercises else OPENING
    positions = [opening.find(part) for part in parts]
    if -1 in positions or positions != sorted(positions):
        yield f"cell 1 does not say, in this order: {', '.join(parts)}"
    sections = [text for _, level, text in headings_of(notebook) if level == 2]
    if not exercises and tuple(sections[-len(CLOSING) :]) != CLOSING:
        yield f"the last sections are not, in this order: {', '.join(CLOSING)}"


def cell_problems(notebook, exercises: bool) -> Iterator[tuple[int, str]]:
    """Yield (cell number, text) for the problems that a cell can have by itself."""
    executed = 0
    for number, cell in enumerate(notebook.cells, start=1):
        executed += cell.cell_type == "code"
        if cell.cell_type == "code":
            texts = [*code_problems(cell, executed), *output_problems(cell)]
        elif cell.cell_type == "markdown":
            texts = [*markdown_problems(cell.source)]
        else:
            texts = ["a raw cell shows nowhere; use Markdown or code"]
        shown = cell.metadata.get("mystnb", {"image": {}})
        if set(shown) != {"image"} or set(shown["image"]) - {"alt", "classes"}:
            texts.append("mystnb metadata may say only image.alt and image.classes")
        if cell.get("attachments"):
            texts.append("an attachment shows in some viewers only; draw it in code")
        if not exercises:  # nothing in a lesson is closed
            for tag in cell.metadata.get("tags", []):
                texts.append(f"the tag {tag!r} hides a cell or its check; remove it")
            for key in sorted(set(cell.metadata) - CELL_METADATA - {"tags"}):
                texts.append(f"volatile metadata {key!r}; `make run` stores it clean")
        yield from ((number, text) for text in texts)


def code_problems(cell, executed: int) -> Iterator[str]:
    """Yield the problems of the code cell that is the executed-th of its notebook."""
    source, count = cell.source, cell.execution_count
    if not source.strip():
        yield "an empty code cell"
    if count is None:
        yield "never run (execution_count is null); `make run` executes it"
    elif count != executed:
        yield f"run out of order: [{count}] should be [{executed}]"
    if SKIP_COMMENT.search(source):
        yield "a comment turns nbval's comparison off"
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        nodes = None
    if nodes is None or any(getattr(n, "id", None) == "get_ipython" for n in nodes):
        yield "a magic, a shell command or a syntax error, not plain Python"
    for module in sorted(imports_of(nodes or []) - PACKAGES - sys.stdlib_module_names):
        yield f"imports {module!r}; a lesson needs only {', '.join(sorted(PACKAGES))}"
    if match := NETWORK.search(source):
        yield f"reaches for the network or a download: {match.group()!r}"
    if match := ABSOLUTE_PATH.search(source):
        yield f"an absolute path: {match.group()!r}"
    for line, text in enumerate(source.splitlines(), start=1):
        if len(text) > MAX_COLUMNS:
            yield f"line {line} is {len(text)} columns wide, over {MAX_COLUMNS}"


def imports_of(nodes: list) -> set[str]:
    """Return the top-level names of the modules that syntax nodes import."""
    imports = [node for node in nodes if isinstance(node, ast.Import)]
    names = [alias.name for node in imports for alias in node.names]
    names += [node.module or "." for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] or "." for name in names}


def output_problems(cell) -> Iterator[str]:
    """Yield the problems of what a code cell has stored."""
    images = 0
    for output in cell.outputs:
        if output.output_type == "error":
            yield f"a stored exception: {output.ename}: {output.evalue}"
        if output.get("name") == "stderr":
            yield f"wrote to stderr: {output.text.strip().partition(chr(10))[0]}"
        if output.get("metadata"):
            yield "volatile metadata on an output; `make run` stores it clean"
        data = output.get("data", {})
        images += any(key.startswith("image/") for key in data)
        texts = (output.get("text", ""), *map(data.get, ("text/plain", "text/html")))
        if any(ABSOLUTE_PATH.search(text or "") for text in texts):
            yield "an absolute path in the output"
    alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
    if images > 1:
        yield f"{images} figures in one cell; one figure makes one point"
    if images and len(alt.strip()) < MIN_ALT_LENGTH:
        yield (
            "a figure without alternative text; say what it shows in the "
            "cell's metadata, mystnb.image.alt"
        )
    if alt and not images:
        yield "an alternative text but no stored figure"


# ---- Markdown, as JupyterLab, Colab and GitHub read it -------------------------------

# CommonMark with tables, and no HTML. Formulas are taken out before, as viewers do it.
PLAIN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
# Code comes first, for a dollar in it is one. No formula goes over an empty line.
FORMULA = re.compile(
    r"(?P<code>^ *```.*?^ *```|`[^`]*`)"
    r"|(?P<display>\$\$(?:(?!\n\n)[^$])+\$\$)|\$(?:(?!\n\n)[^$])+\$",
    re.DOTALL | re.MULTILINE,
)
DISPLAYED = "\ue000"  # stands for a formula on lines of its own
STAR = (
    '<span class="landmark-paper" role="img" aria-label="landmark paper">&#9733;</span>'
)
REPLACED = {"softbreak": "\n", "hardbreak": "\n", "code_inline": "x"}
# What still looks like markup was none to a plain viewer: a reader would see it raw.
LEFT = {
    "a directive": r":::|```|~~~",
    "a brace of a role, an attribute or a substitution": r"[{}]",
    "a dollar without its partner": r"\$",
    "a bar of no table": r"\|",
    "a footnote or a power": r"\^",
    "a link that is none": r"\]\(|\]\[",
    "emphasis that is none": r"\*\*|__|(?<!\w)[*_](?=\w)",
    "strikethrough that is none": r"~~",
    "a mark or a subscript": r"==\w|~\w+~",
    "a backtick": r"`",
    "a box to tick": r"^\[[ xX]\]",
    "an alert": r"^\[!\w+\]",
    "a picture by its name": r"(?<![\w:]):[a-z_]+:(?![\w:])",
    "a definition": r"^: ",
    "a comment or block break": r"^(%|\+\+\+)",
    "a label": rf"^\(\S+\)=|{DISPLAYED} *\(\S+\)$",
    "HTML": r"</?[a-zA-Z!]",
    "a heading that is none": r"^#",
}


def parse(source: str) -> tuple[list, dict]:
    """Return the Markdown tokens of a text without its formulas, and its references."""

    def replace(match):
        """Return code as it is, a formula as one letter behind its line breaks."""
        letter = DISPLAYED if match["display"] else "x"
        return match["code"] or "\n" * match[0].count("\n") + letter

    environment = {}
    tokens = PLAIN.parse(FORMULA.sub(replace, source.replace(STAR, "")), environment)
    return tokens, environment.get("references", {})


def prose(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each block of Markdown, without code, formulas and targets.

    Of a fenced block the line that opens it, if that says more than a language.
    """
    for token in parse(source)[0]:
        if token.type == "fence" and not re.fullmatch("[a-z]*", token.info):
            yield token.map[0] + 1, f"```{token.info}"
        if token.type == "inline":
            parts = (REPLACED.get(part.type, part.content) for part in token.children)
            yield token.map[0] + 1, "".join(parts)


def markdown_problems(source: str) -> Iterator[str]:
    """Yield the problems of a Markdown cell."""
    for first, text in prose(source):
        for what, pattern in LEFT.items():
            if match := re.search(pattern, text, re.MULTILINE):
                line = text.count("\n", 0, match.start())
                shown = text.splitlines()[line].replace(DISPLAYED, "$$").strip()[:40]
                what = f"{what} shows raw in JupyterLab and Colab"
                yield f"line {first + line}: {what}: {shown!r}"
        if match := ABSOLUTE_PATH.search(text):
            yield f"line {first}: an absolute path: {match.group()!r}"
    tokens, references = parse(source)
    for label in references:
        yield f"a link by reference, [{label}]; write [text](target)"
    for token in tokens:
        for part in token.children or []:
            place = f"line {token.map[0] + 1}"
            if part.type == "image":
                yield f"{place}: an image file; a lesson draws in code"
            target = part.attrGet("href") or ""
            if re.match(r"/|(?!\w+:)[^#]*\.html?(#|$)", target):
                yield (
                    f"{place}: the link {target!r} works only in the "
                    "built site; link the .ipynb or .md file"
                )


def headings_of(notebook) -> Iterator[tuple[int, int, str]]:
    """Yield (cell number, level, text) of every Markdown heading."""
    for number, cell in enumerate(notebook.cells, start=1):
        tokens = parse(cell.source)[0] if cell.cell_type == "markdown" else []
        for opening, text in zip(tokens, tokens[1:], strict=False):
            if opening.type == "heading_open":
                yield number, int(opening.tag[1]), text.content


def outline(notebook) -> Iterator[tuple[int, str]]:
    """Yield (cell number, text) where the outline of headings breaks."""
    previous = 0
    for number, level, text in headings_of(notebook):
        if level == 1 and previous:
            yield number, f"a second title: {text!r}"
        elif level > previous + 1:
            yield number, f"the heading {text!r} jumps from level {previous} to {level}"
        previous = level


# ---- exercises -----------------------------------------------------------------------


@dataclass
class Exercise:
    """One exercise: its cells, each with its number in the notebook.

    open: from the heading to the check; hint and answer: what is closed.
    """

    number: int
    title: str
    open: list = field(default_factory=list)
    hint: list = field(default_factory=list)
    answer: list = field(default_factory=list)

    @property
    def first(self) -> int:
        """Return the number of the cell that holds the heading."""
        return self.open[0][0]

    @property
    def starter(self) -> str | None:
        """Return the name of the starter's function; None where it is no starter."""
        code = [cell for _, cell in self.open if cell.cell_type == "code"]
        return starter_name(code[-2].source) if len(code) > 1 else None


def exercises_of(notebook) -> list[Exercise]:
    """Return the exercises of a notebook, in order."""
    found = []
    for number, (cell, section) in enumerate(sections(notebook), start=1):
        heading = re.match(r"## (?:(\d+)\. )?(.+)", cell.source)
        if cell.cell_type == "markdown" and heading:
            found.append(Exercise(int(heading[1] or 0), heading[2]))
        if found:
            place = {HINT: found[-1].hint, ANSWER: found[-1].answer}
            place.get(section, found[-1].open).append((number, cell))
    return [exercise for exercise in found if exercise.number]


def starter_name(source: str) -> str | None:
    """Return the name of the one function that has only a docstring, or None."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return None
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
        return None
    only = body[0].body
    return body[0].name if len(only) == 1 and ast.get_docstring(body[0]) else None


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
        return CLOSED_TEXT if section else {}
    if section:
        return CLOSED_CODE
    return TITLED if cell.source.startswith(FORM_TITLE) else {}


def collapsed_sections(notebook) -> list[str]:
    """Return Colab's list of collapsed sections: the ids of the heading cells."""
    return [cell.id for cell in notebook.cells if cell.source in (HINT, ANSWER)]


def close(notebook) -> None:
    """Write the metadata of closed cells, in place; figures keep theirs."""
    for cell, section in sections(notebook):
        kept = {k: v for k, v in cell.metadata.items() if k in CELL_METADATA}
        cell.metadata = nbformat.from_dict({**kept, **closing_metadata(cell, section)})
    colab = {"collapsed_sections": collapsed_sections(notebook)}
    notebook.metadata["colab"] = nbformat.from_dict(colab)


def exercise_problems(notebook) -> Iterator[tuple[int, str]]:
    """Yield (cell number, text) of everything that is out of form."""
    for number, (cell, section) in enumerate(sections(notebook), start=1):
        stored = {k: v for k, v in cell.metadata.items() if k not in CELL_METADATA}
        if stored != closing_metadata(cell, section):
            yield number, "not the metadata of its place; `make run` sets it"
        is_code = section and cell.cell_type == "code"
        if is_code and not cell.source.startswith(FORM_TITLE):
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
    number, name = exercise.number, exercise.starter
    if name is None:
        text = "one function with a docstring and nothing else"
        place = "the last code cell but one before the hint is no starter"
        yield exercise.first, f"{place}: {text}"
        return
    last, check = exercise.open[-1]
    title = f"{FORM_TITLE}Check exercise {number}"
    if not check.source.startswith(f"{title}\n"):
        yield last, f"the check starts with `{title}`"
    if f"def check_{name}(" not in check.source:
        yield last, f"the check does not define check_{name}"
    if not check.source.endswith(f"\ncheck_{name}({name})"):
        yield last, f"the check does not end with `check_{name}({name})`"
    if not printed(check).startswith(f"Exercise {number}: not attempted yet"):
        yield last, "the stored output of the check is not `not attempted yet`"
    hints = [cell for _, cell in exercise.hint]
    if len(hints) < 2 or any(cell.cell_type != "markdown" for cell in hints):
        yield exercise.first, "no hint, or one that is not plain Markdown"
    answers = [cell for _, cell in exercise.answer]
    calls = [c for c in answers if f"\ncheck_{name}(worked_{name})" in c.source]
    if not calls:
        yield exercise.first, f"no worked answer calls check_{name}(worked_{name})"
    if any(f"Exercise {number}: right. " not in printed(cell) for cell in calls):
        yield exercise.first, "the check did not find the worked answer right"
    if not answers or not answers[-1].source.startswith(TEACHES):
        yield exercise.first, f"the worked answer does not end with {TEACHES}"
