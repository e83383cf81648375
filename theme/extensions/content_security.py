"""Tell the browser to load and run nothing but what the site itself holds.

Each page states a Content-Security-Policy. What the theme writes into a page is allowed by the hash
of its text and by nothing else, so a script that slips in, in an output or by an accident, is not
run. A page can't say who may frame it, nor have breaches reported: only a server can.
"""

import re
from base64 import b64encode
from hashlib import sha256

from sphinx.jinja2glue import BuiltinTemplateLoader

# A script of its own has no `src`. The browser hashes exactly what is between the tags.
SCRIPT = re.compile(r"<script\b(?![^>]*\ssrc\s*=)[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)
STYLE = re.compile(r"<style\b[^>]*>(.*?)</style>", re.DOTALL | re.IGNORECASE)
PLACE = '<meta charset="utf-8" />'  # the policy binds what comes after it

# The theme's buttons that run a script; theme/assets/course.js does it without inline code.
BUTTONS = re.compile(r' onclick="(?:window\.print|toggleFullScreen)\(\)"')


def hashes(pattern: re.Pattern, html: str) -> str:
    """Return the source expressions that allow what `pattern` finds, each once."""
    texts = dict.fromkeys(pattern.findall(html))
    return "".join(f" 'sha256-{b64encode(sha256(t.encode()).digest()).decode()}'" for t in texts)


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
        """Render a page from its template."""
        return secured(super().render(template, context))


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
