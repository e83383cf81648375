"""Write a lesson to begin with: `make new LESSON=48`.

Two notebooks, executed and in form, tests/lessons/lesson_48.py, and their lines in
_toc.yml. What must be put in place of the template says TO WRITE: a test refuses it.
"""

import re
from pathlib import Path

import nbformat

from tools.execute import run
from tools.form import MIN_EXERCISES
from tools.notebooks import ROOT, path_of, read

PLACEHOLDER = "TO WRITE"
SHARED = ("46", "46-exercises")  # cells are taken from them which every lesson has

# "# %% id" begins a cell of code, "# %% [md] id" one of Markdown. A cell with nothing
# in it is the shared lesson's cell of that id.
LESSON = r"""# %% [md] title
# Lesson <number>: <title>

TO WRITE: which question does this lesson answer? Then its paper, linked.

**You will** TO WRITE: three to five lines, each with a verb.

**You need** TO WRITE: lessons, linked, and ideas.

**It takes** about 2 minutes to read and two seconds to run (TO WRITE: the times).
# %% setup
# %% [md] digits
# %% helpers
# %% [md] softmax-idea
## The softmax

TO WRITE: an example by hand, the idea in words, and the formula.
# %% softmax
<softmax>


torch.manual_seed(0)
x = torch.randn(2, 3, 4, 5)  # (B, H, T, n)
for x in (x, x.double()):
    compare("max abs diff vs F.softmax", softmax(x), F.softmax(x, dim=-1))
print(f"softmax: all weights are positive: {bool((softmax(x) > 0).all())}")
# %% [md] takeaways
## What to take away

Each claim, and the printed line that it rests on.

- TO WRITE: our softmax is PyTorch's. (`max abs diff vs F.softmax`)
- TO WRITE: in the longer format too. (`max abs diff vs F.softmax, float64`)
- TO WRITE: its weights are positive. (`softmax: all weights are positive: True`)
# %% [md] exercises
## Exercises

In the notebook [Exercises](<number>-exercises.ipynb), with checks and hints.

<links>
# %% [md] next
## Where this goes next

TO WRITE: the next lessons, and the papers, up to today.
"""
SOFTMAX = '''def softmax(x):
    """Softmax over the last axis of x (..., n): positive numbers with sum 1."""
    e = x.exp()  # (..., n)
    return e / e.sum(dim=-1, keepdim=True)  # (..., n)'''
LINK = "<n>. [Divided by <t>](<number>-exercises.ipynb#<n>-divided-by-<t>): TO WRITE.\n"

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
<softmax>
"""
EXERCISE = '''# %% [md] tempered-<n>
## <n>. Divided by <t>

TO WRITE: the task, in words.
# %% tempered-<n>-starter
def tempered_<n>(x):
    """The softmax over the last axis of x (B, n) divided by <t>: (B, n)."""
# %% tempered-<n>-check
# @title Check exercise <n>
def check_tempered_<n>(answer):
    """Hold an answer against PyTorch's softmax on random scores."""
    generator = torch.Generator().manual_seed(<n>)
    x = torch.randn(4, 5, generator=generator).double()
    mistakes = {
        "the scores are multiplied": lambda x: (x * <t>).softmax(-1),
        "the scores are not divided": lambda x: x.softmax(-1),
        "the weights are divided": lambda x: x.softmax(-1) / <t>,
    }
    cases = [("x (4, 5)", (x,), (x / <t>).softmax(-1))]
    judge(<n>, answer, cases, "PyTorch's", mistakes, "It is PyTorch's.")


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

CHECKS = '''"""Lesson <number>: what its checks need to know."""

from tests.checking import equal

BANDS = {}
NUMBERS = {
    "1e-5": "the limit in float32, asserted by compare",
    "1e-12": "the limit in float64, asserted by compare",
}
ANSWERS = {
    "<number>-exercises": """
<answers>"""
}


@equal("softmax")
def test_softmax(lesson, normal, lead, n):
    x = normal(*lead, n)
    yield lesson.softmax(x), x.softmax(dim=-1)
'''
RIGHT = "def tempered_<n>(x):\n    return (x / <t>).softmax(-1)\n"


def fill(template: str, **values) -> str:
    """Return a template with each <name> replaced by its value."""
    for name, value in values.items():
        template = template.replace(f"<{name}>", str(value))
    return template


def numbered(template: str) -> str:
    """Return the template once for each exercise, with its number and divisor."""
    return "".join(fill(template, n=n, t=n + 1) for n in range(1, MIN_EXERCISES + 1))


def notebook_of(template: str, shared: dict):
    """Return the notebook that a template describes, not executed."""
    cells = []
    for part in re.split(r"^# %% ", template, flags=re.MULTILINE)[1:]:
        head, _, source = part.partition("\n")
        *kind, id_ = head.split()
        new_cell = nbformat.v4.new_markdown_cell if kind else nbformat.v4.new_code_cell
        cells.append(new_cell(source.strip() or shared[id_], id=id_))
    return nbformat.v4.new_notebook(cells=cells)


def with_lesson(toc: str, number: str, slug: str) -> str:
    """Return the text of _toc.yml with a lesson and its exercises, by number."""
    entry = r"^      - file: lessons/(\d+)-.*\n(?:        .*\n)*"
    entries = [*re.finditer(entry, toc, re.MULTILINE)]
    later = [match.start() for match in entries if match[1] > number]
    place = later[0] if later else entries[-1].end()
    lesson = f"      - file: lessons/{number}-{slug}\n        sections:\n"
    lesson += f"          - file: lessons/{number}-exercises\n"
    return toc[:place] + lesson + toc[place:]


def write(root: Path, number: str, slug: str) -> list[str]:
    """Write a lesson into the course at `root`; return what is wrong with it."""
    checks, toc = root / f"tests/lessons/lesson_{number}.py", root / "_toc.yml"
    for path in [*root.glob(f"lessons/{number}-*"), checks]:
        if path.exists():
            raise SystemExit(f"{path.name} is there already; nothing was written")
    names = {"softmax": SOFTMAX, "links": numbered(LINK), "number": number}
    names |= {"slug": slug, "title": slug.replace("-", " ").title()}
    templates = {slug: LESSON, "exercises": EXERCISES + numbered(EXERCISE)}
    paths = [root / f"lessons/{number}-{name}.ipynb" for name in templates]
    for path, lesson, template in zip(paths, SHARED, templates.values(), strict=True):
        shared = {cell.id: cell.source for cell in read(path_of(lesson)).cells}
        how = "".join(re.findall(r"\*\*How it goes.*", shared["title"]))
        nbformat.write(notebook_of(fill(template, how=how, **names), shared), path)
    checks.write_text(fill(CHECKS, answers=numbered(RIGHT), **names), encoding="utf-8")
    contents = with_lesson(toc.read_text(encoding="utf-8"), number, slug)
    toc.write_text(contents, encoding="utf-8")
    return [line for path in paths for line in run(path)]


def main(arguments: list[str]) -> int:
    """Write the lesson of a number and a slug; the slug may be missing."""
    match = re.fullmatch(r"(\d\d)(?: ([a-z0-9-]+))?", " ".join(arguments))
    if not match:
        raise SystemExit('usage: make new LESSON="48 rotary-positions"')
    found = write(ROOT, match[1], match[2] or "new-lesson")
    print("\n".join(found) or f"written; now replace each {PLACEHOLDER}")
    return 1 if found else 0
