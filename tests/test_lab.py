"""`make lab` opens JupyterLab on the lessons, for this machine only, and asks no other machine."""

import json
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import lab
import psutil
import pytest
from helpers_book import ROOT
from helpers_jupyterlab import own_settings, running

TOKEN = "a-token-of-the-test"
# What one or the other reader might have made of it, and the promise that it breaks.
PLANTED = {
    f"--ServerApp.root_dir={lab.ROOT}": (
        f"--ServerApp.root_dir={lab.ROOT / 'lessons'}",
        "../references.md cannot be opened from a lesson",
    ),
    "--ServerApp.ip=127.0.0.1": ("--ServerApp.ip=0.0.0.0", "other machines reach it"),
    "--LabApp.default_url=/lab/tree/lessons": (
        "--LabApp.default_url=/lab",
        "it does not open in lessons/",
    ),
    "--LabApp.news_url=None": (
        "--LabApp.news_url=http://127.0.0.1:9/feed.xml",
        "news are asked for",
    ),
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate": (
        "--LabApp.check_for_updates_class=lab_updates.Planted",
        "a newer version is asked for",
    ),
    "--LabApp.extension_manager=readonly": (
        "--LabApp.extension_manager=pypi",
        "extensions are asked for",
    ),
    '--ServerApp.jpserver_extensions={"nbgitpuller": False}': (
        '--ServerApp.jpserver_extensions={"nbgitpuller": True}',
        "a link can pull other repositories",
    ),
}
# Stands for JupyterLab's own check, and answers instead of asking a server.
PLANTED_CHECK = """
from jupyterlab.handlers.announcements import CheckForUpdateABC

class Planted(CheckForUpdateABC):
    async def __call__(self):
        return "a newer version is out"
"""


@contextmanager
def opened(folder: Path, command: list[str]):
    """Run JupyterLab; yield its process and the address that it opened in the browser.

    Its settings and notes are kept in the folder, and a program that writes down an address stands
    for the browser.
    """
    program, note = folder / "browser.py", folder / "address"
    program.write_text("import pathlib, sys\npathlib.Path(sys.argv[1]).write_text(sys.argv[2])\n")
    (folder / "lab_updates.py").write_text(PLANTED_CHECK)
    browser = f"{Path(sys.executable).as_posix()} {program.as_posix()} {note.as_posix()} %s"
    variables = own_settings(folder) | {"PYTHONPATH": str(folder)}
    options = ["--ServerApp.port=0", f"--IdentityProvider.token={TOKEN}"]
    command = [*command, *options, f"--ServerApp.browser={browser}"]

    def ready() -> str:
        return note.read_text() if note.exists() else ""

    with running(command, folder / "log", ready, cwd=folder, env=variables) as (server, _):
        # The browser gets a file that leads on, so that the token is in no list of processes.
        notes = Path(variables["JUPYTER_RUNTIME_DIR"])
        page = next(notes.glob("jpserver-*-open.html")).read_text(encoding="utf-8")
        yield server, re.search(r'href="(http[^"?]*)', page)[1]


def ask(address: str) -> str:
    """Return what the server answers, "" for what it does not have."""
    request = Request(address, headers={"Authorization": f"token {TOKEN}"})
    try:
        with urlopen(request, timeout=30) as answer:
            return answer.read().decode()
    except HTTPError:
        return ""


def broken_promises(folder: Path, command: list[str]) -> list[str]:
    """Return what a JupyterLab does that `make lab` promises it does not, one line each."""
    found = []
    with opened(folder, command) as (server, address):
        base = re.match(r"http://[^/]+", address)[0]
        settings = json.loads(re.search(r">(\{.*?\})</script>", ask(address), re.S)[1])
        listening = {
            c.laddr.ip for c in psutil.Process(server.pid).net_connections() if c.status == "LISTEN"
        }
        if not ask(f"{base}/api/contents/references.md"):
            found.append("../references.md cannot be opened from a lesson")
        if listening != {"127.0.0.1"}:
            found.append("other machines reach it")
        if not address.endswith("/lab/tree/lessons") or settings["treePath"] != "lessons":
            found.append("it does not open in lessons/")
        if not settings["news"]["disabled"]:
            found.append("news are asked for")
        if json.loads(ask(f"{base}/lab/api/update"))["notification"]:
            found.append("a newer version is asked for")
        if settings["extensionManager"]["name"] != "read-only":
            found.append("extensions are asked for")
        if ask(f"{base}/git-pull?repo=https://example.org/a/b"):
            found.append("a link can pull other repositories")
    return found


@pytest.mark.slow
def test_it_opens_in_the_lessons_and_their_links_open_and_no_other_machine_has_a_part(tmp_path):
    assert broken_promises(tmp_path, lab.command(sys.executable)) == []


@pytest.mark.slow
def test_every_option_is_needed_for_that(tmp_path):
    assert list(PLANTED) == lab.OPTIONS
    options = [option for option, _ in PLANTED.values()] + ["--allow-root"]
    found = broken_promises(tmp_path, [sys.executable, "-m", "jupyterlab", *options])
    assert found == [fault for _, fault in PLANTED.values()]


def test_make_and_the_readme_open_it_with_the_environment_that_has_torch():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^lab: full-environment  ##.*\n\t@\$\(FULL\) tools/lab.py$", makefile, re.M)
    assert "lab" in re.search(r"^\.PHONY: (.*)", makefile, re.M)[1].split()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "**Run here**: `make lab`" in readme
    assert "\n.venv\\full\\Scripts\\python tools\\lab.py\n" in readme
