"""Measure the course: `make bench` prints seconds and peak memory, one table.

Each row is one command in a process of its own, with one thread. Memory is
the largest sum, over the command and all its children, of resident memory,
sampled twenty times a second. Nothing here is asserted anywhere: a machine
that is busy is slow.
"""

import os
import platform
import subprocess
import sys
import time

import psutil

from check_notebooks import LESSONS, ROOT

SAMPLE = 0.05  # seconds between two looks at the memory
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")


def commands():
    """(name, command) of everything that is measured, in order."""
    preview = (sys.executable, "tools/preview.py", "--once")
    yield "strict build", (sys.executable, "tools/build_book.py")
    yield "preview, first build", preview
    for path in sorted(LESSONS.glob("*.ipynb")):
        yield f"preview, {path.stem} edited", preview
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


def measure(command):
    """Run a command; return (seconds, peak bytes, exit code)."""
    began = time.perf_counter()
    running = psutil.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    peak = 0
    while running.poll() is None:
        peak = max(peak, memory(running))
        time.sleep(SAMPLE)
    return time.perf_counter() - began, peak, running.returncode


def main():
    """Measure and print; 1 if a command failed."""
    print(
        f"Python {platform.python_version()}, {platform.system()} "
        f"{platform.machine()}, {os.cpu_count()} cores, one thread a process"
    )
    print(f"{'what':44} {'seconds':>8} {'peak MB':>8}")
    failed = False
    for name, command in commands():
        if name.endswith("edited"):
            (LESSONS / f"{name.split()[1]}.ipynb").touch()
        seconds, peak, code = measure(command)
        failed |= code != 0
        note = f"   failed, exit code {code}" if code else ""
        print(f"{name:44} {seconds:8.1f} {peak / 1e6:8.0f}{note}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
