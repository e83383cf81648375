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

# "# %% id" begins a cell of code, "# %% [md] id" one of Markdown; some have METADATA.
# A cell with nothing in it is the shared lesson's cell of that id.
LESSON = r"""# %% [md] title
# Lesson <number>: <title>

TO WRITE: which question, that a person could ask, is answered? Its paper, linked.

**You will** TO WRITE: three to five lines, each with a verb.

**You need** TO WRITE: lessons, linked, and ideas.

**It takes** TO WRITE: 2 minutes to skim, 5 with the code, and two seconds to run.
# %% [md] apparatus
The closed cells hold what every lesson needs; [How we check](../checking.md) says
why, and which digits may differ on your machine.
# %% setup
# %% helpers
# %% drawing
# %% picture
net = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=-1))
trace = Trace(net, {"x": torch.zeros(2, 4)}, [nn.Linear, nn.Softmax])
print(trace)
draw(trace)
plt.show()
# %% [md] picture-text
TO WRITE: what to look at in the drawing.
# %% [md] softmax-idea
## The softmax

TO WRITE: an example by hand, the idea in words, and the formula.
# %% softmax
<softmax>


torch.manual_seed(0)
x = torch.randn(2, 3, 4, 5)  # (B, H, T, n)
for x in (x, x.double()):
    compare("max abs diff vs F.softmax", softmax(x), F.softmax(x, dim=-1))
weights = softmax(x)  # (B, H, T, n)
same = weights.argmax(dim=-1) == x.argmax(dim=-1)  # (B, H, T)
print(f"softmax: all weights are positive: {bool((weights > 0).all())}")
print(f"softmax: the largest score gets the largest weight: {bool(same.all())}")
# %% [md] takeaways
## What to take away

- TO WRITE: what a softmax is for.
- TO WRITE: our softmax is PyTorch's.
- TO WRITE: in the longer format too.
- TO WRITE: its weights are positive.
- TO WRITE: the largest score wins.
# %% [md] exercises
## Exercises

In the notebook [Exercises](<number>-exercises.ipynb), with checks and hints.

<links>
# %% [md] next
## Where this goes next

TO WRITE: the next lessons, and the papers, up to today.
"""
# For each claim the beginnings of the printed lines that it rests on.
EVIDENCE = [
    ["softmax: all weights are positive: True"],
    ["max abs diff vs F.softmax"],
    ["max abs diff vs F.softmax, float64"],
    ["softmax: all weights are positive: True"],
    ["softmax: the largest score gets the largest weight: True"],
]
ALT = "TO WRITE: what the drawing shows, for those who cannot see it."
METADATA = {
    "picture": {"mystnb": {"image": {"alt": ALT, "classes": "dark-light"}}},
    "takeaways": {"evidence": EVIDENCE},
}
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
NUMBERS = {}
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
        source, metadata = source.strip() or shared[id_], METADATA.get(id_, {})
        cells.append(new_cell(source, id=id_, metadata=metadata))
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
    names = {"softmax": SOFTMAX, "links": numbered(LINK)}
    names |= {"number": number, "slug": slug, "title": slug.replace("-", " ").title()}
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
