"""Typeset formulas with KaTeX while the pages are written.

The pages then hold finished mathematics, as HTML for the eye and MathML for a screen
reader. KaTeX's files come from an installed package, and go into the site's _static.
"""

import json
import re
import shutil
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from sphinx.util import logging

from theme.extensions.reading import line_of

PACKAGE = Path(find_spec("djangocms_katex").origin).parent
KATEX = PACKAGE / "static/djangocms_katex/vendor/katex"
RENDER = """
function render(tex, displayMode) {
  const options = {displayMode, throwOnError: true, strict: "error"};
  try { return JSON.stringify({html: katex.renderToString(tex, options)}); }
  catch (error) { return JSON.stringify({error: error.message}); }
}
"""

logger = logging.getLogger(__name__)


@cache
def engine():
    """Return a JavaScript engine with KaTeX loaded."""
    from py_mini_racer import MiniRacer

    started = MiniRacer()
    started.eval((KATEX / "katex.min.js").read_text(encoding="utf-8"))
    started.eval(RENDER)
    return started


def stop_engine(app, exception) -> None:
    """Close the engine with its thread, for a program that goes on after the build."""
    if engine.cache_info().currsize:
        engine().close()
        engine.cache_clear()


@cache
def render(tex: str, display: bool) -> dict[str, str]:
    """Return {"html": ...}, or {"error": ...} with what KaTeX has against the TeX."""
    return json.loads(engine().call("render", tex, display))


def write(translator, node) -> None:
    """Put a typeset formula into the page; warn where KaTeX refuses it."""
    tex, display = node.astext(), isinstance(node, nodes.math_block)
    result = render(tex, display)
    if "error" in result:
        # KaTeX underlines the place with combining characters, unfit for a terminal
        message = result["error"].replace("\u0332", "")
        where = (translator.builder.current_docname, line_of(node))
        logger.warning(message, location=where)
    tag = "div" if display else "span"
    # not class "math": the theme lays that out for another program
    start = translator.starttag(node, tag, "", CLASS="formula notranslate nohighlight")
    html = result.get("html") or translator.encode(tex)
    translator.body.append(f"{start}{html}</{tag}>")
    raise nodes.SkipNode


def copy_files(app) -> None:
    """Copy KaTeX's style sheet and its fonts, in the one format that browsers need."""
    target = Path(app.outdir) / "_static/katex"
    (target / "fonts").mkdir(parents=True, exist_ok=True)
    for font in (KATEX / "fonts").glob("*.woff2"):
        shutil.copy2(font, target / "fonts")
    style = (KATEX / "katex.min.css").read_text(encoding="utf-8")
    style = re.sub(r',url\([^)]*\) format\("(woff|truetype)"\)', "", style)
    (target / "katex.min.css").write_text(style, encoding="utf-8")
    shutil.copy2(KATEX / "LICENSE", target)


def setup(app) -> dict:
    """Register with Sphinx."""
    app.add_html_math_renderer("katex", (write, None), (write, None))
    app.connect("builder-inited", copy_files)
    app.add_css_file("katex/katex.min.css")
    app.connect("build-finished", stop_engine)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
