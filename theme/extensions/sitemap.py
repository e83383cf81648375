"""The files that search engines and hosts ask for: sitemap.xml, robots.txt and .nojekyll.

The sitemap lists the pages that were written by somebody: not the search, not the 404 page, no
redirect. It and its line in robots.txt need the site's address, and are left out when none is known
(see site_address.py). Robots read robots.txt at the root of a host only, so that of a project's
Pages helps when the book has a host for itself. .nojekyll keeps GitHub from leaving out folders
that begin with `_`.

sphinx-sitemap lists the pages of the last build only, which in a preview are those that changed,
and warns, an error here, when no address is known.
"""

from pathlib import Path
from xml.sax.saxutils import escape

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


def page_address(app, docname: str) -> str:
    """Return the whole address of a page; that of the first page is the site's own."""
    uri = "" if docname == app.config.root_doc else app.builder.get_target_uri(docname)
    return app.config.html_baseurl + uri


def write_files(app, exception) -> None:
    """Write the files beside the finished pages."""
    if exception or app.builder.format != "html":
        return
    site, base = Path(app.outdir), app.config.html_baseurl
    (site / ".nojekyll").touch()
    robots = "User-agent: *\nAllow: /\n"
    if base:
        lines = [
            f"  <url><loc>{escape(page_address(app, docname))}</loc></url>"
            for docname in sorted(app.env.found_docs)
        ]
        start = f'<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="{NAMESPACE}">'
        sitemap = "\n".join([start, *lines, "</urlset>\n"])
        (site / "sitemap.xml").write_text(sitemap, encoding="utf-8")
        robots += f"Sitemap: {base}sitemap.xml\n"
    (site / "robots.txt").write_text(robots, encoding="utf-8")


def setup(app) -> dict:
    """Register with Sphinx."""
    app.connect("build-finished", write_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
