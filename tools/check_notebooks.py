"""Say what is wrong with a lesson's notebook file, without running it.

`problems(path)` is the one entry point. `make book` calls it before it
builds, the tests call it on every lesson and on planted faults. A problem is
one line of text that names the file, the cell (counted from 1) and the cure.
From the command line: `python tools/check_notebooks.py [notebook ...]`.
"""

import ast
import json
import re
import sys
from pathlib import Path

import nbformat

import exercise_form
from exercise_form import text_of

ROOT = Path(__file__).resolve().parent.parent
LESSONS = ROOT / "lessons"

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
# What a lesson may import beside what comes with Python: Colab has more, others have not.
PACKAGES = {"torch", "numpy", "matplotlib"}
MAX_COLUMNS = 80
MIN_ALT_LENGTH = 40

STAR = (
    '<span class="landmark-paper" role="img" aria-label="landmark paper">&#9733;</span>'
)
# Syntax that only the book understands; JupyterLab and Colab show it raw.
RAW_SYNTAX = {
    "a directive": r"^[\s>*+-]*(`{3,}|~{3,}|:{3,})\s*\{",
    "a role": r"\{[a-z][a-z0-9:-]*\}`",
    "a label": r"^\([^()\s]+\)=\s*$|\$\$\s*\([^()\s]+\)\s*$",
    "a comment or block break": r"^(%|\+\+\+)",
    "an attribute block": r"^\{[#.][^}]*\}\s*$",
}
SKIP_COMMENT = re.compile(r"#\s*(NBVAL_|PYTEST_VALIDATE_IGNORE)\w*", re.IGNORECASE)
ABSOLUTE_PATH = re.compile(
    r"(?<![\w.:/])/(home|Users|root|tmp|var|mnt|opt|etc|work|content)/"
    r"|(?<![\w/])~/|\b[A-Z]:\\"
)
NETWORK = re.compile(
    r"\b(urllib|requests|httpx|aiohttp|socket|ftplib|huggingface_hub)\b"
    r"|\bhub\b|\btorchvision\b|https?://|\bsubprocess\b|\bos\.system\b"
)
LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)")


def problems(path):
    """Every problem of one notebook file.

    path: a pathlib.Path to an .ipynb file.
    Returns a list of lines; empty where nothing is wrong. Raises nothing for
    bad input: a file that is no notebook is a problem like any other.
    """
    name = display_name(path)
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        return [f"{name}, line {error.lineno}: not valid JSON ({error.msg})"]
    except (OSError, UnicodeDecodeError) as error:
        return [f"{name}: cannot be read as UTF-8 text ({error})"]
    if wrong := id_problems(notebook):
        return [f"{name}, {text}" for text in wrong]
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        where = "".join(f"[{part!r}]" for part in error.absolute_path)
        return [f"{name}: not a valid notebook at {where}: {error.message}"]

    found = [f"{name}: {text}" for text in check_notebook(path, notebook)]
    executed = 0
    for number, cell in enumerate(notebook["cells"], start=1):
        source = text_of(cell["source"])
        if cell["cell_type"] == "code":
            executed += 1
            texts = check_code_cell(cell, source, executed)
        elif cell["cell_type"] == "markdown":
            texts = check_markdown_cell(cell, source)
        else:
            texts = ["a raw cell shows nowhere; use Markdown or code"]
        texts = [*texts, *check_any_cell(cell)]
        if not exercise_form.is_exercises(path):
            texts += check_lesson_metadata(cell)
        found += [f"{name}, cell {number}: {text}" for text in texts]
    found += [
        f"{name}, cell {number}: {text}" for number, text in heading_problems(notebook)
    ]
    if exercise_form.is_exercises(path):
        for number, text in exercise_form.problems_of(notebook):
            found.append(f"{name}, cell {number}: {text}")
    return found


def display_name(path):
    """The path as messages show it: relative to the repository."""
    try:
        return path.resolve().relative_to(ROOT).as_posix()
    except ValueError:
        return path.name


