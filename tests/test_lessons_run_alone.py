"""Each notebook runs by itself: in an empty folder, without the network, with
torch, numpy and matplotlib and no other package, on two threads.

That it prints the same on one thread, test_browser_jupyterlab.py sees, which runs it so.
"""

import os
from functools import cache
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from check_notebooks import PACKAGES
from environment import normalise
from lesson_code import BANDS, every_notebook, printed
from long_answers import sanitized as sanitized_lines
from run_lessons import LessonError, execute
from test_requirements import needed_by

NO_NETWORK = Path(__file__).resolve().parent / "no_network"


@cache
def absent_modules():
    """What is installed here and does not come with a lesson's packages, by name.

    The kernel is left, and what it needs: without one no cell runs.
    """
    present = needed_by({*PACKAGES, "ipykernel"})
    return sorted(
        module
        for module, packages in metadata.packages_distributions().items()
        if present.isdisjoint(map(normalise, packages))
    )


def environment(threads):
    """Nothing of the repository on the path; so many threads; no network; no
    package but those of a lesson.

    Threads that wait leave the processor to whoever else runs here.
    """
    return {
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "OMP_WAIT_POLICY": "PASSIVE",
        "PYTHONPATH": str(NO_NETWORK),
        "ABSENT_MODULES": " ".join(absent_modules()),
    }


def run_alone(path, folder, threads):
    """Execute in an empty folder; return what each cell printed.

    Raises AssertionError where the lesson leaves a file behind.
    """
    folder.mkdir()
    notebook = execute(path, folder, environment(threads))
    left = [file.name for file in folder.iterdir()]
    assert not left, f"{path.name} left files behind: {left}"
    return printed(notebook)


def sanitized(cells):
    """The printed cells with the numbers of a band made equal, as by nbval."""
    return [(number, sanitized_lines(text, BANDS)) for number, text in cells]


def write_notebook(folder, *sources):
    """A notebook of code cells for planting faults; return its path."""
    cells = [new_code_cell(source) for source in sources]
    path = folder / "01-planted.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    return path


@cache
def printed_on_two_threads(path):
    """What each cell of a notebook prints alone, on two threads; run once only."""
    with TemporaryDirectory() as folder:
        return run_alone(path, Path(folder, "empty"), threads=2)


@pytest.mark.slow
@pytest.mark.xdist_group("jupyterlab")
@every_notebook
def test_it_prints_what_is_stored(path):
    alone = printed_on_two_threads(path)
    stored = printed(nbformat.read(path, as_version=4))
    assert sanitized(alone) == sanitized(stored)
    assert alone, f"{path.name} prints nothing that could be compared"


@pytest.mark.slow
def test_a_result_that_depends_on_threads_is_seen(tmp_path):
    path = write_notebook(tmp_path, "import torch\nprint(torch.get_num_threads())")
    one = run_alone(path, tmp_path / "one", threads=1)
    two = run_alone(path, tmp_path / "two", threads=2)
    assert one != two


@pytest.mark.parametrize(
    "source, message",
    [
        (
            "import urllib.request as u\nu.urlopen('http://example.org/')",
            "cell 1: URLError: .*must run without the network",
        ),
        (
            "import socket\nsocket.create_connection(('192.0.2.1', 80), 1)",
            "cell 1: OSError: .*must run without the network",
        ),
        (
            "import socket\nsocket.socket().connect_ex(('192.0.2.1', 80))",
            "cell 1: OSError: .*must run without the network",
        ),
        (
            "import socket\ns = socket.socket(type=socket.SOCK_DGRAM)\n"
            "s.sendto(b'x', ('192.0.2.1', 80))",
            "cell 1: OSError: .*must run without the network",
        ),
        ("import check_notebooks", "cell 1: ModuleNotFoundError"),
        ("open('data.csv')", "cell 1: FileNotFoundError"),
        ("import yaml", "cell 1: ModuleNotFoundError: No module named 'yaml'"),
        ("__import__('bs4')", "cell 1: ModuleNotFoundError: No module named 'bs4'"),
    ],
    ids="download socket probe datagram import data-file package by-name".split(),
)
def test_reaching_out_is_refused(source, message, tmp_path):
    path = write_notebook(tmp_path, source)
    with pytest.raises(LessonError, match=message):
        run_alone(path, tmp_path / "empty", threads=1)


def test_who_asks_first_hears_that_a_package_is_absent(tmp_path):
    ask = "from importlib.util import find_spec\nassert find_spec({!r}) {} None"
    sources = [ask.format("yaml", "is"), ask.format("matplotlib", "is not")]
    run_alone(write_notebook(tmp_path, *sources), tmp_path / "empty", threads=1)


def test_leaving_a_file_behind_is_refused(tmp_path):
    path = write_notebook(tmp_path, "open('left.txt', 'w').close()")
    with pytest.raises(AssertionError, match="left.txt"):
        run_alone(path, tmp_path / "empty", threads=1)
