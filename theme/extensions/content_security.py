"""Tell the browser to load and run nothing but what the site itself holds.

Each page states a Content-Security-Policy. Of inline code only what the theme is known to write is
allowed, by the hash of its text. Any other script or style sheet that slips in, in an output or by
an accident, fails the build, and would not be run; nor would a style or a handler of one element,
for which no exception is made. A page can't say who may frame it, nor have breaches reported: only
a server can.
"""

import re
from base64 import b64encode
from hashlib import sha256

from sphinx.jinja2glue import BuiltinTemplateLoader
from sphinx.util import logging

# A script of its own has no `src`. The browser hashes exactly what is between the tags.
SCRIPT = re.compile(r"<script\b(?![^>]*\ssrc\s*=)[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)
STYLE = re.compile(r"<style\b[^>]*>(.*?)</style>", re.DOTALL | re.IGNORECASE)
PLACE = '<meta charset="utf-8" />'  # the policy binds what comes after it

# What the theme writes, white space aside: the reader's choice of light or dark, before anything is
# drawn; on the search page, the cursor into the field; and, for readers without scripts, what is of
# no use to them.
THEME = re.compile(
    r"""document\.documentElement\.dataset\.mode = localStorage\.getItem\("mode"\) \|\| "auto"; """
    r"""document\.documentElement\.dataset\.theme = localStorage\.getItem\("theme"\) \|\| "auto";"""
    r"""|// Activate the search field on page load """
    r"""let searchInput = document\.querySelector\("form\.bd-search input"\); """
    r"""if \(searchInput\) { searchInput\.focus\(\); searchInput\.select\(\); """
    r"""console\.log\("\[PST\]: Set focus on search field\."\); }"""
    r"""|\.pst-js-only { display: none !important; }"""
)

# The theme's buttons that run a script; theme/assets/course.js does it without inline code.
BUTTONS = re.compile(r' onclick="(?:window\.print|toggleFullScreen)\(\)"')

logger = logging.getLogger(__name__)


def is_known(text: str) -> bool:
    """Say whether an inline script or style sheet is one of those that the theme writes."""
    return THEME.fullmatch(" ".join(text.split())) is not None


def hashes(pattern: re.Pattern, html: str) -> str:
    """Return the source expressions that allow the theme's part of what `pattern` finds."""
    texts = dict.fromkeys(text for text in pattern.findall(html) if is_known(text))
    return "".join(f" 'sha256-{b64encode(sha256(t.encode()).digest()).decode()}'" for t in texts)


def unknown(html: str) -> list[str]:
    """Return the start of each inline script or style sheet that the theme did not write."""
    texts = SCRIPT.findall(html) + STYLE.findall(html)
    return [" ".join(text.split())[:60] for text in texts if not is_known(text)]


def policy(html: str) -> str:
    """Return the Content-Security-Policy of a page: itself, and what the theme put in it."""
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src 'self'{hashes(SCRIPT, html)}",
            f"style-src 'self'{hashes(STYLE, html)}",
            "img-src 'self' data:",  # the small drawings in the theme's style sheets
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        )
    )


def secured(html: str) -> str:
    """Return a finished page with its policy, and without inline event handlers of the theme."""
    html = BUTTONS.sub("", html)
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy(html)}" />'
    return html.replace(PLACE, f"{PLACE}\n    {meta}", 1)


class Templates(BuiltinTemplateLoader):
    """Sphinx's own templates; a finished page gets its policy."""

    def render(self, template: str, context: dict) -> str:
        """Render a page from its template; warn of inline code that is not the theme's."""
        html = super().render(template, context)
        for text in unknown(html):
            logger.warning(
                f"inline code, which the page's policy forbids: {text!r}; put it into theme/assets",
                location=context.get("pagename"),
                type="course",
                subtype="inline",
            )
        return secured(html)


def use_templates(app, config) -> None:
    """Let Sphinx render pages with the class above, if the setting wants it."""
    if config.content_security:
        config.template_bridge = f"{__name__}.{Templates.__name__}"


def setup(app) -> dict:
    """Register with Sphinx."""
    # off in the preview, whose server puts a script into each page that loads it again
    app.add_config_value("content_security", True, "html")
    app.connect("config-inited", use_templates)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
