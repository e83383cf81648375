"""Find a Chromium for tests and PDFs, and install one where that can be done.

    .venv/full/bin/python tools/browser.py

The variable CHROMIUM names one; else it is looked for on PATH. Where there is none, root on Debian
gets it by apt. Anybody else is told the command, and this fails.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
# How the tests and `make pdf` start it: alone, asking nobody for anything.
FLAGS = (
    "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
    "--disable-sync --no-first-run"
).split()
DEBIAN = Path("/etc/debian_version")
INSTALL = "apt-get install -y -q --no-install-recommends chromium fonts-liberation"


def find() -> str | None:
    """Return the path of a Chromium; None when there is none.

    What CHROMIUM names is taken or nothing is: a slip of the pen must not go unseen.
    """
    names = (os.environ["CHROMIUM"],) if os.environ.get("CHROMIUM") else NAMES
    return next((path for name in names if (path := shutil.which(name))), None)


def is_root_on_debian() -> bool:
    """Say whether apt may be used here without asking for a password."""
    return DEBIAN.exists() and hasattr(os, "geteuid") and os.geteuid() == 0


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
    print(
        "error: no Chromium found, to open and print the pages with. On Debian and Ubuntu: "
        f"sudo {INSTALL}; elsewhere install Chromium or Chrome, and set CHROMIUM to its path "
        "when it is not on PATH",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
