"""Print versions, and say in words what is wrong here and how to mend it: `make doctor`.

    python3 tools/doctor.py

Changes nothing, asks no network, and needs nothing but Python: any Python 3.6 can run the first
part, which tells of a Python that is too old. The exit code is 1 when something is wrong.

Looked at are the Python that makes the environments, what else is in it if it is an environment of
the reader's own, the project's environments in .venv/, the shell, space, and Chromium. A project's
environment that does not exist is no fault, since every command makes the one that it needs.
"""

import os
import platform
import shutil
import subprocess
import sys

OLDEST_PYTHON = (3, 11)
TRIED_PYTHONS = ("3.13", "3.12", "3.11")


def answer(*command: str) -> str:
    """Return what a command prints, "" when it cannot be run or fails."""
    quiet = {"stderr": subprocess.DEVNULL, "universal_newlines": True, "timeout": 60}
    try:
        return subprocess.check_output(command, **quiet).strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def python_fault(version: tuple) -> tuple:
    """Return what is wrong with a Python of this version, and how to mend it; () if nothing is."""
    if version >= OLDEST_PYTHON:
        return ()
    windows = os.name == "nt"  # which has no make, and one program that starts every Python
    start = ("py", "-%s") if windows else ("python%s",)
    calls = [(tried, [part.replace("%s", tried) for part in start]) for tried in TRIED_PYTHONS]
    there = next((tried for tried, call in calls if answer(*call, "--version")), None)
    form = "py -%s tools\\doctor.py" if windows else "make doctor PYTHON=python%s"
    mend = (form + ", and so for every command") % (there or "3.12")
    if not there:
        mend = "install Python 3.11 or newer, and name it: " + mend
    return ("This is Python %d.%d, and the course needs 3.11 or newer." % version[:2], mend)


def describe_python() -> str:
    """Return version and place of the Python that runs this, and the system it runs on."""
    system = "%s, %s" % (platform.platform(terse=True), platform.machine())
    return "%s, %s; %s" % (platform.python_version(), sys.executable, system)


if python_fault(sys.version_info[:2]):
    print("Python: %s\n" % describe_python())
    print("Wrong: %s\n  Mend it: %s" % python_fault(sys.version_info[:2]))
    print("The rest was not looked at: a newer Python has to do that.")
    sys.exit(1)

import importlib.util
import re
import tempfile
import textwrap
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path

import browser
import environment
from matrix import OLDEST_TORCH, PINNED_TORCH

LESSON_PACKAGES = ("torch", "numpy", "matplotlib")  # all that a lesson imports
SHOWN = (*LESSON_PACKAGES, "jupyterlab", "jupyter-book")
# What an environment weighs in GB, measured on Linux with Python 3.11. What pip fetches for it
# lies meanwhile in the folder for temporary files, and is up to half as large.
WEIGHT = {"book": 0.4, "full": 1.8, "full with CUDA": 5.6}
SPARE = 0.5  # for what builds and tests write
CARD = ("/proc/driver/nvidia/version", "/dev/nvidia0", "/usr/lib/wsl/lib/nvidia-smi")


@dataclass
class Finding:
    """One look: a line of the table, faults with their mending, notes, and what is to be made."""

    what: str
    found: str
    faults: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    missing: tuple[str, ...] = ()


@dataclass
class Packages:
    """The versions of the packages in some folders, and whether their torch is a CUDA build."""

    versions: dict[str, str]
    cuda: bool = False

    def __str__(self) -> str:
        return ", ".join(f"{name} {v}" for name, v in self.versions.items()) or "nothing of ours"


def packages(folders: list[str]) -> Packages:
    """Return the packages in the folders that a Python imports from, without importing any."""
    found = Packages({})
    for name in SHOWN:
        distribution = next(iter(distributions(name=name, path=folders)), None)
        if distribution is None:
            continue
        found.versions[name] = distribution.version
        if name == "torch":
            # The CUDA build on PyPI has no label in its distribution's version, but has it here.
            file = Path(str(distribution.locate_file("torch/version.py")))
            text = file.read_text(encoding="utf-8") if file.is_file() else ""
            version = re.search(r"^__version__ = '(.+)'", text, re.M)
            found.versions[name] = version[1] if version else distribution.version
            found.cuda = "+cu" in found.versions[name] or bool(re.search(r"^cuda.*= '", text, re.M))
    return found


