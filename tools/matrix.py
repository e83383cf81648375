"""Run lessons and parity tests on other versions of torch and of Python: `make matrix`.

Each combination gets an environment of its own under .venv/matrix/, made when it is first
needed. There the lessons and exercises are executed and compared with their stored outputs,
and everything that compares a lesson's functions with PyTorch's runs: so the printed bands
must hold on every version. Among them are the newest versions of what a lesson imports, what
Binder installs, whose size on disk is held too, and what Colab has. What cannot be installed or
found here is said, row by row; on GitHub's runners, which can get everything, that counts as a
failure.
TORCH=cpu takes the builds of torch for processors only, where there are any.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from environment import CPU_REQUIREMENTS, ROOT, pins, python_of

OLDEST_TORCH = "2.6.0"  # what the README promises
PINNED_TORCH = pins(ROOT / "requirements.txt")["torch"]
NEWEST_TORCH = "newest"
BINDER = "binder"
MAX_BINDER = 1_400_000_000  # bytes on disk: a larger image takes longer to start
# Colab's own list, github.com/googlecolab/backend-info, as it was on that day.
COLAB_DATE = "2026-08-19"
COLAB_PYTHON, COLAB_TORCH = "3.13", "2.11.0"
# What else a combination has at other versions than ours; "" is the newest.
OTHERS = {
    COLAB_TORCH: {"numpy": "2.1.3", "matplotlib": "3.10.0"},
    NEWEST_TORCH: {"numpy": "", "matplotlib": ""},
}
PYTHONS = ("3.11", "3.12", "3.13")
COMBINATIONS = (
    *((python, PINNED_TORCH) for python in PYTHONS),
    ("3.11", OLDEST_TORCH),
    ("3.13", NEWEST_TORCH),
    ("3.11", BINDER),
    (COLAB_PYTHON, COLAB_TORCH),
)
# What executing and testing the lessons needs, at the pinned versions; torch comes first.
PACKAGES = (
    "hypothesis ipykernel matplotlib nbclient nbformat nbval numpy packaging pytest "
    "pytest-xdist pyyaml jsonschema"
).split()
TESTS = (
    "tests/test_lesson_[0-9]*.py",
    "tests/test_repeated_functions.py",
    "tests/test_properties*.py",
    "tests/test_conventions.py",
    "lessons",
)
STAMP = "bytes"
SUMMARY = re.compile(r"(\d+) (passed|failed|errors?)")


@dataclass
class Outcome:
    """One row of the table; `failed` and `ran` are False for what could not be run."""

    python: str
    torch: str
    result: str
    seconds: float
    failed: bool = False
    log: str = ""
    ran: bool = True


def find_python(version: str) -> str | None:
    """The command of a Python of this version, such as "3.12"; None where there is none."""
    candidates = [f"python{version}", sys.executable]
    candidates += sorted(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
    for candidate in candidates:
        command = shutil.which(candidate)
        if command is None:
            continue
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([command, "-c", code], capture_output=True, text=True)
        if done.stdout.strip() == version:
            return command
    return None


def install_commands(torch: str, cpu: bool) -> list[list[str]]:
    """pip's arguments, in order, that fill an environment."""
    wanted = ["torch" if torch == NEWEST_TORCH else f"torch=={torch}"]
    index = []
    if cpu:
        text = (ROOT / CPU_REQUIREMENTS).read_text(encoding="utf-8")
        index = re.findall(r"^--extra-index-url \S+", text, re.M)[0].split()
    versions = pins(ROOT / "requirements.txt", ROOT / "requirements-book.txt")
    versions |= OTHERS.get(torch, {})
    others = [f"{p}=={versions[p]}" if versions[p] else p for p in PACKAGES]
    if torch == BINDER:  # exactly what a launched notebook gets, and after it what tests need
        index, wanted = [], ["-r", str(ROOT / CPU_REQUIREMENTS)]
    return [
        ["install", *index, *wanted],
        ["install", "-c", str(ROOT / "constraints.txt"), *others],
    ]


def size_on_disk(folder: Path) -> int:
    """The bytes that what is below a folder takes up, counted as `du` does where that is known."""
    found = [path.lstat() for path in folder.rglob("*")]
    return sum(s.st_blocks * 512 if hasattr(s, "st_blocks") else s.st_size for s in found)


