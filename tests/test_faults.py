"""Each notebook finds faults that are planted in it, drawn by a hash of its code."""

import os

import pytest

from tools.notebooks import NAMES


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("name", NAMES)
def test_drawn_mutants_and_listed_faults_are_found(name, find_faults):
    find_faults(name, "--drawn")
