"""Let launch, source, edit and issue links follow the fork.

The repository is the first of these that is known: `repository.url` in _config.yml; the
environment's GITHUB_REPOSITORY, which GitHub sets in workflows; the remote `origin`,
when that is on GitHub. A JupyterHub gets it from anywhere; all other links are for
repositories on github.com.
"""

import os
import re
import subprocess
from pathlib import Path

from sphinx.errors import ConfigError

GITHUB = "https://github.com"
BUTTONS = ("source", "edit_page", "issues")

# What stands before the @ may be a password, and is not kept.
REMOTE = re.compile(
    r"(?:\w+://)?(?:[^/\s]*@)?github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?", re.I
)


def origin(folder: Path) -> str:
    """Return the remote `origin` of the repository whose root is `folder`, or ""."""
    if not (folder / ".git").exists():  # a copy inside another repository has none
        return ""
    command = ["git", "-C", str(folder), "remote", "get-url", "origin"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip()


def find_repository(configured: str, environment: dict, folder: Path) -> str:
    """Return the repository's address, or "" when none is known."""
    if configured:
        if not re.fullmatch(r"https?://[\w.:-]+(/[\w.-]+){2,}", configured):
            example = f"{GITHUB}/owner/name"
            raise ConfigError(f"_config.yml: repository.url must look like {example}")
        return configured.removesuffix(".git")
    match = REMOTE.fullmatch(origin(folder))
    name = environment.get("GITHUB_REPOSITORY") or (match and match[1])
    return f"{GITHUB}/{name}" if name else ""


def hub_address(configured: str) -> str:
    """Return `launch_buttons.jupyterhub_url` without a page such as `/hub/home`."""
    if configured and not re.fullmatch(r"https?://[\w.:-]+(/[^?#]*)?", configured):
        setting = "_config.yml: launch_buttons.jupyterhub_url"
        raise ConfigError(f"{setting} must look like https://hub.example.org")
    return re.sub(r"/(hub|user)(/.*)?$", "", configured).rstrip("/")


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
    config.html_context["new_issue"] = f"{address}/issues/new" if on_github else ""


def setup(app) -> dict:
    """Register with Sphinx."""
    app.connect("config-inited", set_theme_options)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
