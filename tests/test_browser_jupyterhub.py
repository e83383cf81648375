"""The link that a teacher turns on with one line opens the lesson on a real JupyterHub.

The hub runs on this machine, with nbgitpuller in its servers, as a class would have it. The page is
built with the hub's address in _config.yml, and its link is pressed as it is; only git is told that
github.com is a folder here.
"""

import os
import socket
import subprocess
import sys
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from bs4 import BeautifulSoup
from helpers_book import PUBLISHED, build, tiny_book
from helpers_jupyterlab import running
from test_repository_links import set_hub

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.xdist_group("jupyterlab"),
    pytest.mark.skipif(sys.platform == "win32", reason="JupyterHub does not run on Windows"),
]

PASSWORD = "for this test only, on this machine"
SETTINGS = """
c.JupyterHub.bind_url = "http://127.0.0.1:{proxy}"
c.JupyterHub.hub_port = {hub}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.ConfigurableHTTPProxy.command = ["configurable-http-proxy"]
c.JupyterHub.db_url = "sqlite:///:memory:"
c.JupyterHub.cookie_secret_file = "{folder}/secret"
c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = "{password}"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"  # no account on this machine for each student
c.SimpleLocalProcessSpawner.home_dir_template = "{folder}/home"
c.Spawner.args = ["--allow-root"]
c.Spawner.environment = {environment}
"""


def free_ports(number: int) -> list[int]:
    """Return ports of this machine that nobody listens to."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def git(folder: Path, *command: str) -> None:
    """Run git in a folder, as somebody."""
    somebody = ["-c", "user.name=A teacher", "-c", "user.email=teacher@example.org"]
    subprocess.run(["git", "-C", folder, *somebody, *command], check=True, capture_output=True)


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """Run a hub whose git finds `some-teacher/class` here; give its address and that repository."""
    folder = tmp_path_factory.mktemp("hub")
    (folder / "home").mkdir()
    proxy, hub, api = free_ports(3)
    environment = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{folder}/github/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
    }
    text = SETTINGS.format(
        proxy=proxy, hub=hub, api=api, folder=folder, password=PASSWORD, environment=environment
    )
    (folder / "jupyterhub_config.py").write_text(text)
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    command = [sys.executable, "-m", "jupyterhub", "-f", folder / "jupyterhub_config.py"]
    address = f"http://127.0.0.1:{proxy}"
    options = {"cwd": folder, "env": {**os.environ, "PATH": programs}}
    with running(command, folder / "log", lambda: answers(f"{address}/hub/health"), **options):
        yield address, folder / "github" / PUBLISHED["GITHUB_REPOSITORY"]


def answers(address: str) -> bool:
    """Say whether an address can be read."""
    try:
        urllib.request.urlopen(address, timeout=5).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def link(hub):
    """Publish a tiny book with the hub's address in its settings; return the link on its page."""
    address, repository = hub
    root = tiny_book(repository)
    set_hub(root, f"{address}/hub/home")
    done = build(root, **PUBLISHED)
    assert done.returncode == 0, done.stderr
    git(root, "init", "-q", "--initial-branch=main")
    git(root, "add", "lessons", "references.md")
    git(root, "commit", "-q", "-m", "A tiny course")
    html = (root / "_build/html/lessons/07-tiny.html").read_text(encoding="utf-8")
    (button,) = BeautifulSoup(html, "html.parser").select("a[href*='git-pull']")
    return button["href"]


def opened(browser, link: str) -> str:
    """Press a link as a student who is not logged in yet; return what is then seen.

    That is the heading of the notebook, or what nbgitpuller says when it cannot get it.
    """
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(link)
    page.fill("#username_input", "student")
    page.fill("#password_input", PASSWORD)
    page.click("#login_submit")
    heading, failure = ".jp-Notebook .jp-RenderedMarkdown h1", ".progress-bar-danger"
    seen = page.wait_for_selector(f"{heading}, {failure}").inner_text()
    context.close()
    return seen


def test_the_link_is_of_the_form_that_nbgitpuller_reads(hub, link):
    address, _ = hub
    parts = urlsplit(link)
    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{address}/hub/user-redirect/git-pull"
    assert {name: value for name, [value] in parse_qs(parts.query).items()} == {
        "repo": "https://github.com/some-teacher/class",
        "urlpath": "lab/tree/class/lessons/07-tiny.ipynb",
        "branch": "main",
    }


def test_a_student_presses_it_and_has_the_lesson(browser, link):
    assert opened(browser, link).startswith("Lesson 07: Tiny")


def test_pressed_again_it_brings_corrections_and_keeps_what_the_student_changed(hub, browser, link):
    _, repository = hub
    opened(browser, link)
    theirs = repository.parent.parent.parent / "home/class"
    notebook = theirs / "lessons/07-tiny.ipynb"
    notebook.write_text(notebook.read_text().replace("1 + 1", "1 + 2"))
    with (repository / "references.md").open("a") as file:
        file.write("\nA correction.\n")
    git(repository, "commit", "-q", "-a", "-m", "Correct a reference")
    assert "correction" not in (theirs / "references.md").read_text()
    opened(browser, link)
    assert "A correction." in (theirs / "references.md").read_text()
    assert "1 + 2" in notebook.read_text()


@pytest.mark.parametrize(
    "right, wrong", [("branch=main", "branch=master"), ("some-teacher/class", "some-teacher/none")]
)
def test_planted_wrong_link_is_seen(browser, link, right, wrong):
    assert right in link
    assert "Error" in opened(browser, link.replace(right, wrong))
