"""Adding a lesson takes the files and lines that CONTRIBUTING.md lists, and no
code: the checks find the lesson by themselves, and miss whatever is left out.

A copy of the book gets Lesson 48, which is tiny and whole. All is green there;
without any one of its parts the check that asks for that part is red.
"""

import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest
from helpers_book import ROOT, build, copy_repository, run_tool
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from check_notebooks import NOTEBOOK_METADATA
from lesson_code import EXERCISES, LESSON_FILES

# ---- the lesson: "# %% id" starts a code cell, "# %% [md] id" a Markdown cell -----

LESSON = r'''# %% [md] title
# Lesson 48: A Softmax That Does Not Overflow

The softmax of [Lesson 45](45-attention.ipynb) is a quotient of exponentials, and
those of large scores are too large for a float. Is it lost for such scores?

**You will** write a softmax that takes scores of any size.

**You need** [Lesson 45](45-attention.ipynb).

**It takes** about 2 minutes to read and two seconds to run.

# %% setup
import copy
import math

import torch
import torch.nn.functional as F

torch.set_num_threads(1)  # printed digits must not depend on the core count
version = torch.__version__.split("+")[0]
print(f"the outputs below were printed by torch {version}")

# %% helpers
def compare(label, ours, reference):
    """Print the largest absolute difference between two tensors.

    Raises AssertionError where it exceeds 1e-5, in float64 1e-12.
    """
    limit = 1e-5
    if reference.dtype == torch.float64:
        label, limit = f"{label}, float64", 1e-12
    diff = (ours - reference).abs().max().item()
    print(f"{label}: {diff:.2e}")
    torch.testing.assert_close(ours, reference, rtol=0, atol=limit)

# %% [md] idea
## Overflow

A number added to all scores of a row changes nothing, since it cancels:
$\mathrm{softmax}(x + c) = \mathrm{softmax}(x)$. So we may subtract the largest.

# %% softmax
def softmax(x):
    """Softmax over the last axis.

    x: (..., n). Returns (..., n), positive numbers with sum 1.
    """
    top = x.amax(dim=-1, keepdim=True)  # (..., 1)
    e = (x - top).exp()  # (..., n), at most 1
    return e / e.sum(dim=-1, keepdim=True)  # (..., n)

# %% parity
generator = torch.Generator().manual_seed(0)
scores = torch.randn(4, 5, generator=generator)
for x in (scores, scores.double()):
    compare("max abs diff vs F.softmax", softmax(x), F.softmax(x, dim=-1))

# %% shift
compare("x + 100 vs x, max abs diff", softmax(x + 100), softmax(x))

# %% overflow
large = torch.tensor([1000.0, 1001.0])
plain = large.exp() / large.exp().sum()
print(f"at 1000, the plain formula is finite: {plain.isfinite().all()}")
print(f"at 1000, ours is finite: {softmax(large).isfinite().all()}")

# %% [md] take-away
## What to take away

Each claim, and the printed line that it rests on.

- Our softmax is PyTorch's, down to rounding. (`max abs diff vs F.softmax`)
- A number added to all scores changes nothing. (`x + 100 vs x, max abs diff`)
- Large scores break the plain formula, not ours. (`at 1000, ours is finite: True`)

# %% [md] exercises
## Exercises

{exercises}

# %% [md] next
## Where this goes next

Back to [Lesson 45](45-attention.ipynb), whose masked scores are $-\infty$.
'''

SUM = "e.sum(dim=-1, keepdim=True)"
LESSON_FAULTS = [
    ("the largest is not subtracted", "softmax", "(x - top)", "x", "overflow"),
    ("the largest is added", "softmax", "(x - top)", "(x + top)", "overflow"),
    ("the scores change sign", "softmax", "(x - top)", "(top - x)", "parity"),
    ("powers of two", "softmax", "exp()", "exp2()", "parity"),
    ("no exponential", "softmax", "e = (x - top).exp()", "e = x", "parity"),
    ("a sum over rows", "softmax", SUM, "e.sum(dim=0)", "parity"),
    ("a sum over all", "softmax", SUM, "e.sum()", "parity"),
    ("a mean for the sum", "softmax", "e.sum(", "e.mean(", "parity"),
    ("one too many in the sum", "softmax", SUM, f"(1 + {SUM})", "parity"),
    ("scores in the numerator", "softmax", "return e", "return x", "parity"),
    ("another axis of PyTorch's", "parity", "F.softmax(x, dim=-1)", "x", "parity"),
    ("scores scaled, not shifted", "shift", "x + 100)", "x * 100)", "shift"),
    ("scores of no size", "overflow", "1000.0, 1001.0", "1.0, 2.0", "overflow"),
]

