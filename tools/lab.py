"""Open JupyterLab on the lessons: `make lab`.

    .venv/full/bin/python tools/lab.py [options of JupyterLab]

The whole repository is served, for lessons link to `../references.md`; the browser opens in
`lessons/`. Nobody but this machine can reach it, and it asks no other machine for anything.
"""

import os
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OPTIONS = [
    f"--ServerApp.root_dir={ROOT}",
    "--ServerApp.ip=127.0.0.1",
    "--LabApp.default_url=/lab/tree/lessons",
    # JupyterLab would fetch news, look for a newer version, and list extensions to install.
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
    # Only the hub of a test needs it. Here a link could have anything pulled into the folder.
    '--ServerApp.jpserver_extensions={"nbgitpuller": False}',
]


def command(python: Path | str, *more: str) -> list[str]:
    """Return the command that opens JupyterLab with a given Python, and with more options."""
    return [str(python), str(Path(__file__).resolve()), *more]


def main() -> None:
    """Become JupyterLab, with our options and those of the command line."""
    own = list(OPTIONS)
    # JupyterLab refuses to run as root unless told to; who works as root has run our tools as root.
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        own.append("--allow-root")
    # One thread a process, as with make: more make the small models of the lessons slower.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.argv[1:] = own + sys.argv[1:]
    del sys.path[0]  # the folder of the tools, whose names must not hide a package's
    runpy.run_module("jupyterlab", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