def id_problems(notebook):
    """Cells without an id of their own; asked first: nbformat repairs ids."""
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        return ["top level: no list of cells, so not a notebook"]
    found, seen = [], set()
    for number, cell in enumerate(cells, start=1):
        id_ = cell.get("id") if isinstance(cell, dict) else None
        if not id_:
            found.append(f"cell {number}: no id; save the notebook in JupyterLab once")
        elif id_ in seen:
            found.append(f"cell {number}: the id {id_!r} stands twice")
        seen.add(id_)
    return found


def check_notebook(path, notebook):
    """Problems of the notebook as a whole."""
    exercises = exercise_form.is_exercises(path)
    ours = {k: v for k, v in notebook["metadata"].items() if k != "colab"}
    colab = notebook["metadata"].get("colab")
    collapsed = {"collapsed_sections": exercise_form.collapsed_sections(notebook)}
    if ours != NOTEBOOK_METADATA or colab != (collapsed if exercises else None):
        yield "volatile notebook metadata; `make run` stores it clean"
    number = path.name.split("-")[0]
    if not re.fullmatch(r"\d{2,}-[a-z0-9-]+\.ipynb", path.name):
        yield "the file name is not of the form NN-slug.ipynb"
    first = notebook["cells"][0] if notebook["cells"] else {"source": ""}
    opening = text_of(first["source"])
    title = "Exercises" if exercises else ""
    if not opening.startswith(f"# Lesson {number}: {title}"):
        yield f"cell 1 does not start with `# Lesson {number}: {title or 'Title'}`"
    parts = EXERCISES_OPENING if exercises else OPENING
    positions = [opening.find(part) for part in parts]
    if -1 in positions or positions != sorted(positions):
        yield f"cell 1 does not say, in this order: {', '.join(parts)}"
    headings = [text for _, level, text in headings_of(notebook) if level == 2]
    if not exercises and tuple(headings[-len(CLOSING) :]) != CLOSING:
        yield f"the last sections are not, in this order: {', '.join(CLOSING)}"


def check_lesson_metadata(cell):
    """Metadata that a lesson's cell must not have; nothing in it is closed."""
    for tag in cell["metadata"].get("tags", []):
        yield f"the tag {tag!r} hides a cell or turns its check off; remove it"
    for key in sorted(set(cell["metadata"]) - CELL_METADATA - {"tags"}):
        yield f"volatile metadata {key!r}; `make run` stores it clean"


def check_any_cell(cell):
    """Problems that a cell of any type can have."""
    shown = cell["metadata"].get("mystnb", {"image": {}})
    if set(shown) != {"image"} or set(shown["image"]) - {"alt", "classes"}:
        yield "mystnb metadata may say only image.alt and image.classes"
    if cell.get("attachments"):
        yield "an attachment is shown by some viewers only; draw it in code"


def check_code_cell(cell, source, executed):
    """Problems of a code cell that should have been run as number executed."""
    count = cell["execution_count"]
    if not source.strip():
        yield "an empty code cell"
    if count is None:
        yield "never run (execution_count is null); `make run` executes it"
    elif count != executed:
        yield f"run out of order: [{count}] should be [{executed}]"
    if SKIP_COMMENT.search(source):
        yield "a comment turns nbval's comparison off"
    if not is_plain_python(source):
        yield "a magic, a shell command or a syntax error, not plain Python"
    for module in sorted(imports_of(source) - PACKAGES - sys.stdlib_module_names):
        yield f"imports {module!r}; a lesson needs only {', '.join(sorted(PACKAGES))}"
    if match := NETWORK.search(source):
        yield f"reaches for the network or a download: {match.group()!r}"
    if match := ABSOLUTE_PATH.search(source):
        yield f"an absolute path: {match.group()!r}"
    for line, text in enumerate(source.splitlines(), start=1):
        if len(text) > MAX_COLUMNS:
            yield f"line {line} is {len(text)} columns wide, over {MAX_COLUMNS}"
    yield from check_outputs(cell)


def is_plain_python(source):
    """Whether the source is Python, with nothing of IPython's own."""
    try:
        names = ast.walk(ast.parse(source))
    except SyntaxError:
        return False
    return not any(getattr(node, "id", None) == "get_ipython" for node in names)


