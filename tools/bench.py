"""Measure the course: `make bench` prints seconds and peak memory, in two tables.

    .venv/full/bin/python tools/bench.py                  # both
    .venv/full/bin/python tools/bench.py course           # the lessons as they are
    .venv/full/bin/python tools/bench.py growth           # books of 10, 100 and 1,000 lessons
    .venv/full/bin/python tools/bench.py growth --lessons 50 200 [--stock]

Each row is one command in a process of its own, with one thread. Memory is
the largest sum, over the command and all its children, of resident memory,
sampled twenty times a second. Nothing here is asserted anywhere: a machine
that is busy is slow. CPU seconds, of the command alone, suffer less.

The second table builds generated books (large_book.py), whose lessons are
small. The slope between two sizes is that of the logarithms: 1 is growth as
the number of lessons, 2 as its square, 0 none.
"""

import argparse
import gzip
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from check_notebooks import LESSONS, ROOT
from large_book import name_of, write_book

SAMPLE = 0.05  # seconds between two looks at the memory
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
BUILD = (sys.executable, "tools/build_book.py")
PREVIEW = (sys.executable, "tools/preview.py", "--once")
SIZES = (10, 100, 1000)
SIDEBAR = "theme/templates/sbt-sidebar-nav.html"


@dataclass
class Measured:
    """What one command took: seconds, CPU seconds, peak bytes; and its exit code."""

    seconds: float
    cpu: float
    peak: int
    code: int

    def show(self, name):
        """Print it as a row of a table."""
        note = f"   failed, exit code {self.code}" if self.code else ""
        print(
            f"{name:44} {self.seconds:8.1f} {self.cpu:8.1f} {self.peak / 1e6:8.0f}{note}",
            flush=True,
        )


def commands():
    """(name, command) of everything that is measured of the course, in order."""
    yield "strict build", BUILD
    yield "preview, first build", PREVIEW
    for path in sorted(LESSONS.glob("*.ipynb")):
        yield f"preview, {path.stem} edited", PREVIEW
    for path in sorted(LESSONS.glob("*.ipynb")):
        yield f"nbval, {path.stem}", (*PYTEST, f"lessons/{path.name}")
    yield "nbval, all notebooks", (*PYTEST, "lessons")


def memory(process):
    """Resident bytes of a process and its children, those that still run."""
    total = 0
    try:
        for one in (process, *process.children(recursive=True)):
            try:
                total += one.memory_info().rss
            except psutil.NoSuchProcess:
                pass
    except psutil.NoSuchProcess:
        pass
    return total


def cpu_seconds(process, before):
    """CPU seconds of a process until now; `before` where it has ended."""
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return before
    return max(before, times.user + times.system)


def measure(command, root=ROOT):
    """Run a command in the folder `root`, and return what it took, as Measured."""
    began = time.perf_counter()
    running = psutil.Popen(
        command,
        cwd=root,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    peak = cpu = 0
    while running.poll() is None:
        peak = max(peak, memory(running))
        cpu = cpu_seconds(running, cpu)
        time.sleep(SAMPLE)
    return Measured(time.perf_counter() - began, cpu, peak, running.returncode)


def measure_course():
    """Print a row for each command of the course; return how many failed."""
    failed = 0
    for name, command in commands():
        if name.endswith("edited"):
            (LESSONS / f"{name.split()[1]}.ipynb").touch()
        row = measure(command)
        row.show(name)
        failed += row.code != 0
    return failed


def page_bytes(site):
    """Average bytes of a lesson's page in the folder `site`: (as a file, gzipped)."""
    pages = [path.read_bytes() for path in sorted((site / "lessons").glob("*.html"))]
    packed = [len(gzip.compress(page, 6)) for page in pages]  # the level most hosts use
    return sum(map(len, pages)) / len(pages), sum(packed) / len(pages)


def slope(sizes, values):
    """The slope of the logarithms between two sizes: p where values grow as sizes ** p."""
    (small, large), (low, high) = sizes, values
    return math.log(high / low) / math.log(large / small)


def measure_book(lessons, stock, folder):
    """Build a book of some lessons, edit one, and print rows.

    Arguments: how many; whether with the theme's own list of pages; an empty folder.
    Returns (rows by what they measure, average bytes of a page, the same gzipped), or
    None where a build failed.
    """
    root = write_book(folder / "book", lessons)
    if stock:
        (root / SIDEBAR).unlink()
    rows = {}
    for what, command in [("strict build", BUILD), ("preview, first build", PREVIEW)]:
        rows[what] = measure(command, root)
        rows[what].show(f"{lessons} lessons: {what}")
    lesson = root / f"lessons/{name_of(lessons // 2)}-sums.ipynb"
    text = lesson.read_text(encoding="utf-8")
    lesson.write_text(text.replace("make a pair", "are a pair"), encoding="utf-8")
    rows["one lesson edited"] = measure(PREVIEW, root)
    rows["one lesson edited"].show(f"{lessons} lessons: preview, one edited")
    if any(row.code for row in rows.values()):
        return None
    whole, packed = page_bytes(root / "_build/html")
    print(f"{lessons} lessons: a page has {whole:,.0f} B, gzipped {packed:,.0f} B", flush=True)
    return rows, whole, packed


def measure_growth(sizes, stock):
    """Print rows for books of each size, and how what they take grows; return how many failed."""
    found = {}
    for lessons in sizes:
        with tempfile.TemporaryDirectory() as folder:
            found[lessons] = measure_book(lessons, stock, Path(folder))
    done = [lessons for lessons in sizes if found[lessons]]
    for pair in zip(done, done[1:]):
        (rows, *pages), (more_rows, *more_pages) = (found[lessons] for lessons in pair)
        values = {what: (rows[what].cpu, more_rows[what].cpu) for what in rows}
        values |= dict(zip(("a page", "a page gzipped"), zip(pages, more_pages)))
        slopes = ", ".join(f"{what} {slope(pair, both):.2f}" for what, both in values.items())
        print(f"slope from {pair[0]} to {pair[1]} lessons: {slopes}")
    return len(sizes) - len(done)


def main(arguments=None):
    """Measure and print; 1 if a command failed."""
    parser = argparse.ArgumentParser(description="Measure seconds, memory, and their growth.")
    parser.add_argument("what", nargs="?", choices=["course", "growth"], help="else both")
    parser.add_argument("--lessons", nargs="+", type=int, default=SIZES, metavar="N")
    parser.add_argument(
        "--stock", action="store_true", help="with the theme's own list of pages, to compare"
    )
    options = parser.parse_args(arguments)
    print(
        f"Python {platform.python_version()}, {platform.system()} "
        f"{platform.machine()}, {os.cpu_count()} cores, one thread a process"
    )
    print(f"{'what':44} {'seconds':>8} {'CPU s':>8} {'peak MB':>8}")
    failed = 0
    if options.what != "growth":
        failed += measure_course()
    if options.what != "course":
        failed += measure_growth(sorted(options.lessons), options.stock)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
