"""Write a lesson to begin with: `make new LESSON=48`.

Two notebooks, executed and in form, tests/lessons/lesson_48.py, and their lines in
_toc.yml. What must be put in place of the template says TO WRITE: a test refuses it.
"""

import re
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.execute import run
from tools.form import MIN_EXERCISES, NOTEBOOK_METADATA
from tools.notebooks import CHECKS, ROOT, data_of, path_of, read

PLACEHOLDER = "TO WRITE"
SHARED = "46"  # the lesson that cells are taken from which every lesson has

# "# %% id" begins a cell of code, "# %% [md] id" one of Markdown. A cell with nothing
# in it is the shared lesson's cell of that id.
LESSON = r'''# %% [md] title
# Lesson <number>: <title>

What would a person ask here? TO WRITE: the question that this lesson answers, in two or
three sentences, with its paper linked.

**You will**

- TO WRITE: three to five lines, each with a verb.

**You need** TO WRITE: lessons, linked, and ideas.

**It takes** about 2 minutes to read and two seconds to run (TO WRITE: the times).
# %% setup
# %% [md] digits
# %% helpers
# %% [md] softmax-idea
## The softmax

TO WRITE: an example by hand, the idea in words, and the formula:

$$\mathrm{softmax}(x)_i = \frac{e^{x_i}}{\sum_j e^{x_j}} .$$
# %% softmax
def softmax(x):
    """Softmax over the last axis.

    x: (..., n). Returns (..., n), positive numbers with sum 1.
    """
    e = x.exp()  # (..., n)
    return e / e.sum(dim=-1, keepdim=True)  # (..., n)


torch.manual_seed(0)
x = torch.randn(4, 5)  # (B, n)
compare("max abs diff vs F.softmax", softmax(x), F.softmax(x, dim=-1))
x = x.double()
compare("max abs diff vs F.softmax", softmax(x), F.softmax(x, dim=-1))
# %% [md] buys-idea
TO WRITE: what it buys, measured by taking it away.
# %% buys
for name, weights in (("softmax", softmax(x)), ("no softmax", x)):
    print(f"{name}: all weights are positive: {bool((weights > 0).all())}")
# %% [md] takeaways
## What to take away

Each claim, and the printed line that it rests on.

- TO WRITE: our softmax is PyTorch's. (`max abs diff vs F.softmax`)
- TO WRITE: in the longer format too. (`max abs diff vs F.softmax, float64`)
- TO WRITE: its weights are positive. (`softmax: all weights are positive: True`)
# %% [md] exercises
## Exercises

Each has a check that says whether your answer is right, a hint and a worked answer, in
the notebook [Exercises](<number>-exercises.ipynb).

<links>
# %% [md] next
## Where this goes next

TO WRITE: the next lessons, and the papers, up to today.
'''
LINK = "<n>. [Temperature <t>](<number>-exercises.ipynb#<n>-temperature-<t>): TO WRITE."

EXERCISES = """# %% [md] title
# Lesson <number>: Exercises

Exercises for [Lesson <number>: <title>](<number>-<slug>.ipynb), from easy to hard.

<how>

**You need** [Lesson <number>](<number>-<slug>.ipynb), and what it stands on.

**It takes** two seconds to run as it is (TO WRITE: the times).
# %% setup
# %% judge
# %% given
# @title From the lesson
<given>
"""
EXERCISE = '''# %% [md] tempered-<n>
## <n>. Temperature <t>

TO WRITE: the task, in words.
# %% tempered-<n>-starter
def tempered_<n>(x):
    """The softmax over the last axis of scores divided by <t>.

    x: (B, n). Returns (B, n).
    """
# %% tempered-<n>-check
# @title Check exercise <n>
def check_tempered_<n>(answer):
    """Hold an answer against PyTorch's softmax on random scores."""
    generator = torch.Generator().manual_seed(<n>)
    x = torch.randn(4, 5, generator=generator).double()
    judge(
        <n>,
        answer,
        [("x (4, 5)", (x,), (x / <t>).softmax(-1))],
        "what PyTorch computes",
        {
            "the scores are multiplied, not divided":
                lambda x: (x * <t>).softmax(-1),
            "the scores are not divided": lambda x: x.softmax(-1),
            "the weights are divided, not the scores":
                lambda x: x.softmax(-1) / <t>,
        },
        "It equals PyTorch's softmax to 1e-6 in float64.",
    )


check_tempered_<n>(tempered_<n>)
# %% [md] tempered-<n>-hint-heading
### Hint
# %% [md] tempered-<n>-hint
TO WRITE: a step, and not the answer.
# %% [md] tempered-<n>-answer-heading
### Worked answer
# %% tempered-<n>-answer
# @title Worked answer <n>
def worked_tempered_<n>(x):
    """The softmax over the last axis of scores divided by <t>."""
    return softmax(x / <t>)  # (B, n)


check_tempered_<n>(worked_tempered_<n>)
# %% [md] tempered-<n>-teaches
**What it teaches.** TO WRITE.
'''

ANSWER = r"""
    "tempered_<n>": "def tempered_<n>(x):\n    return (x / <t>).softmax(-1)",
"""
EQUAL = """

# Functions held to PyTorch's on drawn inputs stand below.
@equal("softmax")
def test_softmax(lesson, normal, lead, n):
    x = normal(*lead, n)
    yield lesson.softmax(x), x.softmax(dim=-1)
"""


