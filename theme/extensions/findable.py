"""Let pages be found: address, description, Open Graph, sitemap, robots, 404 page.

The site's address is `html.baseurl` in _config.yml, for a domain of one's own, or else
that of the repository's GitHub Pages. Without one, pages name none, and there is no
sitemap. layout.html writes into the head of a page what is known of it here.
"""

import re
from itertools import takewhile
from pathlib import Path
from textwrap import shorten
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from docutils import nodes
from sphinx.errors import ConfigError

from theme.extensions.reading import FORMULA, sentences

# Plain ASCII, for the address goes into XML, HTML and robots.txt as it is.
SITE = re.compile(r"https?://[a-z0-9.:-]+(/[\w.~%+-]+)*(?<!\.html)/?", re.I | re.A)
# The host of an owner's Pages; a name with `_` belongs to a company, and has another.
REPOSITORY = re.compile(r"https://github\.com/([a-z0-9-]+)/([\w.-]+)", re.IGNORECASE)

# A list of results has room for some 160 characters; fewer than 30 say nothing.
LEAST, MOST = 30, 160
SITEMAP = """<?xml version="1.0" encoding="utf-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
{}</urlset>
"""


def find_site(configured: str, repository: str) -> str:
    """Return the site's address with a slash at its end, or "" when none is known."""
    if configured:
        if not SITE.fullmatch(configured):
            raise ConfigError(
                "_config.yml: html.baseurl must look like https://example.org/course, "
                "the folder that the first page is in"
            )
        return configured.removesuffix("/") + "/"
    match = REPOSITORY.fullmatch(repository)
    if not match:
        return ""
    host = f"{match[1].lower()}.github.io"
    return f"https://{host}/" + ("" if match[2].lower() == host else f"{match[2]}/")


def set_address(app, config) -> None:
    """Tell Sphinx the address, and the 404 page the path at which the site begins."""
    repository = config.html_theme_options["repository_url"]
    config.html_baseurl = find_site(config.html_baseurl, repository)
    # the 404 page is served at any depth, and so cannot use relative links
    config.notfound_urls_prefix = urlsplit(config.html_baseurl).path or "/"


def describe(doctree, pagename: str, project: str) -> str:
    """Return the sentences before a formula of a page's first fit paragraph."""
    for node in doctree.findall(nodes.paragraph) if doctree else []:
        if isinstance(node.parent, nodes.section | nodes.document):
            plain = takewhile(lambda text: FORMULA not in text, sentences(node))
            text = shorten(" ".join(plain), MOST, placeholder=" …")
            if len(text) >= LEAST:
                return text
    return f"The page “{pagename}” of {project}."


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
        lines = (f"  <url><loc>{escape(url)}</loc></url>\n" for url in addresses)
        text = SITEMAP.format("".join(lines))
        (site / "sitemap.xml").write_text(text, encoding="utf-8")
        robots += f"Sitemap: {base}sitemap.xml\n"
    (site / "robots.txt").write_text(robots, encoding="utf-8")


def setup(app) -> dict:
    """Register with Sphinx."""
    app.connect("config-inited", set_address, priority=600)  # after launch.py
    app.connect("html-page-context", add_to_context)
    app.connect("build-finished", write_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