def has_card() -> bool:
    """Say whether this machine shows an NVIDIA card."""
    return bool(shutil.which("nvidia-smi")) or any(Path(place).exists() for place in CARD)


def command(verb: str) -> str:
    """Return how a verb of the Makefile is written here: Windows has no make."""
    name = verb.removesuffix("-environment")
    if os.name == "nt" and name != verb:
        return f"python tools\\environment.py {name}"
    if os.name == "nt":
        return f".venv\\full\\Scripts\\python tools\\{verb}.py"
    small = sys.platform == "linux" and not has_card() and verb != "book-environment"
    return f"make {verb}{' TORCH=cpu' if small else ''}"


def numbers(version: str) -> list[int]:
    """Return a version as numbers, to compare; its label, as in 2.13.0+cpu, is left out."""
    return [int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3]]


def package_faults(here: Packages, wanted: tuple[str, ...]) -> str:
    """Return in sentences about "it" what is wrong with the packages of an environment, or ""."""
    versions, found = here.versions, []
    lacking = [name for name in wanted if name not in versions]
    if lacking:
        found.append(f"It lacks {', '.join(lacking)}.")
    torch = versions.get("torch")
    if torch and numbers(torch) < numbers(OLDEST_TORCH):
        found.append(f"It has torch {torch}, and the lessons need {OLDEST_TORCH} or newer.")
    if here.cuda and not has_card():
        found.append(
            f"It has the CUDA build of torch ({torch}), and no NVIDIA card was found here: "
            "gigabytes for nothing, for the lessons compute on the processor."
        )
    book = versions.get("jupyter-book")
    if book and numbers(book) >= [2]:
        found.append(
            f"It has jupyter-book {book}, which does not read _config.yml and makes an empty site; "
            "the book is built by jupyter-book 1."
        )
    return " ".join(found)


def in_two(failure: Exception) -> tuple[str, str]:
    """Part the words of a `Failure`, which say what is wrong and how to mend it."""
    wrong, _, mend = str(failure).partition("; ")
    return f"{wrong}.", mend


def look_at_python(torch: str) -> Finding:
    """Look at the Python that makes the environments, and at the wish about torch."""
    finding = Finding("Python", describe_python())
    lacking = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if lacking:
        package = "python%d.%d-venv" % sys.version_info[:2]
        text = f"This Python lacks {' and '.join(lacking)}, and so can make no environment."
        mend = f"on Debian and Ubuntu: apt install {package}; or name another: PYTHON=python3.12"
        finding.faults.append((text, mend))
    newest, version = TRIED_PYTHONS[0], "%d.%d" % sys.version_info[:2]
    if numbers(version) > numbers(newest):
        finding.notes.append(
            f"This is Python {version}. Tried are {TRIED_PYTHONS[-1]} to {newest}; if packages "
            "cannot be installed, or a command fails, take one of these."
        )
    try:
        environment.pip_commands("full", environment.ROOT, torch)
    except environment.Failure as failure:
        finding.faults.append(in_two(failure))
    return finding


def mend_of_own(here: Packages, root: Path) -> str:
    """Return the commands that mend an environment of the reader's own, in their order."""
    pip = f"{Path(sys.executable).as_posix()} -m pip"
    steps, versions = [], here.versions
    cuda = here.cuda and not has_card()
    if cuda:  # a CUDA build of the right version is good enough for pip
        steps.append(f"{pip} uninstall -y torch")
    lacking = not versions.keys() >= set(LESSON_PACKAGES)
    if cuda or lacking or numbers(versions["torch"]) < numbers(OLDEST_TORCH):
        steps.append(f"{pip} install -r binder/requirements.txt")
    if numbers(versions.get("jupyter-book", "1")) >= [2]:
        file = root / environment.REQUIREMENTS["book"]
        pins = environment.pins(file) if file.is_file() else {}
        steps.append(f'{pip} install "jupyter-book=={pins.get("jupyter-book", "1.*")}"')
    return ", then: ".join(steps)