def fill(template: str, **values) -> str:
    """Return a template with each <name> replaced by its value."""
    for name, value in values.items():
        template = template.replace(f"<{name}>", str(value))
    return template


def numbered(template: str, **values) -> str:
    """Return the template once for each exercise, with its number and temperature."""
    numbers = range(1, MIN_EXERCISES + 1)
    return "".join(fill(template, n=n, t=n + 1, **values) for n in numbers)


def source_of(name: str, cell_id: str) -> str:
    """Return the source of a cell of the notebook called `name`."""
    return next(c.source for c in read(path_of(name)).cells if c.id == cell_id)


def notebook_of(template: str, shared: str):
    """Return the notebook that a template describes, not executed."""
    cells = []
    for part in re.split(r"^# %% ", template, flags=re.MULTILINE)[1:]:
        head, _, source = part.partition("\n")
        new_cell = new_markdown_cell if head.startswith("[md] ") else new_code_cell
        id_ = head.removeprefix("[md] ")
        cells.append(new_cell(source.strip() or source_of(shared, id_), id=id_))
    metadata = nbformat.from_dict(NOTEBOOK_METADATA)
    return new_notebook(cells=cells, metadata=metadata)


def checks_of(number: str) -> str:
    """Return tests/lessons/lesson_NN.py, with the comments of the shared lesson's."""
    text = (CHECKS / f"lesson_{SHARED}.py").read_text(encoding="utf-8")
    docstring = text.partition("\n")[0].replace(SHARED, number)
    answers = numbered(ANSWER).replace("\n\n", "\n")
    shown = source_of(SHARED, "digits")
    numbers = "".join(
        f'\n    "{n}": "{why}",'
        for n, why in data_of(SHARED)["NUMBERS"].items()
        if n in shown
    )
    values = {
        "NUMBERS": f"{{{numbers}\n}}",
        "TERMS": f'["{PLACEHOLDER}"]',
        "ANSWERS": f"{{{answers}}}",
    }
    constants = [
        f"\n{comment}{name} = {values.get(name, '{}')}\n"
        for comment, name in re.findall(
            r"^((?:# .*\n)+)([A-Z]+) = ", text, re.MULTILINE
        )
    ]
    head = f"{docstring}\n\nfrom tests.checking import equal\n"
    return head + "".join(constants) + EQUAL


def with_lesson(toc: str, number: str, slug: str) -> str:
    """Return the text of _toc.yml with a lesson and its exercises, by number."""
    lines = toc.splitlines(keepends=True)
    places = []
    for index, line in enumerate(lines):
        if match := re.match(r"( *)- file: lessons/(\d+)-(?!exercises)", line):
            places.append((int(match[2]), index, match[1]))
    before = [place for place in places if place[0] < int(number)]
    _, index, indent = max(before) if before else min(places)
    if before:  # go behind the exercises of that lesson, which stand further right
        index += 1
        while index < len(lines) and lines[index].startswith(f"{indent} "):
            index += 1
    lines[index:index] = [
        f"{indent}- file: lessons/{number}-{slug}\n",
        f"{indent}  sections:\n",
        f"{indent}    - file: lessons/{number}-exercises\n",
    ]
    return "".join(lines)


def write(root: Path, number: str, slug: str, title: str) -> list[str]:
    """Write a lesson into the course at `root`; return what is wrong with it.

    Errors: `FileExistsError` where the course has a file of that number.
    """
    checks, toc = root / f"tests/lessons/lesson_{number}.py", root / "_toc.yml"
    for path in [*(root / "lessons").glob(f"{number}-*"), checks]:
        if path.exists():
            raise FileExistsError(f"{path.name} is there already; nothing was written")
    names = {"number": number, "slug": slug, "title": title}
    given = re.search(r"^def .*?(?=\n\n\n)", LESSON, re.DOTALL | re.MULTILINE)[0]
    paragraphs = source_of(f"{SHARED}-exercises", "title").split("\n\n")
    how = next(text for text in paragraphs if text.startswith("**How it goes**"))
    links = numbered(LINK + "\n")
    lesson = fill(LESSON, links=links, **names)
    exercises = fill(EXERCISES + numbered(EXERCISE), given=given, how=how, **names)
    paths = [root / f"lessons/{number}-{name}.ipynb" for name in (slug, "exercises")]
    nbformat.write(notebook_of(lesson, SHARED), paths[0])
    nbformat.write(notebook_of(exercises, f"{SHARED}-exercises"), paths[1])
    checks.write_text(checks_of(number), encoding="utf-8")
    text = with_lesson(toc.read_text(encoding="utf-8"), number, slug)
    toc.write_text(text, encoding="utf-8")
    return [line for path in paths for line in run(path)]


def main(arguments: list[str]) -> int:
    """Write the lesson of a number, a slug and a title; the last two may be missing."""
    number, slug, *title = [*arguments, "new-lesson"][: max(2, len(arguments))]
    if not re.fullmatch(r"\d{2,}", number) or not re.fullmatch(r"[a-z0-9-]+", slug):
        print("usage: make new LESSON=48 SLUG=rotary-positions", file=sys.stderr)
        return 2
    try:
        found = write(
            ROOT, number, slug, " ".join(title) or slug.replace("-", " ").capitalize()
        )
    except FileExistsError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(found) or f"written; now replace each {PLACEHOLDER}")
    return 1 if found else 0
