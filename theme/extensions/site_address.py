"""Where the site is published: one place that canonical links, sitemap and the 404 page ask.

The address comes from the first of these that is known: `html.baseurl` in _config.yml, for a domain
of one's own; the environment's SITE_URL, which a publishing workflow sets to what GitHub's own
action for Pages says (`base_url` of actions/configure-pages); the repository, when it is on GitHub,
whose Pages have a known address. It ends up as `html_baseurl`, with a slash at its end; that is ""
when none is known, for no address is ever made up.
"""

import os
import re
from urllib.parse import urlsplit

from sphinx.errors import ConfigError

# Plain ASCII, for the address goes into XML, HTML and robots.txt as it is.
SITE = re.compile(
    r"(?P<host>https?://[a-z0-9-]+(\.[a-z0-9-]+)*(:\d+)?)"
    r"(?P<path>(/(?!\.\.?(/|$))[\w.~%+-]+)*)/?",
    re.IGNORECASE | re.ASCII,
)
REPOSITORY = re.compile(
    r"https?://(?:www\.)?github\.com/(?P<owner>[a-z0-9]+(?:-[a-z0-9]+)*)/(?P<name>[\w.-]+)",
    re.IGNORECASE | re.ASCII,
)


def checked(address: str, name: str) -> str:
    """Return an address that somebody set, its host in small letters and a slash at its end.

    Errors: `ConfigError`, with the setting's name, when it is not the address of a folder.
    """
    match = SITE.fullmatch(address.strip())
    if not match or match["path"].endswith(".html"):
        raise ConfigError(
            f"{name} must look like https://example.org/course, and is {address!r}: the folder "
            "that the first page is in"
        )
    return f"{match['host'].lower()}{match['path']}/"


def from_repository(repository: str) -> str:
    """Return the address of the repository's GitHub Pages, or "" when it is not on github.com.

    The host is the owner in small letters; the path keeps the repository's, as Pages does. An owner
    who cannot be a host's name (accounts that a company manages have a `_`) has another address.
    """
    match = REPOSITORY.fullmatch(repository)
    if not match:
        return ""
    host = f"{match['owner'].lower()}.github.io"
    path = "" if match["name"].lower() == host else f"{match['name']}/"
    return f"https://{host}/{path}"


def find_site(configured: str, environment: dict, repository: str) -> str:
    """Return the site's address with a slash at its end, or "" when none is known.

    Arguments: `html.baseurl`, the environment's variables, and the repository's address.
    """
    if configured:
        return checked(configured, "_config.yml: html.baseurl")
    if environment.get("SITE_URL"):
        return checked(environment["SITE_URL"], "SITE_URL")
    return from_repository(repository)


def tell(app, config) -> None:
    """Tell Sphinx the address, and the 404 page the path at which the site begins."""
    repository = config.html_theme_options["repository_url"]
    config.html_baseurl = find_site(config.html_baseurl, os.environ, repository)
    # served at any depth, the page cannot use relative links; alone on a host the path is "/"
    config.notfound_urls_prefix = urlsplit(config.html_baseurl).path or "/"


def setup(app) -> dict:
    """Register with Sphinx."""
    app.connect("config-inited", tell, priority=600)  # repository_links.py comes first
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
