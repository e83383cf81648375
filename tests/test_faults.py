"""Each notebook finds the faults that are planted in it.

In a process of its own, since a notebook's code is run and forked there. Which mutants
are drawn follows from the notebook; tests/deep tries them all.
"""

import os
import subprocess
import sys

import pytest

from tools.notebooks import NAMES, ROOT, path_of


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("name", NAMES)
def test_drawn_mutants_and_listed_faults_are_found(name, record_property):
    done = subprocess.run(
        [sys.executable, "-m", "tools", "faults", "--drawn", path_of(name).stem],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    record_property("summary", done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
