"""The book is built by jupyter-book's own command too, without a warning."""

import shutil
import subprocess
import sys
from pathlib import Path


def test_plain_jupyter_book_builds_it_too(book):
    program = shutil.which("jupyter-book", path=Path(sys.executable).parent)
    command = [program, "build", ".", "-W", "--keep-going"]
    done = subprocess.run(command, cwd=book, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = book / "_build/html/lessons/07-tiny.html"
    assert "katex-html" in page.read_text(encoding="utf-8")
