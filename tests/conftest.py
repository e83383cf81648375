"""The built site and the browser that tests share."""

import os
import subprocess
import sys

import pytest
from filelock import FileLock

from tests.book import write_book
from tests.browser import serve
from tools.build import build
from tools.notebooks import ROOT, path_of

FORK = "some-teacher/class"  # what a publishing workflow knows


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Build the real book once, as it is published; return the folder of its pages."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # which all workers share
    with FileLock(folder / "site.lock"), pytest.MonkeyPatch.context() as patch:
        if not (folder / "site/class").is_dir():
            patch.setenv("GITHUB_REPOSITORY", FORK)
            assert build(ROOT, folder / "site/class") == []
    return folder / "site/class"


@pytest.fixture(scope="session")
def address(site):
    """Serve the site; return its address, with a slash at the end."""
    with serve(site.parent) as host:
        yield f"{host}{site.name}/"


@pytest.fixture(scope="module")
def browser():
    """Start Chromium, for one file: its event loop is in the way of other tests."""
    from playwright.sync_api import sync_playwright

    from tools.pdf import launch

    with sync_playwright() as playwright:
        try:
            started = launch(playwright)
        except FileNotFoundError as error:
            pytest.fail(str(error), pytrace=False)
        yield started
        started.close()


@pytest.fixture
def book(tmp_path, monkeypatch):
    """Write a tiny book of no repository, whose notebooks are not checked."""
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    monkeypatch.setattr("tools.form.problems", lambda path: [])
    write_book(tmp_path / "book")
    return tmp_path / "book"


@pytest.fixture
def find_faults(record_property):
    """Return a function that plants faults in a notebook, in a process of its own."""

    def find(name, *options):
        command = [sys.executable, "-m", "tools", "faults", path_of(name).stem]
        done = subprocess.run(
            [*command, *options], cwd=ROOT, capture_output=True, text=True
        )
        record_property("summary", done.stdout)
        assert done.returncode == 0, done.stdout + done.stderr

    return find
