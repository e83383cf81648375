"""A reader opens each notebook in a real JupyterLab, runs all its cells, and follows its links.

The server is that of `make lab`, started in a copy of the repository whose notebooks have lost
their outputs: what they hold afterwards came from the kernel, through the browser. It must be what
is stored, and to the last digit what the notebook prints alone and on two threads.
"""

import copy
import re
import sys
from pathlib import Path, PurePosixPath

import nbformat
import pytest
from check_notebooks import NOTEBOOK_METADATA
from exercise_form import sections
from helpers_book import copy_repository
from helpers_jupyterlab import (
    MEMORY,
    Lab,
    failures,
    forget,
    links_to_files,
    press,
    run_all,
    served,
    untypeset,
)
from lesson_code import BANDS, LESSON_FILES, every_notebook, printed
from long_answers import sanitized
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from test_lessons_run_alone import printed_on_two_threads

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.xdist_group("jupyterlab")]

# A link of Markdown to a file of the course, as the lessons write them.
LINK = re.compile(r"\]\((?P<file>[^)#\s:]+\.(?:ipynb|md))(?:#[^)\s]*)?\)")
FAULTY = [
    new_markdown_cell("[None](46-none.ipynb), [papers](../references.md#vaswani-2017)"),
    new_markdown_cell(r"$\argmax_j x_j$ and $\frac{a$, and $\max_j x_j$"),
    new_code_cell("from IPython.display import Image\nImage(url='http://192.0.2.1/x.png')"),
    new_code_cell("large = b'x' * 1_100_000_000\ndel large"),
    new_code_cell("import sys\nprint('careful', file=sys.stderr)\n1 / 0"),
    new_code_cell("print('never')"),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Run the JupyterLab of `make lab` in a copy of the repository, with one faulty notebook."""
    folder = tmp_path_factory.mktemp("lab")
    root = copy_repository(folder / "copy")
    for path in (root / "lessons").glob("*.ipynb"):
        forget(path)
    nbformat.write(
        new_notebook(cells=FAULTY, metadata=NOTEBOOK_METADATA), root / "lessons/99-faulty.ipynb"
    )
    command = [sys.executable, str(root / "tools/lab.py"), "--no-browser", "--ServerApp.port=0"]
    with served(command, folder / "settings") as (address, token, process):
        yield Lab(root, address, token, process)


def pictures(notebook) -> int:
    """Return how many pictures a notebook's outputs hold."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return sum("image/png" in output.get("data", {}) for output in outputs)


def differences(executed, stored) -> list[str]:
    """Return what an executed notebook shows otherwise than the stored one, bands allowed."""
    ours = [f"cell {number}: {sanitized(text, BANDS)}" for number, text in printed(executed)]
    theirs = [f"cell {number}: {sanitized(text, BANDS)}" for number, text in printed(stored)]
    found = sorted(set(ours) ^ set(theirs))
    if pictures(executed) != pictures(stored):
        found.append(f"{pictures(executed)} pictures, and {pictures(stored)} are stored")
    return found


def expected_links(notebook) -> set[str]:
    """Return the files that a notebook in lessons/ links to, as paths from the root.

    Hints and worked answers are closed when it is opened, and JupyterLab has not drawn them yet.
    """
    shown = [cell.source for cell, section in sections(notebook) if not section]
    files = {match["file"] for match in LINK.finditer("\n".join(shown))}
    return {file[3:] if file.startswith("../") else f"lessons/{file}" for file in files}


@every_notebook
def test_it_runs_whole_shows_what_is_stored_and_its_links_open(path, lab, browser):
    stored = nbformat.read(path, as_version=4)
    with lab.opened(browser, path.name) as (page, strangers):
        links = links_to_files(page)
        assert set(links) == expected_links(stored) and links
        assert lab.absent(page, links) == []
        # one of each kind is pressed: another notebook, and a page such as the references
        for file in {PurePosixPath(file).suffix: file for file in links}.values():
            assert press(page, links[file], file) == PurePosixPath(file).name
        executed = run_all(page, lab.root / "lessons" / path.name)
        peak = lab.peak_memory()
        assert untypeset(page) == [], "KaTeX knows it, and MathJax does not"
    assert 0 < peak < MEMORY, f"{path.name} takes {peak:,} bytes of memory"
    assert failures(executed) == []
    assert differences(executed, stored) == []
    assert printed(executed) == printed_on_two_threads(path), "depends on the threads, or on chance"
    assert strangers == [], "asked of another machine"


def test_planted_faults_are_seen(lab, browser):
    path = Path(lab.root / "lessons/99-faulty.ipynb")
    with lab.opened(browser, path.name) as (page, strangers):
        links = links_to_files(page)
        assert lab.absent(page, links) == ["lessons/46-none.ipynb"]
        assert press(page, "None", "lessons/46-none.ipynb", patience=3) is None
        executed = run_all(page, path)
        assert lab.peak_memory() > MEMORY
        assert len(untypeset(page)) == 2
    assert set(strangers) == {"http://192.0.2.1/x.png"}
    assert failures(executed) == ["cell 5: careful", "cell 5: ZeroDivisionError: division by zero"]


def test_planted_difference_is_seen():
    stored = nbformat.read(LESSON_FILES[0], as_version=4)
    assert differences(stored, stored) == []
    for kind, lacking in [("stream", "cell"), ("display_data", "pictures")]:
        executed = copy.deepcopy(stored)
        outputs = (cell.get("outputs", []) for cell in executed.cells)
        next(found for found in outputs if found and found[0].output_type == kind).pop(0)
        assert lacking in differences(executed, stored)[-1]