# ---- its exercises: one table makes the notebook, wrong answers and faults --------

NLL = "F.cross_entropy(x, y"
GRADIENT = "torch.func.grad(F.cross_entropy)(x, y)"
# name, title, parameters, PyTorch's, worked, worked otherwise, mistakes, faults
TASKS = [
    (
        *("log_softmax", "Logarithms", "x"),
        "F.log_softmax(x, -1)",
        "x - x.logsumexp(-1, keepdim=True)",
        "softmax(x).log()",
        {
            "no logarithm is taken": "x.softmax(-1)",
            "the first axis is summed": "x.log_softmax(0)",
            "the logarithm has base 2": "x.log_softmax(-1) / math.log(2)",
        },
        [("-1, keepdim", "0, keepdim"), ("x - x", "x + x")],
    ),
    (
        *("tempered", "Temperature", "x, t"),
        "F.softmax(x / t, -1)",
        "softmax(x / t)",
        "(x / t).softmax(-1)",
        {
            "the scores are multiplied": "(x * t).softmax(-1)",
            "there is no temperature": "x.softmax(-1)",
            "it is divided too late": "x.softmax(-1) / t",
        },
        [("x / t", "x * t"), ("(x / t)", "(x) / t")],
    ),
    (
        *("cross_entropy", "Cross-entropy", "x, y"),
        f"{NLL}).item()",
        "-softmax(x).log()[range(len(y)), y].mean()",
        "F.nll_loss(x.log_softmax(-1), y)",
        {
            "the sign is wrong": f"-{NLL})",
            "a sum, not a mean": f'{NLL}, reduction="sum")',
            "no mean is taken": f'{NLL}, reduction="none")',
        },
        [("-softmax", "softmax"), ("mean", "sum")],
    ),
    (
        *("gradient", "Its gradient", "x, y"),
        GRADIENT,
        "(softmax(x) - F.one_hot(y, 5)) / len(y)",
        "softmax(x) / len(y) - F.one_hot(y, 5) / len(y)",
        {
            "the sign is wrong": f"-{GRADIENT}",
            "not divided by the rows": f"len(x) * {GRADIENT}",
            "the target's one is missing": "x.softmax(-1) / len(y)",
        },
        [("(x) - F", "(x) + F"), (" / len(y)", "")],
    ),
]

EXERCISES_OPENING = """# Lesson 48: Exercises

For [Lesson 48](48-tiny.ipynb).

**How it goes** Write each function, and run its check.

**You need** [Lesson 48](48-tiny.ipynb).

**It takes** two seconds to run."""

CHECK = '''# @title Check exercise {number}
def check_{name}(answer):
    """Hold an answer against PyTorch's own on random scores."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(4, 5, generator=generator).double()
    y, t = torch.tensor([0, 3, 3, 1]), 0.5
    judge(
        {number},
        answer,
        [("x (4, 5)", ({parameters},), {right})],
        "what PyTorch computes",
        {{
{mistakes}
        }},
        "It equals PyTorch's.",
    )


check_{name}({name})'''

# ---- the rest of what it brings ---------------------------------------------------

TOC = """      - file: lessons/48-tiny
        sections:
          - file: lessons/48-exercises
"""
ENTRY = (
    "- **Overflow**: a number too large for its format becomes infinite. "
    "([Lesson 48](lessons/48-tiny.ipynb#overflow))\n"
)
ROW = "| [48 Tiny](lessons/48-tiny.ipynb) | What if scores are large? | 45 |\n"
PROPERTIES = '''"""Properties of the function of Lesson 48."""

from parity import make_input
from strategies import assert_close, dtypes, holds_for, leads, seeds, sizes


@holds_for(
    "softmax",
    faults=[("48", "softmax", "(x - top)", "x"), ("48", "softmax", "amax", "mean")],
    lead=leads,
    n=sizes,
    dtype=dtypes,
    seed=seeds,
)
def test_softmax_is_pytorchs(lesson, lead, n, dtype, seed):
    x = 1000 * make_input(*lead, n, dtype=dtype, seed=seed)
    assert_close(lesson.softmax(x), x.softmax(dim=-1))
'''


def function(name, parameters, body):
    """The source of a function of two lines."""
    return f"def {name}({parameters}):\n    {body}"


