"""Launch, source, edit and issue links follow the fork, and name files that exist."""

import re
import subprocess
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from helpers_book import build, tiny_book
from repository_links import NOT_OURS, find_repository, from_remote, hub_address, launch_buttons
from sphinx.errors import ConfigError

FORK = "https://github.com/some-teacher/class.2026"


@pytest.mark.parametrize(
    "remote",
    [
        "https://github.com/some-teacher/class.2026",
        "https://github.com/some-teacher/class.2026.git",
        "https://github.com/some-teacher/class.2026/",
        "https://x-access-token:s3cret@github.com/some-teacher/class.2026.git",
        "https://me@example.org:s3cret@github.com/some-teacher/class.2026",
        "git@github.com:some-teacher/class.2026.git",
        "github.com:some-teacher/class.2026",
        "ssh://git@github.com/some-teacher/class.2026.git",
        "ssh://git@ssh.github.com:443/some-teacher/class.2026.git",
        "git://GitHub.com/some-teacher/class.2026.git",
    ],
)
def test_every_way_to_write_a_github_remote(remote):
    assert from_remote(remote) == FORK


@pytest.mark.parametrize(
    "remote",
    [
        "",
        "/srv/git/github.com/some/thing.git",
        "https://notgithub.com/some/thing",
        "https://example.org/github.com/some/thing",
        "git@gitlab.com:some/thing.git",
        "https://github.com/only-an-owner",
    ],
)
def test_other_remotes_give_no_address(remote):
    assert from_remote(remote) == ""


def test_order_configuration_then_workflow_then_remote(tmp_path):
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", repository], check=True)
    add = ["git", "-C", repository, "remote", "add", "origin", "git@github.com:third/c.git"]
    subprocess.run(add, check=True)
    workflow = {"GITHUB_REPOSITORY": "second/b"}
    configured = "https://token@github.com/first/a.git/"
    assert find_repository(configured, workflow, repository) == "https://github.com/first/a"
    assert find_repository("", workflow, repository) == "https://github.com/second/b"
    assert find_repository("", {}, repository) == "https://github.com/third/c"
    # jupyter-book's default is nobody's wish.
    assert find_repository(NOT_OURS, {}, repository) == "https://github.com/third/c"
    # A folder inside somebody else's repository is not that repository.
    (repository / "inside").mkdir()
    assert find_repository("", {}, repository / "inside") == ""


def test_server_of_a_company_is_honoured(tmp_path):
    workflow = {"GITHUB_REPOSITORY": "o/r", "GITHUB_SERVER_URL": "https://git.example.org"}
    assert find_repository("", workflow, tmp_path) == "https://git.example.org/o/r"


@pytest.mark.parametrize("configured", ["some-teacher/class", "https://github.com/alone"])
def test_wrong_address_in_the_settings_is_refused(configured, tmp_path):
    with pytest.raises(ConfigError, match="_config.yml: repository.url"):
        find_repository(configured, {}, tmp_path)


@pytest.mark.parametrize(
    "configured, address",
    [
        ("", ""),
        (" ", ""),
        ("https://hub.example.org", "https://hub.example.org"),
        ("https://hub.example.org/", "https://hub.example.org"),
        ("https://hub.example.org/hub/home", "https://hub.example.org"),
        ("https://example.org/jupyter/hub", "https://example.org/jupyter"),
        ("https://example.org/hubs/one/", "https://example.org/hubs/one"),
        ("http://127.0.0.1:8000/hub/spawn", "http://127.0.0.1:8000"),
        ("https://me:s3cret@hub.example.org/user/me/lab", "https://hub.example.org"),
    ],
)
def test_every_way_to_write_the_address_of_a_hub(configured, address):
    assert hub_address(configured) == address


@pytest.mark.parametrize(
    "configured",
    ["hub.example.org", "yes", "ftp://hub.example.org", "https://", "https://h?next=x"],
)
def test_wrong_address_of_a_hub_is_refused(configured):
    with pytest.raises(ConfigError, match="_config.yml: launch_buttons.jupyterhub_url"):
        hub_address(configured)


