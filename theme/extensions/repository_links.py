"""Links that follow the fork: launch, source, edit and issue buttons point at this repository.

The address comes from the first of these that is known: `repository.url` in _config.yml; the
environment's GITHUB_REPOSITORY, which GitHub sets in workflows; the remote `origin`, when that
is on GitHub. With none known the buttons are left out: no address is ever made up.

Which launch buttons there are depends on where the repository is: Colab opens notebooks of
github.com only, Binder those of gitlab.com too. A JupyterHub, which a teacher names in one line of
_config.yml, gets the repository from anywhere, by nbgitpuller.
"""

import os
import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from sphinx.errors import ConfigError

# jupyter-book fills in its own repository when _config.yml says nothing at all.
NOT_OURS = "https://github.com/executablebooks/jupyter-book"
# Whose addresses of files the theme knows, by host.
PROVIDERS = {"github.com": "github", "gitlab.com": "gitlab", "bitbucket.org": "bitbucket"}
BUTTONS = ["use_repository_button", "use_source_button", "use_edit_page_button"]

# https://, ssh:// or git:// and the short git@ form, with or without `.git`; what stands before
# the @ may be a password, and is never kept.
GITHUB_REMOTE = re.compile(
    r"(?:(?:https?|ssh|git)://)?(?:[^/\s]*@)?(?:ssh\.)?github\.com(?::\d+)?[:/]"
    r"(?P<owner>[\w.-]+)/(?P<name>[\w.-]+?)(?:\.git)?/?",
    re.IGNORECASE,
)


def from_config(url: str) -> str:
    """Return `repository.url` without password, `.git` or final slash.

    Errors: `ConfigError` when it is not of the form https://host/owner/name.
    """
    parts = urlsplit(url.strip())
    path = parts.path.strip("/").removesuffix(".git")
    if parts.scheme not in ("http", "https") or not parts.hostname or "/" not in path:
        raise ConfigError(
            "_config.yml: repository.url must look like https://github.com/owner/name"
        )
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/{path}"


def from_workflow(repository: str, server: str) -> str:
    """Return the address of GitHub's `owner/name` on its server.

    Errors: `ConfigError` when GITHUB_REPOSITORY is something else.
    """
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise ConfigError(f"GITHUB_REPOSITORY must be owner/name, and is {repository!r}")
    return f"{server.rstrip('/')}/{repository}"


def from_remote(remote: str) -> str:
    """Return the address of a GitHub remote, and "" for any other remote."""
    match = GITHUB_REMOTE.fullmatch(remote.strip())
    return f"https://github.com/{match['owner']}/{match['name']}" if match else ""


def origin(folder: Path) -> str:
    """Return the remote `origin` of the repository whose root is `folder`, or "".

    A copy without its own .git, lying somewhere inside another repository, has none.
    """

    def git(*arguments: str) -> str:
        try:
            done = subprocess.run(
                ["git", "-C", str(folder), *arguments], capture_output=True, text=True
            )
        except OSError:
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    top = git("rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != folder.resolve():
        return ""
    return git("remote", "get-url", "origin")


def find_repository(configured: str, environment: dict, folder: Path) -> str:
    """Return the repository's address, or "" when none is known.

    Arguments: `repository.url`, the environment's variables, and the book's folder.
    """
    if configured and configured != NOT_OURS:
        return from_config(configured)
    if environment.get("GITHUB_REPOSITORY"):
        server = environment.get("GITHUB_SERVER_URL") or "https://github.com"
        return from_workflow(environment["GITHUB_REPOSITORY"], server)
    return from_remote(origin(folder))


def hub_address(configured: str) -> str:
    """Return `launch_buttons.jupyterhub_url` as its links begin; "" when there is none.

    What a browser shows on the hub's pages, such as `/hub/home` at its end, is accepted too.
    Errors: `ConfigError` when it is no address of a server.
    """
    parts = urlsplit(configured.strip())
    if not configured.strip():
        return ""
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise ConfigError(
            "_config.yml: launch_buttons.jupyterhub_url must be the hub's address, "
            f"such as https://hub.example.org, and is {configured!r}"
        )
    path = re.sub(r"/(hub|user)(/.*)?$", "", parts.path).rstrip("/")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path}"


def launch_buttons(configured: dict, address: str) -> dict:
    """Return the settings of the launch buttons that a repository can have.

    Arguments: `launch_buttons` of _config.yml, and the repository's address or "".
    Errors: those of `hub_address`.
    """
    hub = hub_address(configured.get("jupyterhub_url") or "")
    if not address:
        return {}
    # The theme knows Binder's address of a project, but not that of one in a group of a group.
    host, depth = urlsplit(address).netloc, urlsplit(address).path.count("/")
    left_out = {("github.com", 2): [], ("gitlab.com", 2): ["colab_url"]}
    for button in left_out.get((host, depth), ["colab_url", "binderhub_url"]):
        configured = configured | {button: ""}
    return configured | {"jupyterhub_url": hub}


def set_theme_options(app, config) -> None:
    """Tell the theme the address, and which buttons it can therefore show."""
    options = config.html_theme_options
    address = find_repository(options.get("repository_url", ""), os.environ, Path(app.srcdir))
    workflow = os.environ.get("GITHUB_REPOSITORY")
    provider = PROVIDERS.get(urlsplit(address).netloc, "")
    if workflow and address.endswith("/" + workflow):
        provider = "github"
    options["repository_url"] = address
    options |= {button: bool(address) for button in BUTTONS}
    options["use_issues_button"] = provider == "github"
    if address and not provider:
        # How such a server writes the address of a file is not known; a hub needs none.
        options |= {"use_source_button": False, "use_edit_page_button": False}
    options["repository_provider"] = provider or "gitlab"
    options["launch_buttons"] = launch_buttons(options.get("launch_buttons", {}), address)


def add_to_context(app, pagename, templatename, context, doctree) -> None:
    """Give the templates the address for a new issue, as `new_issue`; "" when there is none."""
    options = app.config.html_theme_options
    issues = options["repository_url"] + "/issues/new" if options["use_issues_button"] else ""
    context["new_issue"] = issues


def setup(app) -> dict:
    """Register with Sphinx."""
    app.connect("config-inited", set_theme_options)
    app.connect("html-page-context", add_to_context)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