def look_at_this(root: Path) -> list[Finding]:
    """Look at what is in the environment that this runs in, if it is none of the project's.

    One that the reader made and activated is meant for work, so what it lacks is a fault. The
    Python of the system, or conda's base, is not.
    """
    if Path(sys.prefix).resolve().is_relative_to((root / ".venv").resolve()):
        return []
    conda = os.environ.get("CONDA_PREFIX") == sys.prefix
    chosen = conda and os.environ.get("CONDA_DEFAULT_ENV") != "base"
    here = packages(sys.path)
    own = sys.prefix != sys.base_prefix or chosen
    finding = Finding("Its packages", f"{here}{'' if own else ' (no environment of its own)'}")
    torch = here.versions.get("torch")
    wrong = package_faults(here, LESSON_PACKAGES if own else ())
    if own and wrong:
        mend = mend_of_own(here, root)
        mend += f"; or work in the course's own environment: {command('lab')}"
        text = f"The environment {sys.prefix} does not suit the lessons. {wrong}"
        finding.faults.append((text, mend))
    elif torch and wrong:
        text = f"This Python does not suit the lessons. {wrong}"
        finding.notes.append(f"{text} `{command('lab')}` opens them with another.")
    elif torch and torch.partition("+")[0] != PINNED_TORCH:
        finding.notes.append(
            f"Notebooks run by this Python have torch {torch}, and what the lessons show is by "
            f"{PINNED_TORCH}: digits may differ. `{command('lab')}` opens them with that."
        )
    return [finding]


def look_at_ours(name: str, root: Path) -> Finding:
    """Look at one of the project's environments, "book" or "full"."""
    place, again = f".venv/{name}", command(f"{name}-environment")
    finding = Finding(place, "not made yet")
    try:
        complaint = environment.complaint(name, root)
    except environment.Failure as failure:
        finding.faults.append(in_two(failure))
        return finding
    except OSError as error:
        text = f"{Path(error.filename).name} cannot be read."
        finding.faults.append((text, "git checkout restores what `git status` calls deleted"))
        return finding
    finding.missing = (name,) if complaint else ()
    if not (root / place).exists():
        finding.notes.append(f"{place} is made by the first command that needs it, or: {again}")
        return finding
    here = packages([str(path) for path in environment.site_packages(root / place)])
    finding.found = str(here)
    wanted = ("jupyter-book",) if name == "book" else (*LESSON_PACKAGES, "jupyterlab")
    wrong = package_faults(here, wanted)
    if complaint:
        text = f"{place} cannot be used as it is: {complaint}. {wrong}".strip()
        finding.faults.append((text, again))
    elif wrong:
        # What is whole is left alone, as long as its folder is there.
        text = f"{place} is not as it should be. {wrong}"
        finding.faults.append((text, f"remove the folder {place}, then: {again}"))
    return finding


def look_at_shell(root: Path) -> Finding:
    """Look at which environment is active in the shell, and at variables that mislead."""
    active = os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX")
    finding = Finding("Active", active or "no environment, and none is needed")
    known = [(root / ".venv").resolve(), Path(sys.prefix).resolve()]

    def is_known(place: str) -> bool:
        return any(Path(place).resolve().is_relative_to(folder) for folder in known)

    if active and not is_known(active):
        finding.notes.append(
            f"The active environment is {active}, and this Python is another: what is in it was "
            "not looked at. To have that done, run tools/doctor.py with its Python."
        )
    jupyter = shutil.which("jupyter-lab")
    if jupyter and not is_known(str(Path(jupyter).parent)):
        finding.notes.append(
            f"`jupyter lab` is {jupyter} here: it opens the lessons with another environment's "
            f"torch, or with none. `{command('lab')}` opens them with ours."
        )
    unset = "unset PYTHONPATH"
    if os.name == "nt":
        unset = "set PYTHONPATH=, or in PowerShell: $env:PYTHONPATH = ''"
    for folder in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        for name in LESSON_PACKAGES:
            if any((Path(folder) / f"{name}{end}").exists() for end in ("", ".py")):
                text = f"PYTHONPATH names {folder}, whose {name} hides that of every environment."
                finding.faults.append((text, unset))
    for name in sorted(environment.MISLEADING & set(os.environ)):
        finding.notes.append(
            f"{name} is set. Our commands leave it out when they install packages."
        )
    if "OMP_NUM_THREADS" not in os.environ:
        finding.notes.append(
            "OMP_NUM_THREADS is not set. Make sets it to 1, so that programs which run side by "
            "side do not slow each other down."
        )
    return finding


