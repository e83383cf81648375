"""Look every locked package up among the publicly known weaknesses.

    make audit

pip-audit asks the package index, so this needs the network; the scheduled run does it once a week.
A package that cannot be looked up fails as a weakness does: silence is no answer. A finding is cured
by a newer version, or answered in `ANSWERED` by saying why it does no harm here.
"""

import subprocess
import sys

from environment import LOCKED, REQUIREMENTS, ROOT

# The number of a weakness, and why it does no harm in a course that is built and read as this one.
ANSWERED: dict[str, str] = {}


def command() -> list[str]:
    """Return pip-audit's command. It installs and resolves nothing: the lists are complete."""
    files = [LOCKED["full"], LOCKED["book"], LOCKED["assets"], *REQUIREMENTS.values()]
    asked = [f"--requirement={ROOT / file}" for file in files]
    answered = [f"--ignore-vuln={number}" for number in ANSWERED]
    options = ["--strict", "--no-deps", "--disable-pip", "--progress-spinner=off"]
    return [sys.executable, "-m", "pip_audit", *options, *answered, *asked]


def main() -> int:
    """Run pip-audit; return the exit code, which is 0 only when all was looked up and is clean."""
    print("Looking the packages up; this takes a minute ...", flush=True)
    for number, reason in ANSWERED.items():
        print(f"{number}: answered. {reason}")
    return 1 if subprocess.run(command(), cwd=ROOT).returncode else 0


if __name__ == "__main__":
    sys.exit(main())
