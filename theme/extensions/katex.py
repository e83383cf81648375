"""Typeset formulas with KaTeX while the pages are written.

The pages then hold finished mathematics, as HTML for the eye and MathML for a screen reader. A
reader needs no JavaScript and no network, and wrong TeX fails the build with its place. KaTeX's
files come from an installed package (see requirements-assets.txt), and go into the site's own
_static folder.
"""

import importlib.util
import json
import re
import shutil
from functools import lru_cache
from pathlib import Path

from docutils import nodes
from places import line_of
from sphinx.errors import ExtensionError
from sphinx.util import logging

PACKAGE = "djangocms_katex"
FILES = "static/djangocms_katex/vendor/katex"
STYLE = "katex/katex.min.css"
PLACES = "katex/pages"  # a style sheet for each page that has formulas
# KaTeX puts each sign in its place by a style of its own.
PLACED = re.compile(r'<span(?: class="([^"]*)")? style="([^"]*)">')

RENDER = """
function render(tex, display) {
  const options = {displayMode: display, throwOnError: true, strict: "error"};
  try { return JSON.stringify({html: katex.renderToString(tex, options)}); }
  catch (error) { return JSON.stringify({error: error.message}); }
}
"""

logger = logging.getLogger(__name__)


def katex_folder() -> Path:
    """Return the folder of KaTeX's own files.

    Errors: `ExtensionError` when the package that carries them is not installed.
    """
    found = importlib.util.find_spec(PACKAGE)
    if found is None:
        raise ExtensionError("KaTeX's files are missing; run: python tools/environment.py book")
    return Path(found.origin).parent / FILES


@lru_cache(maxsize=1)
def engine():
    """Return a JavaScript engine with KaTeX loaded; started once, since that takes a while."""
    from py_mini_racer import MiniRacer

    started = MiniRacer()
    started.eval((katex_folder() / "katex.min.js").read_text(encoding="utf-8"))
    started.eval(RENDER)
    return started


@lru_cache(maxsize=None)
def render(tex: str, display: bool) -> dict[str, str]:
    """Typeset TeX, as a formula of its own (`display`) or inside a line.

    Returns {"html": …}, or {"error": …} with what KaTeX has against it.
    """
    return json.loads(engine().call("render", tex, display))


def write(translator, node, display: bool) -> None:
    """Put a typeset formula into the page; warn and show the TeX when KaTeX refuses it."""
    tex = node.astext()
    result = render(tex, display)
    if "error" in result:
        # KaTeX marks the place by underlining with combining characters, unfit for a terminal.
        message = result["error"].replace("\u0332", "")
        where = (translator.builder.current_docname, line_of(node))
        logger.warning(message, location=where, type="course", subtype="tex")
    tag = "div" if display else "span"
    # Not class "math": the theme lays that out for another program.
    translator.body.append(
        translator.starttag(node, tag, "", CLASS="formula notranslate nohighlight")
    )
    translator.body.append(result.get("html") or translator.encode(tex))
    translator.body.append(f"</{tag}>")
    raise nodes.SkipNode


def write_inline(translator, node) -> None:
    """Write a formula that stands in a line of text."""
    write(translator, node, display=False)


def write_display(translator, node) -> None:
    """Write a formula that stands by itself."""
    write(translator, node, display=True)


def copy_files(app) -> None:
    """Copy the style sheet and the fonts, each font in the one format that all browsers read."""
    if app.builder.format != "html":
        return
    source, target = katex_folder(), Path(app.outdir) / "_static/katex"
    (target / "fonts").mkdir(parents=True, exist_ok=True)
    for font in (source / "fonts").glob("*.woff2"):
        shutil.copy2(font, target / "fonts")
    style = (source / "katex.min.css").read_text(encoding="utf-8")
    style = re.sub(r',url\([^)]*\) format\("(woff|truetype)"\)', "", style)
    (target / "katex.min.css").write_text(style, encoding="utf-8")
    shutil.copy2(source / "LICENSE", target)


def with_classes(*parts: str) -> tuple[list[str], str]:
    """Move the styles that KaTeX writes into each sign to a style sheet.

    A page may then forbid inline styles (see content_security.py), and is smaller. Returns the
    parts of the page and the style sheet.
    """
    names = {}

    def with_class(span) -> str:
        name = names.setdefault(span[2], f"k{len(names)}")
        return f'<span class="{span[1]} {name}">' if span[1] else f'<span class="{name}">'

    parts = [PLACED.sub(with_class, part) for part in parts]
    # what stood in the element went before any other rule
    rules = (
        f".{name}{{{style.rstrip(';').replace(';', '!important;')}!important}}"
        for style, name in names.items()
    )
    return parts, "\n".join(rules)


def add_styles(app, pagename, templatename, context, doctree) -> None:
    """Load the style sheets on the pages that have formulas, and on no other."""
    if doctree is None:
        return
    if any(isinstance(node, (nodes.math, nodes.math_block)) for node in doctree.findall()):
        parts, rules = with_classes(context["body"], context["toc"])
        context["body"], context["toc"] = parts
        file = Path(app.outdir) / "_static" / PLACES / f"{pagename}.css"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(rules, encoding="utf-8")
        app.add_css_file(STYLE)
        app.add_css_file(f"{PLACES}/{pagename}.css")


def setup(app) -> dict:
    """Register with Sphinx."""
    app.add_html_math_renderer("katex", (write_inline, None), (write_display, None))
    app.connect("builder-inited", copy_files)
    app.connect("html-page-context", add_styles)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
