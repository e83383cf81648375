"""Find a Chromium for tests and PDFs, and install one where that can be done.

    .venv/full/bin/python tools/browser.py

The variable CHROMIUM names one; else it is looked for on PATH, then where macOS and Windows install
programs, which is not on PATH, and last where `playwright install` puts its own. Where there is
none, root on Debian gets it by apt. Anybody else is told the command, and this fails.
"""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
# How the tests and `make pdf` start it: alone, asking nobody for anything.
FLAGS = (
    "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
    "--disable-sync --no-first-run"
).split()
DEBIAN = Path("/etc/debian_version")
# Below a folder for programs: that of macOS, and those of Windows, which variables name.
APPS = ("Google Chrome.app/Contents/MacOS/Google Chrome", "Chromium.app/Contents/MacOS/Chromium")
EXE = ("Google/Chrome/Application/chrome.exe", "Chromium/Application/chrome.exe")
PROGRAM_FILES = ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")
# Below Playwright's folder, in which a newer Chromium has a higher number.
PLAYWRIGHT = (
    "chromium-*/chrome-linux*/chrome",
    "chromium-*/chrome-mac*/*.app/Contents/MacOS/*",
    "chromium-*/chrome-win*/chrome.exe",
)
INSTALL = "apt-get install -y -q --no-install-recommends chromium fonts-liberation"


def places(system: str, home: Path, variables: Mapping[str, str]) -> list[Path]:
    """Return the files that may be a Chromium although it is not on PATH, best first.

    Arguments: the system as `sys.platform` names it, the home folder, and the environment's
    variables. Only Playwright's own are known to exist.
    """
    if system == "win32":
        folders = [Path(variables[name]) for name in PROGRAM_FILES if variables.get(name)]
        found = [folder / program for folder in folders for program in EXE]
        cache = home / "AppData/Local"
    elif system == "darwin":
        folders = [Path("/Applications"), home / "Applications"]
        found = [folder / program for folder in folders for program in APPS]
        cache = home / "Library/Caches"
    else:
        found = []
        cache = home / ".cache"
    own = Path(variables.get("PLAYWRIGHT_BROWSERS_PATH") or cache / "ms-playwright")
    newest = [path for pattern in PLAYWRIGHT for path in own.glob(pattern)]
    newest.sort(key=lambda path: int(path.relative_to(own).parts[0].rpartition("-")[2]))
    return found + newest[::-1]


def find() -> str | None:
    """Return the path of a Chromium; None when there is none.

    What CHROMIUM names is taken or nothing is: a slip of the pen must not go unseen.
    """
    if os.environ.get("CHROMIUM"):
        return shutil.which(os.environ["CHROMIUM"])
    elsewhere = map(str, places(sys.platform, Path.home(), os.environ))
    return next((path for name in (*NAMES, *elsewhere) if (path := shutil.which(name))), None)


def is_ubuntu() -> bool:
    """Say whether this is Ubuntu, whose Chromium is a snap: apt has none."""
    try:
        return platform.freedesktop_os_release().get("ID") == "ubuntu"
    except OSError:
        return False


def apt_has_it() -> bool:
    """Say whether apt has a Chromium here. Ubuntu has Debian's file too, and no such package."""
    return DEBIAN.exists() and not is_ubuntu()


def is_root_on_debian() -> bool:
    """Say whether apt may be used here without asking for a password."""
    return apt_has_it() and hasattr(os, "geteuid") and os.geteuid() == 0


def install() -> bool:
    """Install Chromium by apt; return whether it worked. What apt said is shown if not."""
    for command in ("apt-get update -q", INSTALL):
        variables = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(command.split(), env=variables, capture_output=True, text=True)
        if done.returncode:
            print(done.stdout[-2000:], done.stderr[-2000:], sep="\n", file=sys.stderr)
            return False
    return True


def main() -> int:
    """Make sure of a browser; return the exit code. Quiet when there is one."""
    if find():
        return 0
    named = os.environ.get("CHROMIUM")
    if named:
        print(f"error: CHROMIUM={named} is no program; mend it or leave it out", file=sys.stderr)
        return 1
    if is_root_on_debian():
        print("Installing Chromium by apt, to open and print the pages; this takes a minute ...")
        if install() and find():
            return 0
    playwright = f"{Path(sys.executable).as_posix()} -m playwright install"
    print(
        f"error: no Chromium found, to open and print the pages with. On Debian: sudo {INSTALL}; "
        f"on Ubuntu: {playwright} --with-deps chromium; elsewhere install Chromium or Chrome, and "
        "set CHROMIUM to its path when it is not found; or let Playwright fetch one: "
        f"{playwright} chromium",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
