"""Let launch, source, edit and issue links follow the fork.

The repository is the first of these that is known: `repository.url` in _config.yml; the
environment's GITHUB_REPOSITORY, which GitHub sets in workflows; the remote `origin`,
when that is on GitHub. With none known there are no such links.

Binder, Colab, source and issues are for repositories on github.com. A JupyterHub, which
a teacher names in one line of _config.yml, gets the repository from anywhere.
"""

import os
import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from sphinx.errors import ConfigError

GITHUB = "https://github.com"
# jupyter-book fills in its own repository when _config.yml says nothing at all.
NOT_OURS = f"{GITHUB}/executablebooks/jupyter-book"
BUTTONS = ("source", "edit_page", "issues")

# https://, ssh:// or git:// and the short git@ form, with or without `.git`; what
# stands before the @ may be a password, and is never kept.
REMOTE = re.compile(
    r"(?:(?:https?|ssh|git)://)?(?:[^/\s]*@)?(?:ssh\.)?github\.com(?::\d+)?[:/]"
    r"(?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?/?",
    re.IGNORECASE,
)


def without_password(address: str, setting: str, example: str):
    """Return an address from _config.yml, split into its parts.

    Errors: `ConfigError`, with the setting's name, when it is not one of a server.
    """
    parts = urlsplit(address.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise ConfigError(f"_config.yml: {setting} must look like {example}")
    return parts._replace(netloc=parts.netloc.rpartition("@")[2])


def origin(folder: Path) -> str:
    """Return the remote `origin` of the repository whose root is `folder`, or ""."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        try:
            return subprocess.run(
                command, capture_output=True, text=True
            ).stdout.strip()
        except OSError:
            return ""

    top = git("rev-parse", "--show-toplevel")
    # a copy that lies somewhere inside another repository has none
    if not top or Path(top).resolve() != folder.resolve():
        return ""
    return git("remote", "get-url", "origin")


def find_repository(configured: str, environment: dict, folder: Path) -> str:
    """Return the repository's address, or "" when none is known.

    Arguments: `repository.url`, the environment, and the book's folder.
    Errors: `ConfigError` when the setting or the variable is no repository.
    """
    if configured and configured != NOT_OURS:
        example = f"{GITHUB}/owner/name"
        parts = without_password(configured, "repository.url", example)
        path = parts.path.strip("/").removesuffix(".git")
        if "/" not in path:
            raise ConfigError(f"_config.yml: repository.url must look like {example}")
        return f"{parts.scheme}://{parts.netloc}/{path}"
    name = environment.get("GITHUB_REPOSITORY")
    if name:
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
            raise ConfigError(f"GITHUB_REPOSITORY must be owner/name, and is {name!r}")
        return f"{environment.get('GITHUB_SERVER_URL') or GITHUB}/{name}"
    match = REMOTE.fullmatch(origin(folder))
    return f"{GITHUB}/{match['name']}" if match else ""


def hub_address(configured: str) -> str:
    """Return `launch_buttons.jupyterhub_url` as its links begin; "" when there is none.

    What a browser shows on the hub's pages, such as `/hub/home` at its end, may follow.
    Errors: `ConfigError` when it is no address of a server.
    """
    if not configured.strip():
        return ""
    setting = "launch_buttons.jupyterhub_url"
    parts = without_password(configured, setting, "https://hub.example.org")
    path = re.sub(r"/(hub|user)(/.*)?$", "", parts.path).rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}"


def set_theme_options(app, config) -> None:
    """Tell the theme the address, and which buttons it can therefore show."""
    options = config.html_theme_options
    configured = options.get("repository_url", "")
    address = find_repository(configured, os.environ, Path(app.srcdir))
    on_github = address.startswith(f"{GITHUB}/")
    launches = options.get("launch_buttons", {})
    launches["jupyterhub_url"] = hub_address(launches.get("jupyterhub_url") or "")
    if not on_github:
        launches |= {"binderhub_url": "", "colab_url": ""}
    options |= {f"use_{button}_button": on_github for button in BUTTONS}
    options |= {
        "repository_url": address,
        "repository_provider": "github" if on_github else "gitlab",  # the icon
        "use_repository_button": bool(address),
        "launch_buttons": launches if address else {},
    }


def add_to_context(app, pagename, templatename, context, doctree) -> None:
    """Give the templates the address for a new issue, as `new_issue`, or ""."""
    options = app.config.html_theme_options
    found = options["use_issues_button"]
    context["new_issue"] = f"{options['repository_url']}/issues/new" if found else ""


def setup(app) -> dict:
    """Register with Sphinx."""
    app.connect("config-inited", set_theme_options)
    app.connect("html-page-context", add_to_context)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
