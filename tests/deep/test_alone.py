"""Each notebook runs by itself in an empty folder, and on two threads as on one."""

import os

import pytest

from tools.bands import sanitize
from tools.execute import execute
from tools.notebooks import NAMES, path_of, printed, read


def printed_alone(path, folder, threads: int) -> list[str]:
    """Execute a notebook in an empty folder; return what each cell printed."""
    folder.mkdir()
    variables = {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        # threads that wait leave the processor to whoever else runs here
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    notebook = execute(path, folder, {**os.environ, **variables})
    assert not [*folder.iterdir()], f"{path.name} left files behind"
    return [printed(cell) for cell in notebook.cells]


@pytest.mark.parametrize("name", NAMES)
def test_notebook_runs_alone_on_one_and_two_threads(name, tmp_path):
    path = path_of(name)
    one = printed_alone(path, tmp_path / "one", threads=1)
    two = printed_alone(path, tmp_path / "two", threads=2)
    stored = [printed(cell) for cell in read(path).cells]
    assert one == two, "what is printed depends on the number of threads"
    assert list(map(sanitize, one)) == list(map(sanitize, stored))
