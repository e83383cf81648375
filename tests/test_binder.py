"""What Binder makes of `binder/`, by repo2docker, the program that Binder runs; nothing is built.

`repo2docker --no-build` needs no Docker: it prints the Dockerfile it would build. That of this
repository may differ in two lines only from that of one which says nothing but its Python.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers_book import ROOT, files_of_repository

RUNTIME = ROOT / "binder/runtime.txt"
PYTHON = RUNTIME.read_text(encoding="utf-8").strip().removeprefix("python-")
# Into the environment that has JupyterLab and the kernel: there is no other to choose from.
BROUGHT = {
    "COPY --chown=1000:1000 src/binder/requirements.txt ${REPO_DIR}/binder/requirements.txt",
    'RUN ${KERNEL_PYTHON_PREFIX}/bin/pip install --no-cache-dir -r "binder/requirements.txt"',
}
ONE_ENVIRONMENT = "ENV KERNEL_PYTHON_PREFIX=${NB_PYTHON_PREFIX}"
BASE = f"Building conda environment for python={PYTHON}"


def plan(folder: Path) -> set[str]:
    """Return what repo2docker says of a folder's Python, and the lines of its Dockerfile.

    Errors: `ValueError`, with repo2docker's last line, when it makes none.
    """
    command = [sys.executable, "-m", "repo2docker", "--no-build", "--user-id", "1000"]
    command += ["--Repo2Docker.platform=linux/amd64", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise ValueError((done.stderr.strip().splitlines() or ["no reason given"])[-1])
    said = re.findall(r"^Building conda environment for python=\S+$", done.stderr, re.M)
    # on Windows it joins the names of files as Windows does
    return {*said, *re.sub(r"\bbinder\\\b", "binder/", done.stdout).splitlines()}


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> set[str]:
    """The plan for a folder that says nothing but which Python it wants."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "binder").mkdir()
    shutil.copy2(RUNTIME, folder / "binder")
    return plan(folder)


@pytest.fixture
def launched(tmp_path) -> Path:
    """A folder with all of the repository that repo2docker looks at: the root, and binder/."""
    for name in files_of_repository():
        if name.startswith("binder/") or "/" not in name:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / name)
    return tmp_path


def faults(folder: Path, plain: set[str]) -> list[str]:
    """Return how the plan for a folder differs from what it should be, one line each."""
    try:
        lines = plan(folder)
    except ValueError as error:
        return [f"repo2docker refuses: {error}"]
    comment = {"# If scripts required during build are present, copy them"}
    more, less = lines - plain - comment, plain - lines
    found = [f"more than binder/requirements.txt: {line}" for line in sorted(more - BROUGHT)]
    found += [f"missing: {line}" for line in sorted(BROUGHT - more) + sorted(less)]
    return found


def test_binder_installs_the_list_into_the_environment_of_jupyterlab(launched, plain):
    assert faults(launched, plain) == []
    assert {ONE_ENVIRONMENT, BASE} <= plain


def write(name: str, text: str):
    """A fault: a file with this text."""

    def plant(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")

    return plant


def rename(old: str, new: str):
    """A fault: a file or folder with another name."""
    return lambda folder: (folder / old).rename(folder / new)


CONDA = "dependencies:\n  - python=3.11\n  - pip\n"
PLANTED = {
    "misspelt folder": (rename("binder", "bindr"), "missing: .*binder/requirements.txt"),
    "misspelt list": (
        rename("binder/requirements.txt", "binder/requirement.txt"),
        "missing: RUN .*binder/requirements.txt",
    ),
    "two folders": (write(".binder/runtime.txt", "python-3.11"), "refuses: .*exclusive"),
    "no version of Python": (
        rename("binder/runtime.txt", "binder/run.txt"),
        f"missing: {BASE}",
    ),
    "another Python": (write("binder/runtime.txt", "python-3.12"), f"missing: {BASE}"),
    "a Python that Binder has not": (
        write("binder/runtime.txt", "python-3.99"),
        "refuses: .*3.99 .*is not supported",
    ),
    "a Dockerfile": (write("binder/Dockerfile", "FROM scratch\n"), "more .*: FROM scratch"),
    "environment.yml": (write("binder/environment.yml", CONDA), "more .*env update"),
    "Pipfile": (write("binder/Pipfile", "[packages]\n"), "missing: RUN .*binder/requirements.txt"),
    "apt.txt": (write("binder/apt.txt", "cowsay\n"), "more .*: .*cowsay"),
    "postBuild": (write("binder/postBuild", "#!/bin/sh\n"), "more .*: RUN ./binder/postBuild"),
    "start": (write("binder/start", "#!/bin/sh\n"), "more .*R2D_ENTRYPOINT"),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_planted_fault_is_seen(fault, launched, plain):
    plant, message = PLANTED[fault]
    plant(launched)
    found = faults(launched, plain)
    assert any(re.search(message, line) for line in found), found


def test_what_lies_in_the_root_is_of_no_account(launched, plain):
    for name in (
        "Dockerfile",
        "environment.yml",
        "Pipfile",
        "runtime.txt",
        "setup.py",
        "postBuild",
    ):
        write(name, "FROM scratch\n")(launched)
    assert faults(launched, plain) == []
