"""Make, check or repair the project's own Python environments.

    python3 tools/environment.py book    # .venv/book: what building the book needs, no torch
    python3 tools/environment.py full    # .venv/full: that, and what running and testing needs

Runs on any Python 3.11 or newer and needs nothing but the standard library. An environment
counts as whole only when its stamp, written last, fits the requirement files, this Python and
the environment's own place, and when the packages noted in the stamp are still there. Anything
else is made again from nothing: a half-finished installation cannot be told from a good one.

What is installed is locked: the locked-*.txt have the hash of every file, and pip refuses another.
Torch has none, since its build depends on the machine; nothing else goes without.

With TORCH=cpu in the environment, torch comes from PyTorch's own index of builds for processors
only (named in binder/requirements.txt). Linux otherwise gets the CUDA build, gigabytes larger.
"""

import sys

if sys.version_info < (3, 11):
    sys.exit(
        "error: Python 3.11 or newer is needed, and this is %d.%d; "
        "name another one, for example: make book PYTHON=python3.12" % sys.version_info[:2]
    )

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = {"book": "requirements-book.txt", "full": "requirements.txt"}
ASSETS = "requirements-assets.txt"
LOCKED = {"book": "locked-book.txt", "full": "locked-full.txt", "assets": "locked-assets.txt"}
CONSTRAINTS = "constraints.txt"
CPU_REQUIREMENTS = "binder/requirements.txt"
STAMP = "course-stamp.json"
# Which file of these packages fits depends on the machine, so they have no hash.
UNLOCKED = re.compile(r"(torch|triton|nvidia-.*|cuda-.*)")

# Settings that would send pip's work, or Python's imports, somewhere else than the environment.
MISLEADING = {"PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"}


class Failure(Exception):
    """Something the reader has to mend; the text is one line that says what and how."""


def requirement_files(name: str, root: Path) -> list[Path]:
    """Return the requirement files of an environment, those reached by `-r` included.

    Errors: `Failure` when one of them is missing.
    """
    files, todo = [], [root / REQUIREMENTS[name], root / ASSETS]
    while todo:
        path = todo.pop()
        if not path.is_file():
            raise Failure(f"{path.name} is missing; restore it with `git checkout {path.name}`")
        files.append(path)
        included = re.findall(r"^-r\s+(\S+)", path.read_text(encoding="utf-8"), re.M)
        todo += [path.parent / other for other in included]
    return files


def normalise(package: str) -> str:
    """Return a package's name in the one form in which two spellings of it are equal."""
    return re.sub(r"[-_.]+", "-", package).lower()


def pins(*files: Path) -> dict[str, str]:
    """Read the `name==version` lines of requirement files into a dictionary."""
    found = {}
    for path in files:
        lines = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", path.read_text(encoding="utf-8"), re.M)
        found.update({normalise(package): version for package, version in lines})
    return found


def python_of(environment: Path) -> Path:
    """Return the path of an environment's interpreter, which differs on Windows."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def site_packages(environment: Path) -> list[Path]:
    """Return the folder, if it exists, in which an environment's packages are."""
    pattern = "Lib/site-packages" if os.name == "nt" else "lib/python*/site-packages"
    return list(environment.glob(pattern))


def installed(environment: Path) -> dict[str, str]:
    """Return name and version of every package in an environment.

    Reads folder names only (`name-version.dist-info`, as the packaging standard has them):
    opening each package's metadata would take longer than all the rest of the check.
    """
    found = {}
    folders = [f for place in site_packages(environment) for f in place.glob("*.dist-info")]
    for folder in folders:
        package, _, version = folder.name.removesuffix(".dist-info").rpartition("-")
        if (folder / "METADATA").is_file():
            found[normalise(package)] = version
    return found


def fingerprint(name: str, root: Path) -> str:
    """Return a hash of all that decides what an environment must be."""
    parts = [str(root / ".venv" / name), "%d.%d" % sys.version_info[:2]]
    locks = [root / LOCKED[name], root / LOCKED["assets"]]
    for path in [*requirement_files(name, root), *locks, root / CONSTRAINTS]:
        parts.append(path.read_text(encoding="utf-8"))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def complaint(name: str, root: Path) -> str | None:
    """Say why an environment cannot be used as it is; None when it can.

    Arguments: the environment's name, "book" or "full", and the repository's root.
    """
    environment = root / ".venv" / name
    if not environment.exists():
        return "it does not exist yet"
    try:
        stamp = json.loads((environment / STAMP).read_text(encoding="utf-8"))
        made_for, noted = stamp["fingerprint"], stamp["installed"].items()
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return "it was never finished"
    if made_for != fingerprint(name, root):
        return "the requirements, the Python version or the folder changed"
    if not python_of(environment).exists():
        return "its Python is gone"
    present = installed(environment)
    for package, version in noted:
        if present.get(package) != version:
            return f"{package} {version} was removed or changed"
    return None