def cells_of(text):
    """The cells of a lesson in the form above."""
    cells = []
    for part in re.split(r"^# %% ", text, flags=re.M)[1:]:
        head, _, source = part.partition("\n")
        make = new_markdown_cell if head.startswith("[md] ") else new_code_cell
        cells.append(make(source.strip(), id=head.removeprefix("[md] ")))
    return cells


def lesson_cells():
    """The lesson, with the list of its exercises."""
    links = [
        f"{number}. [{title}](48-exercises.ipynb#{number}-"
        f"{title.lower().replace(' ', '-')}): what is it?"
        for number, (_, title, *_) in enumerate(TASKS, start=1)
    ]
    return cells_of(LESSON.replace("{exercises}", "\n".join(links)))


def exercises_cells():
    """The exercises; what is given is copied from the lesson, `judge` from another."""
    source = {cell.id: cell.source for cell in lesson_cells()}
    elsewhere = nbformat.read(EXERCISES[0], as_version=4).cells
    judge = next(cell.source for cell in elsewhere if cell.id == "judge")
    cells = [
        new_markdown_cell(EXERCISES_OPENING, id="title"),
        new_code_cell(source["setup"], id="setup"),
        new_code_cell(judge, id="judge"),
        new_code_cell(f"# @title From the lesson\n{source['softmax']}", id="given"),
    ]
    for number, task in enumerate(TASKS, start=1):
        cells += exercise_cells(number, *task)
    return cells


def exercise_cells(number, name, title, parameters, right, worked, _, mistakes, __):
    """The cells of one exercise, in the order that the form asks for."""
    check = CHECK.format(
        number=number,
        name=name,
        parameters=parameters,
        right=right,
        mistakes="\n".join(
            f'            "{words}":\n                lambda {parameters}: {code},'
            for words, code in mistakes.items()
        ),
    )
    starter = function(name, parameters, f'"""{title}; x: (4, 5)."""')
    answer = function(f"worked_{name}", parameters, f"return {worked}")
    answer = f"# @title Worked answer {number}\n{answer}"
    call = f"check_{name}(worked_{name})"
    return [
        new_markdown_cell(f"## {number}. {title}\n\nOf a softmax.", id=name),
        new_code_cell(starter, id=f"{name}-starter"),
        new_code_cell(check, id=f"{name}-check"),
        new_markdown_cell("### Hint", id=f"{name}-hint"),
        new_markdown_cell("Think of PyTorch's.", id=f"{name}-hint-text"),
        new_markdown_cell("### Worked answer", id=f"{name}-worked"),
        new_code_cell(f"{answer}\n\n\n{call}", id=f"{name}-answer"),
        new_markdown_cell("**What it teaches.** A name.", id=f"{name}-teaches"),
    ]


def exercises_faults():
    """Two for each worked answer, one for what is given, two for the judge."""
    return [
        (f"{name}: {new}", f"{name}-answer", old, new, f"{name}-answer")
        for name, *_, faults in TASKS
        for old, new in faults
    ] + [
        ("no exponential", "given", "(x - top).exp()", "x", "tempered-answer"),
        (
            "an empty answer judged",
            "judge",
            "if all(",
            "if not all(",
            "log_softmax-check",
        ),
        (
            "all is right",
            "judge",
            "if not any(texts)",
            "if any(texts)",
            "log_softmax-answer",
        ),
    ]


ADDRESSES = "tests/published_addresses.txt"
NEW_ADDRESSES = "lessons/48-tiny.html\nlessons/48-exercises.html\n"


def answers():
    """WRONG and RIGHT as the file of wrong answers has them."""
    wrong = {
        name: [
            (words, function(name, parameters, f"return {code}"))
            for words, code in mistakes.items()
        ]
        for name, _, parameters, _, _, _, mistakes, _ in TASKS
    }
    right = {
        name: [function(name, parameters, f"return {other}")]
        for name, _, parameters, _, _, other, *_ in TASKS
    }
    return f"WRONG = {wrong}\nRIGHT = {right}\n"


def write_notebook(root, name, cells):
    """Write a notebook as an author would: not run."""
    notebook = new_notebook(cells=cells, metadata=NOTEBOOK_METADATA)
    nbformat.write(notebook, root / f"lessons/48-{name}.ipynb")


def insert(root, name, before, text):
    """Put text before other text that must stand in a file, once."""
    old = (root / name).read_text(encoding="utf-8")
    assert old.count(before) == 1, (name, before)
    (root / name).write_text(old.replace(before, text + before), encoding="utf-8")