def judge_size(torch: str, size: int) -> tuple[str, bool]:
    """What to say of an environment's size, and whether it is too large: only Binder's can be."""
    if torch != BINDER:
        return "", False
    text, limit = f", {size / 1e6:,.0f} MB on disk", f" over {MAX_BINDER / 1e6:,.0f} MB"
    return (text + limit, True) if size > MAX_BINDER else (text, False)


def prepare(folder: Path, command: str, torch: str, cpu: bool) -> str:
    """Make an environment unless it is whole; return why it could not be made, or "".

    Its stamp, written last, says how large it was before it got what only the tests need.
    """
    stamp = folder / STAMP
    if stamp.is_file():
        return ""
    shutil.rmtree(folder, ignore_errors=True)
    steps = [[command, "-m", "venv", str(folder)]]
    pip = [str(python_of(folder)), "-m", "pip", "--disable-pip-version-check"]
    steps += [[*pip, *arguments] for arguments in install_commands(torch, cpu)]
    size = 0
    for step in steps:
        size = size_on_disk(folder)  # the last step brings what only the tests need
        done = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            last = (done.stdout.strip().splitlines() or ["no reason given"])[-1]
            return f"not run, cannot be installed here: {last[:120]}"
    stamp.write_text(str(size), encoding="utf-8")
    return ""


def torch_of(python: Path) -> str:
    """The version of torch in an environment."""
    code = "import torch; print(torch.__version__)"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return done.stdout.strip() or "torch does not import"


def test(python: Path) -> tuple[str, bool, str]:
    """Run the tests in an environment: result in words, whether it failed, pytest's words."""
    files = [str(f) for pattern in TESTS for f in sorted(ROOT.glob(pattern))]
    command = [python, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup"]
    command += ["-p", "no:cacheprovider", *files]
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    last = (done.stdout.strip().splitlines() or [""])[-1]
    counts = ", ".join(" ".join(match) for match in SUMMARY.findall(last))
    return counts or f"exit code {done.returncode}", done.returncode != 0, done.stdout


def try_combination(python: str, torch: str, cpu: bool) -> Outcome:
    """Prepare one combination and test it."""
    began = time.perf_counter()
    command = find_python(python)
    if command is None:
        return Outcome(python, torch, f"not run: there is no Python {python} here", 0.0, ran=False)
    folder = ROOT / ".venv" / "matrix" / f"python-{python}-torch-{torch}"
    problem = prepare(folder, command, torch, cpu)
    if problem:
        return Outcome(python, torch, problem, time.perf_counter() - began, ran=False)
    found = torch_of(python_of(folder))
    result, failed, log = test(python_of(folder))
    size, too_large = judge_size(torch, int((folder / STAMP).read_text(encoding="utf-8")))
    took = time.perf_counter() - began
    return Outcome(python, found, result + size, took, failed or too_large, log)


def main(arguments: list[str]) -> int:
    """Try all combinations, or those whose Python or torch is named; 1 if a test failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("only", nargs="*", help="versions: 3.12, 2.6.0, newest …")
    only = parser.parse_args(arguments).only
    chosen = [pair for pair in COMBINATIONS if not only or set(only) & set(pair)]
    if not chosen:
        known = sorted({version for pair in COMBINATIONS for version in pair})
        raise SystemExit(f"nothing to run for {' '.join(only)}; there are: {', '.join(known)}")
    cpu = os.environ.get("TORCH") == "cpu"
    print(f"{'Python':8} {'torch':14} {'seconds':>8}  result", flush=True)
    outcomes = []
    for python, torch in chosen:
        outcome = try_combination(python, torch, cpu)
        outcomes.append(outcome)
        print(
            f"{outcome.python:8} {outcome.torch:14} {outcome.seconds:8.0f}  {outcome.result}",
            flush=True,
        )
    for outcome in outcomes:
        if outcome.failed:
            lines = outcome.log.splitlines()[-60:]
            print(f"\nPython {outcome.python}, torch {outcome.torch}:", *lines, sep="\n")
    missed = [o for o in outcomes if not o.ran and os.environ.get("GITHUB_ACTIONS") == "true"]
    for outcome in missed:
        print(f"\nerror: Python {outcome.python}, torch {outcome.torch}: {outcome.result}")
    return 1 if missed or any(outcome.failed for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