@pytest.mark.parametrize(
    "host, buttons",
    [
        ("https://github.com", {"binderhub_url", "colab_url", "jupyterhub_url"}),
        ("https://gitlab.com", {"binderhub_url", "jupyterhub_url"}),
        ("https://gitlab.com/group", {"jupyterhub_url"}),
        ("https://git.example.org", {"jupyterhub_url"}),
    ],
)
def test_which_buttons_there_are_depends_on_where_the_repository_is(host, buttons):
    configured = {name: "https://x.org" for name in ("binderhub_url", "colab_url")}
    configured |= {"jupyterhub_url": "https://hub.example.org", "notebook_interface": "jupyterlab"}
    found = launch_buttons(configured, f"{host}/o/r")
    assert {name for name in found if name.endswith("_url") and found[name]} == buttons
    assert found["notebook_interface"] == "jupyterlab"
    assert launch_buttons(configured, "") == {}
    without = launch_buttons(configured | {"jupyterhub_url": None}, f"{host}/o/r")
    assert without["jupyterhub_url"] == ""


def outward_links(page: Path) -> set[str]:
    """Return the addresses of other hosts that a page links to."""
    html = page.read_text(encoding="utf-8")
    return {unescape(url) for url in re.findall(r'<a\b[^>]*?\shref="(https?://[^"]+)"', html)}


def check_links(root: Path, address: str) -> None:
    """Assert that both pages link to `address` in every way, each time to a file that exists."""
    owner_name = urlsplit(address).path.strip("/")
    for docname, source in [("index", "index.md"), ("lessons/07-tiny", "lessons/07-tiny.ipynb")]:
        links = outward_links(root / f"_build/html/{docname}.html")
        wanted = {
            address,
            f"{address}/blob/main/{source}?plain=1",
            f"{address}/edit/main/{source}",
        }
        if source.endswith(".ipynb"):
            wanted.add(f"https://mybinder.org/v2/gh/{owner_name}/main?urlpath=lab/tree/{source}")
            wanted.add(f"https://colab.research.google.com/github/{owner_name}/blob/main/{source}")
        assert wanted <= links
        assert (root / source).is_file()
        issues = [link for link in links if link.startswith(f"{address}/issues/new?title=")]
        assert len(issues) == 2 and all(docname in unquote(link) for link in issues)
        ours = re.compile(r"github|binder|colab")
        named = [link for link in links if ours.search(urlsplit(link).netloc)]
        assert all(owner_name in link for link in named), "an address that is not this repository"


def test_links_in_a_workflow_of_a_fork(tmp_path):
    root = tiny_book(tmp_path / "book")
    done = build(root, GITHUB_REPOSITORY="some-teacher/class.2026")
    assert done.returncode == 0, done.stderr
    check_links(root, FORK)


def test_links_from_a_remote_do_not_leak_its_password(tmp_path):
    root = tiny_book(tmp_path / "book")
    subprocess.run(["git", "init", "-q", root], check=True)
    remote = "https://user:s3cret@github.com/some-teacher/class.2026.git"
    subprocess.run(["git", "-C", root, "remote", "add", "origin", remote], check=True)
    done = build(root)
    assert done.returncode == 0, done.stderr
    check_links(root, FORK)
    site = [path for path in (root / "_build/html").rglob("*") if path.is_file()]
    assert not any(b"s3cret" in path.read_bytes() for path in site)


def test_no_address_known_means_none_shown(tmp_path):
    root = tiny_book(tmp_path / "book")
    done = build(root)
    assert done.returncode == 0, done.stderr
    for docname in ("index", "references", "lessons/07-tiny"):
        page = root / f"_build/html/{docname}.html"
        hosts = {urlsplit(link).netloc for link in outward_links(page)}
        assert hosts == {"opensource.org", "creativecommons.org"}
        html = page.read_text(encoding="utf-8")
        assert (
            'index.html#found-a-mistake">Report a mistake' in html
            or 'href="#found-a-mistake' in html
        )
        assert "launch-buttons" not in html and "source-buttons" not in html
    assert 'id="found-a-mistake"' in (root / "_build/html/index.html").read_text(encoding="utf-8")


