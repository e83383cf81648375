"""`make preview` shows in the browser what was just saved."""

import socket
import subprocess
import sys
import time
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from helpers_book import tiny_book
from helpers_browser import listen

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


def free_port() -> int:
    """Return a port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(address: str, seconds: float = 60) -> None:
    """Wait until a server answers."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            urlopen(address).close()
            return
        except URLError:
            assert time.monotonic() < deadline, f"nothing at {address}"
            time.sleep(0.2)


def test_saved_page_is_shown_without_asking(browser, tmp_path):
    root, port = tiny_book(tmp_path / "book"), free_port()
    command = [sys.executable, root / "tools/preview.py", "--port", str(port)]
    server = subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL)
    page = browser.new_page()
    complaints = listen(page)
    try:
        wait_for(f"http://127.0.0.1:{port}/index.html")
        page.goto(f"http://127.0.0.1:{port}/index.html", wait_until="networkidle")
        with (root / "index.md").open("a") as index:
            index.write("\nA line more.\n")
        page.get_by_text("A line more.").wait_for(timeout=60_000)
        assert complaints == []
    finally:
        page.close()
        server.terminate()
        server.wait()