def pip_commands(name: str, root: Path, torch: str) -> list[list[str]]:
    """Return pip's argument lists, in order, that fill an environment.

    Arguments: the environment's name, the repository's root, and the wish about torch:
    "cpu" for the small build, or "" for the default one.
    Errors: `Failure` for any other wish.
    """
    if torch not in ("", "cpu"):
        raise Failure(f"TORCH={torch} is not known; say TORCH=cpu, or leave it out")
    commands = [["install", "--require-hashes", "-r", str(root / LOCKED[name])]]
    if name == "full":
        files = [CPU_REQUIREMENTS] if torch == "cpu" else []
        constraints = ["-c", str(root / CONSTRAINTS)]
        for file in [*files, REQUIREMENTS[name]]:
            commands.append(["install", *constraints, "-r", str(root / file)])
    assets = ["--require-hashes", "--no-deps", "-r", str(root / LOCKED["assets"])]
    return [*commands, ["install", *assets]]


def unlocked(present: dict[str, str], name: str, root: Path) -> list[str]:
    """Return the packages of an environment that were installed without a hash, and should not be.

    Arguments: name and version of all that is installed, the environment's name, and the root.
    """
    locked = pins(root / LOCKED[name], root / LOCKED["assets"])
    others = {"pip", "setuptools"}  # a new environment has them
    known = others | set(locked)
    return sorted(p for p in present if p not in known and not UNLOCKED.fullmatch(p))


def make(name: str, root: Path, torch: str = "", run=subprocess.run) -> None:
    """Make an environment from nothing, and stamp it when it is whole.

    Arguments: the environment's name, the repository's root, the wish about torch (see
    `pip_commands`), and the function that runs a command.
    Errors: `Failure` when a step fails; the environment then has no stamp.
    """
    environment = root / ".venv" / name
    commands = pip_commands(name, root, torch)
    try:
        import ensurepip  # noqa: F401 - Debian ships Python without it
        import venv  # noqa: F401
    except ImportError as error:
        raise Failure(
            f"this Python lacks the module {error.name}; on Debian and Ubuntu: "
            "apt install python3-venv"
        ) from None

    variables = {k: v for k, v in os.environ.items() if k not in MISLEADING}
    variables |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_REQUIRE_VIRTUALENV": "1"}

    # The old stamp must be gone before anything else is: an interruption leaves no lie behind.
    (environment / STAMP).unlink(missing_ok=True)
    shutil.rmtree(environment, ignore_errors=True)
    steps = [[sys.executable, "-m", "venv", "--clear", str(environment)]]
    steps += [[str(python_of(environment)), "-m", "pip", *command] for command in commands]
    for step in steps:
        # The output is kept back, and its end shown when the step fails.
        done = run(step, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            print(*done.stdout.splitlines()[-15:], sep="\n", file=sys.stderr)
            what = f"install {Path(step[-1]).name}" if "pip" in step else f"make {environment}"
            raise Failure(f"could not {what}; see above, mend it, and run the same command again")

    present = installed(environment)
    wanted = pins(*requirement_files(name, root), root / CONSTRAINTS)
    needed = pins(*requirement_files(name, root))
    for package, version in wanted.items():
        found = present.get(package)
        if found is None and package not in needed:
            continue
        # A local label (`2.13.0+cpu`) names the build, not the version.
        if found is None or found.partition("+")[0] != version:
            raise Failure(
                f"{package} should be {version}, and is {found or 'missing'}; mend its line in "
                f"{REQUIREMENTS[name]}, and run `make pins`, which renews {LOCKED[name]}"
            )
    others = unlocked(present, name, root)
    if others:
        raise Failure(
            f"{', '.join(others)}: not in {LOCKED[name]}; run `make pins`, which renews it"
        )

    stamp = {"fingerprint": fingerprint(name, root), "installed": present}
    unfinished = environment / (STAMP + ".new")
    unfinished.write_text(json.dumps(stamp, indent=1), encoding="utf-8")
    unfinished.replace(environment / STAMP)


def prepare(name: str, root: Path = ROOT) -> None:
    """Leave an environment whole: at once when it already is, made from nothing otherwise.

    Arguments: the environment's name, "book" or "full", and the repository's root.
    Errors: `Failure`, with one line for the reader.
    """
    reason = complaint(name, root)
    if reason is None:
        return
    size = "a minute" if name == "book" else "some minutes"
    print(f"Making .venv/{name} ({reason}); this takes {size} ...", flush=True)
    make(name, root, os.environ.get("TORCH", ""))
    print(f"Made .venv/{name}.", flush=True)


def main() -> int:
    """Prepare the environment named on the command line; return the exit code."""
    parser = argparse.ArgumentParser(description="Make, check or repair an environment.")
    parser.add_argument("name", choices=sorted(REQUIREMENTS))
    try:
        prepare(parser.parse_args().name)
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted; the next run starts afresh", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