def set_hub(root: Path, address: str) -> None:
    """Write the address of a hub into the settings of a book."""
    text = (root / "_config.yml").read_text(encoding="utf-8")
    assert text.count('jupyterhub_url: ""\n') == 1
    (root / "_config.yml").write_text(
        text.replace('jupyterhub_url: ""', f"jupyterhub_url: {address}"), encoding="utf-8"
    )


def test_company_server_has_source_links_and_of_launches_only_the_hub(tmp_path):
    root = tiny_book(tmp_path / "book")
    set_hub(root, "https://hub.example.org/hub/home")
    done = build(root, GITHUB_REPOSITORY="o/r", GITHUB_SERVER_URL="https://git.example.org")
    assert done.returncode == 0, done.stderr
    links = outward_links(root / "_build/html/lessons/07-tiny.html")
    assert "https://git.example.org/o/r/edit/main/lessons/07-tiny.ipynb" in links
    assert [
        link for link in links if link.startswith("https://git.example.org/o/r/issues/new?title=")
    ]
    assert not [link for link in links if "binder" in link or "colab" in link]
    assert [link for link in links if "git-pull" in link] == [
        "https://hub.example.org/hub/user-redirect/git-pull?repo=https%3A//git.example.org/o/r"
        "&urlpath=lab/tree/r/lessons/07-tiny.ipynb&branch=main"
    ]


HUB = "https://hub.example.org/hub/user-redirect/git-pull?repo="


@pytest.mark.parametrize(
    "address, wanted, absent",
    [
        (
            "https://gitlab.com/o/github-course",
            {
                f"{HUB}https%3A//gitlab.com/o/github-course"
                "&urlpath=lab/tree/github-course/lessons/07-tiny.ipynb&branch=main",
                "https://mybinder.org/v2/gl/o%2Fgithub-course/main"
                "?urlpath=lab/tree/lessons/07-tiny.ipynb",
                "https://gitlab.com/o/github-course/-/edit/main/lessons/07-tiny.ipynb",
            },
            "colab|/v2/gh/|issues/new",
        ),
        (
            "https://git.example.org/school/dl",
            {
                f"{HUB}https%3A//git.example.org/school/dl"
                "&urlpath=lab/tree/dl/lessons/07-tiny.ipynb&branch=main",
                "https://git.example.org/school/dl",
            },
            "colab|binder|/edit/|/blob/|issues/new",
        ),
    ],
)
def test_a_copy_on_another_server_has_the_links_that_work_there(tmp_path, address, wanted, absent):
    root = tiny_book(tmp_path / "book")
    set_hub(root, "https://hub.example.org")
    text = (root / "_config.yml").read_text(encoding="utf-8")
    assert text.count('  url: ""\n') == 1
    (root / "_config.yml").write_text(text.replace('  url: ""', f"  url: {address}"))
    done = build(root)
    assert done.returncode == 0, done.stderr
    links = outward_links(root / "_build/html/lessons/07-tiny.html")
    assert wanted <= links
    assert [link for link in links if re.search(absent, link)] == []


def test_planted_wrong_hub_fails_the_build_by_name(tmp_path):
    root = tiny_book(tmp_path / "book")
    set_hub(root, "hub.example.org")
    done = build(root, GITHUB_REPOSITORY="o/r")
    assert done.returncode == 1
    assert "_config.yml: launch_buttons.jupyterhub_url must be the hub's address" in done.stderr


def test_planted_second_block_of_settings_fails_the_build_by_name(tmp_path):
    """The second would replace the first without a word, and Binder and Colab be gone."""
    root = tiny_book(tmp_path / "book")
    with (root / "_config.yml").open("a") as file:
        file.write("launch_buttons:\n  jupyterhub_url: https://hub.example.org\n")
    done = build(root, GITHUB_REPOSITORY="o/r")
    assert done.returncode == 1
    assert re.search("_config.yml.*launch_buttons stands here for the second time", done.stderr)
