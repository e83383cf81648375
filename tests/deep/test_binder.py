"""Binder installs binder/requirements.txt, which is small and enough for a lesson."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.notebooks import ROOT, path_of

LARGEST = 1_400_000_000  # bytes: teaching.md promises it, and a larger one starts later


@pytest.fixture(scope="module")
def launched(tmp_path_factory) -> Path:
    """Return an environment with what Binder installs."""
    folder = tmp_path_factory.mktemp("binder") / "environment"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    # An index out of reach is asked again for each package: five times is too often.
    pip = [folder / "bin/python", "-m", "pip", "install", "-qq", "--retries", "1", "-r"]
    subprocess.run([*pip, ROOT / "binder/requirements.txt"], check=True)
    return folder


def test_binder_environment_is_small(launched):
    files = [path.lstat() for path in launched.rglob("*")]
    assert sum(file.st_blocks * 512 for file in files) < LARGEST


def test_binder_environment_runs_a_lesson(launched, tmp_path):
    command = [launched / "bin/jupyter", "execute", "--inplace", "lesson.ipynb"]
    (tmp_path / "lesson.ipynb").write_bytes(path_of("45").read_bytes())
    subprocess.run(command, cwd=tmp_path, check=True)
