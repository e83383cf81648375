"""The built site and the browser that the browser tests share."""

from pathlib import Path

import browser as chromium
import pytest
from helpers_book import PUBLISHED, build, copy_repository
from helpers_browser import serve


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """Build the real book once, as it is published, and return the folder of its pages."""
    root = copy_repository(tmp_path_factory.mktemp("site") / "book")
    done = build(root, **PUBLISHED)
    assert done.returncode == 0, done.stderr
    return root / "_build/html"


@pytest.fixture(scope="session")
def address(site):
    """Serve the site, and return its address."""
    with serve(site) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    """Start Chromium; stopped after each file, since its event loop is in the way of others."""
    from playwright.sync_api import sync_playwright

    path = chromium.find()
    assert path, "no Chromium found; run `python tools/browser.py`"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=chromium.FLAGS)
        yield started
        started.close()