def add_lesson(root):
    """Do to the book at `root` what CONTRIBUTING.md says, in its order."""
    write_notebook(root, "tiny", lesson_cells())
    write_notebook(root, "exercises", exercises_cells())
    insert(root, "_toc.yml", "  - caption: Reference", TOC)
    insert(root, "index.md", "\nThe numbers come from", ROW)
    insert(root, ADDRESSES, "notation.html\n", NEW_ADDRESSES)
    insert(root, "glossary.md", "- **Padding mask**", ENTRY)
    insert(root, "tests/test_glossary.py", '    "47": {', '    "48": {"overflow"},\n')
    for name, text in {
        "faults/lesson_48.py": f"ROWS = {LESSON_FAULTS}\n",
        "faults/exercises_48.py": f"ROWS = {exercises_faults()}\n",
        "wrong_answers/exercises_48.py": answers(),
        "test_properties_48.py": PROPERTIES,
    }.items():
        (root / "tests" / name).write_text(text, encoding="utf-8")


# ---- the checks -------------------------------------------------------------------


def run_tests(root, *arguments):
    """Run fast tests of the copy at `root` in a process; return what pytest said."""
    ours = ("PYTEST_", "GITHUB_")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "--color=no", "-p", "no:cacheprovider"]
        + ["-m", "not slow and not browser", *arguments],
        cwd=root,
        env={**environment, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )


def undo(*names):
    """Leave files as they were before the lesson came, or out."""

    def change(root):
        for name in names:
            if (ROOT / name).is_file():
                shutil.copy2(ROOT / name, root / name)
            else:
                (root / name).unlink()

    return change


