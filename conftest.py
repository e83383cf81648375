"""Settings that all tests share, those in the notebooks included."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent
# the tools and the extensions are scripts, not packages; tests import them, and
# their own helpers, by name
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests"), str(ROOT / "theme/extensions")]
# jsonschema imports it where it is installed, to check addresses that no notebook
# has, and that takes a second in each process
sys.modules.setdefault("rfc3987_syntax", None)
# broken on purpose; test_broken_pages.py reads them, nbval must not run them
collect_ignore_glob = ["tests/broken/*"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Keep the cells of one notebook together, and start with the notebooks.

    The cells share a kernel, so with several workers they must not be spread
    (pytest -n 2 --dist loadgroup).
    """
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker(pytest.mark.xdist_group(item.path.name))
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.path.suffix != ".ipynb")


def pytest_terminal_summary(terminalreporter):
    """Say what each page weighs and what is heaviest, for whoever has to make it lighter."""
    passed = terminalreporter.stats.get("passed", [])
    lines = sorted(text for report in passed for name, text in report.user_properties)
    if lines:
        terminalreporter.section("weight of the pages")
        terminalreporter.write_line("\n".join(lines))
