"""Settings of pytest that all checks share, those in the notebooks included."""

import os
import re
import tempfile
from pathlib import Path

import pytest

from tools.bands import write_for_nbval


def pytest_addoption(parser):
    """Add `--lesson 46`: the checks of that lesson and of its exercises alone."""
    parser.addoption("--lesson", default="", help="a lesson's number, such as 46")


def pytest_configure(config):
    """Give nbval the bands of the lessons."""
    handle, name = tempfile.mkstemp(suffix=".cfg")
    os.close(handle)
    config.option.nbval_sanitize_with = str(write_for_nbval(Path(name)))
    config.add_cleanup(lambda: Path(name).unlink(missing_ok=True))


def is_about(item, lesson: str) -> bool:
    """Say whether a check is about one lesson, by its file or its parameters."""
    parameters = item.nodeid.partition("[")[2]
    return bool(
        re.match(rf"(lesson_)?{lesson}\b", item.path.name)
        or re.search(rf"\b{lesson}\b", parameters)
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Keep the cells of one notebook together, and start with what takes longest.

    The cells share a kernel, so with several workers they must not be spread
    (`--dist loadgroup`).
    """
    if lesson := config.getoption("--lesson"):
        items[:] = [item for item in items if is_about(item, lesson)]
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker(pytest.mark.xdist_group(item.path.name))
    items.sort(key=lambda item: item.path.suffix != ".ipynb")