def imports_of(source):
    """The top-level names of the modules that a cell imports; none of broken code."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return set()
    named = [node for node in nodes if isinstance(node, ast.Import)]
    names = [alias.name for node in named for alias in node.names]
    names += [node.module or "." for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] or "." for name in names}


def check_outputs(cell):
    """Problems of what a code cell has stored."""
    images = 0
    for output in cell["outputs"]:
        kind = output["output_type"]
        if kind == "error":
            yield f"a stored exception: {output['ename']}: {output['evalue']}"
        elif kind == "stream" and output["name"] == "stderr":
            first = text_of(output["text"]).strip().splitlines()[:1]
            yield f"wrote to stderr: {''.join(first)}"
        if output.get("metadata"):
            yield "volatile metadata on an output; `make run` stores it clean"
        data = output.get("data", {})
        images += any(key.startswith("image/") for key in data)
        for key in ("text/plain", "text/html"):
            text = text_of(data.get(key, ""))
            if ABSOLUTE_PATH.search(text):
                yield "an absolute path in the output"
        if ABSOLUTE_PATH.search(text_of(output.get("text", ""))):
            yield "an absolute path in the output"
    alt = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "")
    if images > 1:
        yield f"{images} figures in one cell; one figure makes one point"
    if images and len(alt.strip()) < MIN_ALT_LENGTH:
        yield (
            "a figure without alternative text; say what it shows in the "
            "cell's metadata, mystnb.image.alt"
        )
    if alt and not images:
        yield "an alternative text but no stored figure"


def check_markdown_cell(cell, source):
    """Problems of a Markdown cell."""
    for line, text in prose_lines(source):
        for what, pattern in RAW_SYNTAX.items():
            if re.search(pattern, text):
                yield (
                    f"line {line}: {what} shows raw in JupyterLab and Colab: "
                    f"{text.strip()[:40]!r}"
                )
        for tag in re.findall(r"<[a-zA-Z!/][^>]*", text.replace(STAR, "")):
            yield f"line {line}: raw HTML {tag!r}; nothing verifies it"
        if re.match(r"\s*\[[^\]]+\]:\s", text):
            yield f"line {line}: a link by reference; write [text](target)"
        if ABSOLUTE_PATH.search(text):
            yield f"line {line}: an absolute path"
        if re.search(r"!\[[^\]]*\]\(", text):
            yield f"line {line}: an image file; a lesson draws in code"
        for target in LINK.findall(text):
            if target.startswith("/") or target.split("#")[0].endswith(
                (".html", ".htm")
            ):
                yield (
                    f"line {line}: the link {target!r} works only in the "
                    "built site; link the .ipynb or .md file"
                )


def prose_lines(source):
    """(line number, text) of Markdown, without code in backticks or fences.

    The opening fence itself is kept: a directive is one.
    """
    fenced = False
    for number, text in enumerate(source.splitlines(), start=1):
        is_fence = text.lstrip().startswith(("```", "~~~"))
        if not fenced:
            # a role's closing text stays, so that {role}`x` is still seen
            yield number, re.sub(r"(?<!\})`[^`]*`", "``", text)
        if is_fence:
            fenced = not fenced


def headings_of(notebook):
    """(cell number, level, text) of every Markdown heading."""
    return [
        (number, len(match.group(1)), match.group(2).strip())
        for number, cell in enumerate(notebook["cells"], start=1)
        if cell["cell_type"] == "markdown"
        for _, text in prose_lines(text_of(cell["source"]))
        if (match := re.match(r"(#{1,6})\s+(.*)", text))
    ]


def heading_problems(notebook):
    """(cell number, text) where the outline breaks."""
    previous = 0
    for number, level, text in headings_of(notebook):
        if level == 1 and previous:
            yield number, f"a second title: {text!r}"
        elif level > previous + 1:
            yield (
                number,
                (f"the heading {text!r} jumps from level {previous} to {level}"),
            )
        previous = level


def main(arguments):
    """Print the problems of the given notebooks, or of all; 1 if any."""
    paths = [Path(argument) for argument in arguments]
    found = [
        line
        for path in paths or sorted(LESSONS.glob("*.ipynb"))
        for line in problems(path)
    ]
    print("\n".join(found) if found else "no problems found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
