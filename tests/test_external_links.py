"""`make links` finds the links of the pages that no longer answer, and asks politely.

A server on this machine stands in for the hosts of the world.
"""

import json
import re
import time
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import check_links
import pytest
from helpers_book import run_tool, tiny_book

TRIES = Counter()


class World(BaseHTTPRequestHandler):
    """Answers as hosts do: well, not at all, only at the second time, or never to programs."""

    def log_message(self, *_) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        """Answer without a body."""
        self.do_GET()

    def do_GET(self) -> None:
        """Answer by what the path asks for."""
        TRIES[self.path] += 1
        if self.path == "/silent":
            time.sleep(2)
            return
        code = {"/good": 200, "/gone": 404, "/refused": 403}.get(self.path, 200)
        if self.path == "/shaky" and TRIES[self.path] < 3:
            code = 500
        if self.path.startswith("/register/"):
            code = 200 if self.path.endswith("/10.1/known") else 404
        self.send_response(code)
        self.end_headers()
        if self.command == "GET":
            known = code == 200
            self.wfile.write(json.dumps({"responseCode": 1 if known else 100}).encode())


@contextmanager
def world():
    """Run the server while the block runs; give its address."""
    TRIES.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), World)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def check(folder, *paths, change=()):
    """Run the tool on a tiny book that links to paths of the server; return what it said.

    Arguments: the folder for the book, the paths, and pairs of texts to change in the tool.
    """
    root = tiny_book(folder / "book")
    tool = root / "tools/check_links.py"
    for old, new in change:
        text = tool.read_text(encoding="utf-8")
        assert text.count(old) == 1
        tool.write_text(text.replace(old, new), encoding="utf-8")
    with world() as address:
        links = "\n\n".join(f"[a link]({address}{path})" for path in paths)
        with (root / "references.md").open("a") as file:
            file.write(f"\n{links}\n")
        return run_tool(root, "check_links.py")


def test_links_that_answer_pass_even_at_the_second_try(tmp_path):
    done = check(tmp_path, "/good", "/shaky")
    assert done.returncode == 0, done.stderr
    assert "2 links answer." in done.stdout
    assert TRIES["/shaky"] >= 3


def test_planted_dead_link_is_named_with_file_and_line(tmp_path):
    done = check(tmp_path, "/good", "/gone", "/refused")
    assert done.returncode == 1
    dead, refused, total = done.stderr.splitlines()
    assert re.match(r"references\.md, line \d+: http://127\.0\.0\.1:\d+/gone does not", dead)
    assert "404" in dead and "/refused does not" in refused
    assert total == "error: 2 of 3 links do not answer"


IMPATIENT = ('"linkcheck_timeout": 30', '"linkcheck_timeout": 1')


def test_planted_host_that_never_answers_is_named(tmp_path):
    done = check(tmp_path, "/good", "/silent", change=[IMPATIENT])
    assert done.returncode == 1, done.stdout
    silent, total = done.stderr.splitlines()
    assert "/silent does not answer as it should" in silent and "timed out" in silent.lower()
    assert total == "error: 1 of 2 links do not answer"


def test_planted_blindness_to_timeouts_is_seen(tmp_path):
    blind = ('BAD = ("broken", "timeout")', 'BAD = ("broken",)')
    done = check(tmp_path, "/good", "/silent", change=[IMPATIENT, blind])
    assert done.returncode == 0 and "2 links answer." in done.stdout


def test_a_book_without_links_or_that_cannot_be_read_is_an_error(tmp_path):
    done = check(tmp_path)
    assert done.returncode == 1 and "no link was found" in done.stderr
    (tmp_path / "book/_toc.yml").write_text("format: [")
    done = run_tool(tmp_path / "book", "check_links.py")
    assert done.returncode == 1 and "could not be read" in done.stderr


def test_the_register_knows_a_doi_or_does_not():
    with world() as address:
        register = f"{address}/register/"
        assert check_links.is_registered("https://doi.org/10.1/known", register)
        assert not check_links.is_registered("https://doi.org/10.1/not", register, pause=0)
    assert not check_links.is_registered("https://doi.org/10.1/known", register, pause=0)


@pytest.mark.parametrize(
    "uri, code, info, registered, expected",
    [
        ("https://doi.org/10.1/2", 0, "403 Client Error: Forbidden", True, True),
        ("https://doi.org/10.1/2", 403, "", True, True),
        ("https://doi.org/10.1/2", 403, "", False, False),
        ("https://doi.org/10.1/2", 0, "404 Client Error: Not Found", True, False),
        ("https://doi.org/10.1/2", 0, "404 Client Error: 10.1401 and 10.1/403 ", True, False),
        ("https://doi.org/10.1/2", 0, "404 Client Error: 401 for url", True, False),
        ("https://doi.org/10.1/2", 0, "4031 pages", True, False),
        ("https://arxiv.org/abs/1", 403, "", True, False),
        ("https://doi.org.example.com/10.1/2", 403, "", True, False),
    ],
)
def test_only_a_shy_publisher_of_a_registered_doi_is_excused(
    monkeypatch, uri, code, info, registered, expected
):
    monkeypatch.setattr(check_links, "is_registered", lambda _: registered)
    assert check_links.excused({"uri": uri, "code": code, "info": info}) is expected
