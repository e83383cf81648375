"""All mutants and listed faults, and a share of the listed ones in a real kernel.

There is no control in a kernel but `make test`, which runs every notebook by nbval: all
cells before the one that finds a fault must pass here too.
"""

import os
import re
import subprocess
import sys

import nbformat
import pytest

from tools.bands import write_for_nbval
from tools.faults import Notebook, in_drawn_order, listed_faults
from tools.notebooks import NAMES

IN_A_KERNEL = 3  # listed faults a notebook
# What a kernel says of code that fails and is not found wrong.
DOES_NOT_RUN = re.compile(r"\b(Syntax|Name|Attribute|Type|Import|Index|Key)Error\b")
FAILED = re.compile(r"^FAILED copy\.ipynb::Cell (\d+)", re.MULTILINE)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("name", NAMES)
def test_all_mutants_and_listed_faults_are_found(name, find_faults):
    find_faults(name)


def first_failure(notebook, folder, fault):
    """Run a copy by nbval up to the first failing cell; return its id, and the log."""
    copy = nbformat.from_dict(notebook.notebook)
    next(cell for cell in copy.cells if cell.id == fault.cell).source = fault.source
    nbformat.write(copy, folder / "copy.ipynb")
    (folder / "pytest.ini").write_text("[pytest]\n")
    bands = write_for_nbval(folder / "bands.cfg")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "copy.ipynb", "--nbval", "--exitfirst"),
            *("--nbval-current-env", "--nbval-cell-timeout=300", "--color=no"),
            *(f"--nbval-sanitize-with={bands}", "-p", "no:cacheprovider"),
        ],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    failed = FAILED.search(done.stdout)
    return failed and notebook.cells[int(failed[1])].id, done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_listed_faults_are_found_by_nbval(name, tmp_path):
    notebook = Notebook(name)
    for fault in in_drawn_order(notebook, listed_faults(notebook))[:IN_A_KERNEL]:
        cell, log = first_failure(notebook, tmp_path, fault)
        assert cell == fault.caught_by and not DOES_NOT_RUN.search(log), log
