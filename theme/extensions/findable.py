"""Let pages be found: address, description, Open Graph, sitemap, robots, 404 page.

The site's address is the first of these that is known: `html.baseurl` in _config.yml,
for a domain of one's own; the environment's SITE_URL, which a publishing workflow sets
to what GitHub says (`base_url` of actions/configure-pages); the address of the
repository's GitHub Pages. Without one, pages name none, and there is no sitemap.

A description is the first sentences of a page; layout.html writes it into the head.
"""

import os
import re
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from docutils import nodes
from sphinx.errors import ConfigError

from theme.extensions.reading import FORMULA, sentences

# Plain ASCII, for the address goes into XML, HTML and robots.txt as it is.
SITE = re.compile(
    r"(?P<host>https?://[a-z0-9-]+(\.[a-z0-9-]+)*(:\d+)?)"
    r"(?P<path>(/(?!\.\.?(/|$))[\w.~%+-]+)*)/?",
    re.IGNORECASE | re.ASCII,
)
# The host of an owner's Pages; a name with `_` belongs to a company, and has another.
REPOSITORY = re.compile(
    r"https://(?:www\.)?github\.com/([a-z0-9-]+)/([\w.-]+)", re.IGNORECASE
)

# A list of results has room for some 160 characters; fewer than 30 say nothing.
LEAST, MOST = 30, 160
WITHOUT_TEXT = {
    "search": "Search the lessons and the reference pages of {}.",
    "404": "There is no page at this address in {}.",
}


def checked(address: str, name: str) -> str:
    """Return an address that somebody set, with a slash at its end.

    Errors: `ConfigError`, with the setting's name, when it is not that of a folder.
    """
    match = SITE.fullmatch(address.strip())
    if not match or match["path"].endswith(".html"):
        raise ConfigError(
            f"{name} must look like https://example.org/course, and is {address!r}: "
            "the folder that the first page is in"
        )
    return f"{match['host'].lower()}{match['path']}/"


def find_site(configured: str, environment: dict, repository: str) -> str:
    """Return the site's address with a slash at its end, or "" when none is known.

    Arguments: `html.baseurl`, the environment, and the repository's address.
    """
    if configured:
        return checked(configured, "_config.yml: html.baseurl")
    if environment.get("SITE_URL"):
        return checked(environment["SITE_URL"], "SITE_URL")
    match = REPOSITORY.fullmatch(repository)
    if not match:
        return ""
    host = f"{match[1].lower()}.github.io"
    return f"https://{host}/" + ("" if match[2].lower() == host else f"{match[2]}/")


def set_address(app, config) -> None:
    """Tell Sphinx the address, and the 404 page the path at which the site begins."""
    repository = config.html_theme_options["repository_url"]
    config.html_baseurl = find_site(config.html_baseurl, os.environ, repository)
    # the 404 page is served at any depth, and so cannot use relative links
    config.notfound_urls_prefix = urlsplit(config.html_baseurl).path or "/"


def summary(paragraph) -> str:
    """Return the sentences at the start of a paragraph that fit and have no formula.

    A first sentence that is too long is cut after a word. "" when it has a formula.
    """
    found = ""
    for sentence in sentences(paragraph):
        longer = f"{found} {sentence}".strip()
        if FORMULA in sentence or (len(longer) > MOST and len(found) >= LEAST):
            break
        found = longer
    if len(found) <= MOST:
        return found
    return found[: MOST - 1].rpartition(" ")[0].rstrip(",;:") + "…"


def describe(doctree, pagename: str, project: str) -> str:
    """Return a page's description; `doctree` is None for a page without a file."""
    if doctree is None:
        return WITHOUT_TEXT.get(pagename, "A page of {}.").format(project)
    for node in doctree.findall(nodes.paragraph):
        if isinstance(node.parent, nodes.section | nodes.document):
            text = summary(node)
            if len(text) >= LEAST:
                return text
    return f"A page of {project}."


def add_to_context(app, pagename, templatename, context, doctree) -> None:
    """Give the template the description, and correct the page's own address."""
    context["description"] = describe(doctree, pagename, app.config.html_title)
    if pagename == app.config.root_doc:
        context["pageurl"] = app.config.html_baseurl or None
    if pagename == "404":  # it answers for every address, and so has none
        context["pageurl"] = None
        context["content_root"] = app.config.notfound_urls_prefix


def write_files(app, exception) -> None:
    """Write what search engines and hosts ask for beside the finished pages."""
    if exception or app.builder.format != "html":
        return
    site, base = Path(app.outdir), app.config.html_baseurl
    (site / ".nojekyll").touch()  # GitHub would leave out folders that begin with `_`
    robots = "User-agent: *\nAllow: /\n"
    if base:
        pages = sorted(app.env.found_docs - {app.config.root_doc})
        addresses = [base, *(base + app.builder.get_target_uri(page) for page in pages)]
        sitemap = (
            '<?xml version="1.0" encoding="utf-8"?>\n'
            '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
            + "".join(f"  <url><loc>{escape(url)}</loc></url>\n" for url in addresses)
            + "</urlset>\n"
        )
        (site / "sitemap.xml").write_text(sitemap, encoding="utf-8")
        robots += f"Sitemap: {base}sitemap.xml\n"
    (site / "robots.txt").write_text(robots, encoding="utf-8")


def setup(app) -> dict:
    """Register with Sphinx."""
    app.connect("config-inited", set_address, priority=600)  # after launch.py
    app.connect("html-page-context", add_to_context)
    app.connect("build-finished", write_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
