"""Each notebook runs by itself: in an empty folder, without the network, with torch,
numpy and matplotlib and no other package. It prints the same on one thread and on two.
"""

import os
import re
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

from tools.bands import sanitize
from tools.execute import execute
from tools.form import PACKAGES
from tools.notebooks import NAMES, path_of, printed, read

NO_NETWORK = Path(__file__).resolve().parent / "no_network"


def normalise(package: str) -> str:
    """Return a package's name in the one form in which two spellings are equal."""
    return re.sub(r"[-_.]+", "-", package).lower()


def add_needed(package: str, found: set) -> None:
    """Add a package to `found`, and what it requires, as far as it is installed."""
    if package not in found:
        found.add(package)
        with suppress(metadata.PackageNotFoundError):
            for line in metadata.requires(package) or []:
                if "extra ==" not in line:
                    add_needed(normalise(re.match(r"[\w.-]+", line)[0]), found)


@cache
def absent_modules() -> list[str]:
    """Return the modules installed here that do not come with a lesson's packages.

    The kernel and what it needs stay: without them no cell runs.
    """
    present = set()
    for package in ("ipykernel", *PACKAGES):
        add_needed(package, present)
    return sorted(
        module
        for module, packages in metadata.packages_distributions().items()
        if present.isdisjoint(map(normalise, packages))
    )


def printed_alone(path: Path, folder: Path, threads: int) -> list[str]:
    """Execute a notebook in an empty folder; return what each cell printed."""
    folder.mkdir()
    variables = {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        # threads that wait leave the processor to whoever else runs here
        "OMP_WAIT_POLICY": "PASSIVE",
        "PYTHONPATH": str(NO_NETWORK),
        "ABSENT_MODULES": " ".join(absent_modules()),
    }
    notebook = execute(path, folder, {**os.environ, **variables})
    left = [file.name for file in folder.iterdir()]
    assert not left, f"{path.name} left files behind: {left}"
    return [printed(cell) for cell in notebook.cells]


@pytest.mark.parametrize("name", NAMES)
def test_notebook_runs_alone_on_one_and_two_threads(name, tmp_path):
    path = path_of(name)
    one = printed_alone(path, tmp_path / "one", threads=1)
    two = printed_alone(path, tmp_path / "two", threads=2)
    stored = [printed(cell) for cell in read(path).cells]
    assert one == two, "what is printed depends on the number of threads"
    assert list(map(sanitize, one)) == list(map(sanitize, stored))