def rewrite(name, old, new):
    """Replace text that stands once in a file; of a notebook, in its JSON."""

    def change(root):
        text = (root / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, (name, old)
        (root / name).write_text(text.replace(old, new), encoding="utf-8")

    return change


def lesson_not_run(root):
    write_notebook(root, "tiny", lesson_cells())


def exercises_left_out(root):
    rewrite("_toc.yml", TOC, TOC.partition("        sections:")[0])(root)
    undo("lessons/48-exercises.ipynb")(root)
    undo("tests/faults/exercises_48.py", "tests/wrong_answers/exercises_48.py")(root)


TINY = "lessons/48-tiny.ipynb"
# what is missing, the test that asks for it, and what it says
LEFT_OUT = {
    "make run": (
        lesson_not_run,
        "test_notebook_files.py::test_notebook_is_in_order[48-tiny]",
        "48-tiny.ipynb, cell 2: never run",
    ),
    "faults of the lesson": (
        undo("tests/faults/lesson_48.py"),
        "test_planted_faults.py::test_enough_faults[48]",
        "48: fewer than 10 in tests/faults/",
    ),
    "faults of the exercises": (
        undo("tests/faults/exercises_48.py"),
        "test_planted_faults.py::test_enough_faults[48-exercises]",
        "48-exercises: fewer than 10 in tests/faults/",
    ),
    "wrong answers": (
        undo("tests/wrong_answers/exercises_48.py"),
        "test_exercises.py::test_enough_answers_are_planted[48-exercises-tempered]",
        "tempered: fewer than 3 wrong answers in tests/wrong_answers/",
    ),
    "exercises": (
        exercises_left_out,
        "test_exercises.py::test_lesson_and_exercises_link_to_each_other[48]",
        "lessons/48-exercises*.ipynb: 0 files",
    ),
    "link to an exercise": (
        rewrite(TINY, "(48-exercises.ipynb#2-temperature)", "(48-exercises.ipynb)"),
        "test_exercises.py::test_lesson_and_exercises_link_to_each_other[48]",
        "('2', 'Temperature')",
    ),
    "key terms": (
        undo("tests/test_glossary.py"),
        "test_glossary.py::test_every_lesson_has_key_terms",
        "KEY_TERMS has one entry a lesson",
    ),
    "entry of the glossary": (
        undo("glossary.md"),
        "test_glossary.py::test_the_glossary_is_in_order",
        "overflow: missing for Lesson 48",
    ),
    "row on the first page": (
        undo("index.md"),
        "test_adding_a_lesson.py::test_the_first_page_lists_every_lesson",
        "index.md: no row that links lessons/48-tiny.ipynb",
    ),
    "addresses": (
        undo(ADDRESSES),
        "test_published_addresses.py::test_every_published_address_still_leads_somewhere",
        "lessons/48-exercises.html is not in tests/published_addresses.txt",
    ),
    "property": (
        undo("tests/test_properties_48.py"),
        "test_properties.py::test_every_function_has_a_property_or_a_reason[48]",
        "Lesson 48: no property for ['softmax']",
    ),
    "line that a claim rests on": (
        rewrite(TINY, " (`max abs diff vs F.softmax`)", ""),
        "test_printed_lines.py::test_claims_rest_on_printed_lines[48-tiny]",
        "- Our softmax is PyTorch's, down to rounding.",
    ),
    "source of a number": (
        rewrite(TINY, "and two seconds to run", "and 1.5 seconds to run"),
        "test_prose_numbers.py::test_every_result_in_the_prose_is_shown[48-tiny]",
        "48-tiny.ipynb, cell 1: '1.5' stands in no output",
    ),
    "band of an accuracy": (
        rewrite(TINY, r"ours is finite: True\n", r"ours has acc = 99.0%\n"),
        "test_printed_lines.py::test_stored_lines_are_in_their_bands[48-tiny]",
        "48-tiny.ipynb, cell 8: in no band of tests/nbval_sanitize.cfg: at 1000",
    ),
    "test of a convention": (
        rewrite("notation.md", "| vectors |", "| overflow | a | b | c |\n| vectors |"),
        "test_conventions.py::test_table_and_tests_agree",
        "notation.md: a row, but no test_conventions_overflow",
    ),
}


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A copy of the repository with one lesson more, executed."""
    root = copy_repository(tmp_path_factory.mktemp("grown") / "book")
    add_lesson(root)
    done = run_tool(root, "run_lessons.py", "48")
    assert done.returncode == 0, done.stdout + done.stderr
    return root


@pytest.fixture
def spare(book, tmp_path):
    """A copy of that copy, to leave something out of."""
    ignore = shutil.ignore_patterns("_build", "__pycache__")
    return shutil.copytree(book, tmp_path / "book", ignore=ignore)


def test_the_first_page_lists_every_lesson():
    first_page = (ROOT / "index.md").read_text(encoding="utf-8")
    for path in LESSON_FILES:
        row = rf"^\| \[{path.name[:2]} .+\]\(lessons/{re.escape(path.name)}\) \|"
        missing = f"index.md: no row that links lessons/{path.name}"
        assert re.search(row, first_page, re.MULTILINE), missing


@pytest.mark.slow
def test_all_that_looks_at_every_lesson_is_green(book):
    """Every fast test of lessons, but those of one lesson that was there before."""
    files = [
        path
        for path in sorted((book / "tests").glob("test_*.py"))
        if re.search(
            "lesson_code|strategies|LESSONS|LIST", path.read_text(encoding="utf-8")
        )
    ]
    others = " or ".join(path.name[:2] for path in LESSON_FILES)
    done = run_tests(book, "-k", f"not ({others})", *files)
    assert done.returncode == 0, done.stdout
    for _, test, _ in LEFT_OUT.values():
        assert f"tests/{test} PASSED" in done.stdout
    assert "tests/test_properties_48.py::test_softmax_is_pytorchs[48]" in done.stdout
    assert "test_repeated_functions.py::test_compare_is_stricter" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("what", LEFT_OUT)
def test_what_is_left_out_is_missed(what, spare):
    leave_out, test, message = LEFT_OUT[what]
    leave_out(spare)
    done = run_tests(spare, f"tests/{test}")
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"FAILED tests/{test}" in done.stdout
    assert message in done.stdout, done.stdout


@pytest.mark.slow
def test_a_reason_takes_the_place_of_a_property(spare):
    undo("tests/test_properties_48.py")(spare)
    reason = '    "48": {"softmax": "a reason"},\n'
    insert(spare, "tests/test_properties.py", '    "37": {\n', reason)
    done = run_tests(spare, "tests/test_properties.py", "-k", "a_reason and 48")
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout


@pytest.mark.slow
def test_the_book_builds_with_its_page(book):
    done = build(book)
    assert done.returncode == 0, done.stderr
    first_page = (book / "_build/html/index.html").read_text(encoding="utf-8")
    assert first_page.count('href="lessons/48-tiny.html"') > 1
    assert (book / "_build/html/lessons/48-exercises.html").is_file()


@pytest.mark.slow
def test_without_its_toc_line_the_book_does_not_build(spare):
    undo("_toc.yml")(spare)
    done = build(spare)
    assert done.returncode == 1
    for name in ("tiny", "exercises"):
        line = (
            f"lessons/48-{name}.ipynb: not in _toc.yml; add `- file: lessons/48-{name}`"
        )
        assert line in done.stderr


@pytest.mark.slow
def test_its_faults_are_planted_by_the_same_command(book):
    done = run_tool(book, "plant_faults.py", "48-tiny", "--only", "the largest")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 faults, 0 not met as they should" in done.stdout