def space_needed(root: Path, kinds: list[str]) -> dict[Path, float]:
    """Return how many GB a folder needs, for each folder, to make environments of some kinds.

    Errors: `OSError` when no folder for temporary files can be written to.
    """
    weight = sum(WEIGHT[kind] for kind in kinds)
    temporary = Path(tempfile.gettempdir())
    if temporary.stat().st_dev == root.stat().st_dev:
        return {root: SPARE + 1.5 * weight}
    return {root: SPARE + weight, temporary: 0.5 * weight}


def space_faults(root: Path, kinds: list[str]) -> list[str]:
    """Return in which folders there is not enough space to make environments of some kinds."""
    purpose = f" to make {' and '.join(kinds)} in .venv" if kinds else ""
    found = []
    for folder, need in space_needed(root, kinds).items():
        free = shutil.disk_usage(folder).free / 1e9
        if free < need:
            text = (
                f"{folder} has {free:.1f} GB of space left, and {need:.1f} GB are needed{purpose}."
            )
            found.append(text)
    return found


def look_at_space(root: Path, missing: list[str], torch: str) -> Finding:
    """Look whether there is space for the environments that are missing.

    Arguments: the repository's root, the names of these environments, and the wish about torch.
    """
    finding = Finding("Space", f"{shutil.disk_usage(root).free / 1e9:.1f} GB free in {root}")
    kinds = missing
    if sys.platform == "linux" and torch != "cpu":
        kinds = ["full with CUDA" if name == "full" else name for name in missing]
    mend = "make room there; for temporary files, TMPDIR may name a folder elsewhere"
    try:
        faults = space_faults(root, kinds)
        if faults and kinds != missing and not space_faults(root, missing):
            mend = "take the small build of torch: make full-environment TORCH=cpu"
    except OSError:
        faults = ["No folder for temporary files can be written to, or it is full."]
    finding.faults = [(fault, mend) for fault in faults]
    return finding


def look_at_chromium() -> Finding:
    """Look for a Chromium, and whether it starts."""
    path, named = browser.find(), os.environ.get("CHROMIUM")
    if not path:
        finding = Finding("Chromium", "none")
        own = environment.python_of(Path(".venv/full"))
        install = f"sudo {browser.INSTALL}" if browser.apt_has_it() else "install Chrome"
        mend = f"{install}; or: {own} -m playwright install chromium"
        if browser.is_ubuntu():
            mend = f"{own} -m playwright install --with-deps chromium"
        text = "There is no Chromium or Chrome, which tests and PDFs need to open the pages."
        if named:
            text, mend = f"CHROMIUM={named} is no program.", "set CHROMIUM to one, or unset it"
        finding.faults.append((text, mend))
        return finding
    if os.name == "nt":  # there, to ask for the version would open a window
        return Finding("Chromium", path)
    version = answer(path, "--version")
    finding = Finding("Chromium", f"{path}, {version or 'no version'}")
    if not version:
        finding.faults.append((f"{path} does not start.", "install Chromium or Chrome anew"))
    return finding


def examine(root: Path) -> list[Finding]:
    """Look at everything that belongs to the copy of the project at `root`."""
    torch = os.environ.get("TORCH", "")
    findings = [look_at_python(torch), *look_at_this(root)]
    findings += [look_at_ours(name, root) for name in ("book", "full")]
    missing = [name for finding in findings for name in finding.missing]
    return [
        *findings,
        look_at_shell(root),
        look_at_space(root, missing, torch),
        look_at_chromium(),
    ]


def wrapped(text: str) -> str:
    """Return a text in lines of 100 characters, with names and paths left whole."""
    return textwrap.fill(text, 100, break_on_hyphens=False, break_long_words=False)


def main(root: Path = environment.ROOT) -> int:
    """Print what was found, then notes, then faults and their mending; return the exit code."""
    commit = answer("git", "-C", str(root), "rev-parse", "--short", "HEAD")
    course = Finding("Course", f"commit {commit}" if commit else "no commit is known")
    findings = [course, *examine(root)]
    for finding in findings:
        print(f"{finding.what:13}{finding.found}")
    for note in (note for finding in findings for note in finding.notes):
        print("\n" + wrapped(f"Note: {note}"))
    faults = [fault for finding in findings for fault in finding.faults]
    for text, mend in faults:
        print("\n" + wrapped(f"Wrong: {text}"))
        print(f"  Mend it: {mend}")
    print(f"\nWrong: {len(faults)}, see above." if faults else "\nNothing is wrong.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
