"""Keep pages light: few icons, scripts that wait, images that come when they are near.

Font Awesome brings some 2,000 icons, a page shows about a dozen: its fonts and the
theme's style sheet are cut down to the icons of the finished pages. An image without
alternative text is a warning.
"""

import re
from pathlib import Path

import pydata_sphinx_theme
from docutils import nodes
from fontTools import subset
from fontTools.ttLib import TTFont
from sphinx.util import logging
from sphinx.util.images import get_image_size
from sphinx.writers.html5 import HTML5Translator

from theme.extensions.reading import line_of

THEME = Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme/static"
STYLE = "styles/pydata-sphinx-theme.css"
FONTS = "vendor/fontawesome/webfonts"

ICON = re.compile(r"\bfa-[a-z0-9-]+")
# `.fa-gear:before,.fa-cog:before{content:"\f013"}`: the names of an icon, its character
RULE = re.compile(r'((?:\.fa-[a-z0-9-]+:before,?)+)\{content:"\\([0-9a-f]{4})"\}')
PRIVATE = re.compile("[\ue000-\uf8ff]")  # icons that the style sheet shows by itself
FORMATS = re.compile(r'woff2\) format\("woff2"\),url\([^)]*\) format\("truetype"\)')
RAW_IMAGE = re.compile(r"<img\b[^>]*>", re.IGNORECASE)
RAW_ALT = re.compile(r"\balt\s*=\s*(\"\s*[^\"\s]|'\s*[^'\s])", re.IGNORECASE)

logger = logging.getLogger(__name__)


def cut_icons(app, exception) -> None:
    """Replace the theme's style sheet and icon fonts in the finished site."""
    if exception or app.builder.format != "html":
        return
    site = Path(app.outdir)
    pages = [page.read_text(encoding="utf-8") for page in site.rglob("*.html")]
    used = {name for page in pages for name in ICON.findall(page)}
    style = (THEME / STYLE).read_text(encoding="utf-8")
    characters = set(PRIVATE.findall(style))

    def keep_or_drop(rule) -> str:
        if used.isdisjoint(ICON.findall(rule[1])):
            return ""
        characters.add(chr(int(rule[2], 16)))
        return rule[0]

    style = FORMATS.sub('woff) format("woff")', RULE.sub(keep_or_drop, style))
    (site / "_static" / STYLE).write_text(style, encoding="utf-8")
    for source in (THEME / FONTS).glob("*.ttf"):
        font = TTFont(source, recalcTimestamp=False)
        cutter = subset.Subsetter(subset.Options(layout_features=[]))
        cutter.populate(text="".join(sorted(characters)))
        cutter.subset(font)
        font.flavor = "woff"
        font.save(site / "_static" / FONTS / f"{source.stem}.woff")
    for unused in (f"{FONTS}/*.ttf", f"{FONTS}/*.woff2", "scripts/fontawesome.js*"):
        for file in (site / "_static").glob(unused):
            file.unlink()


def let_scripts_wait(app, pagename, templatename, context, doctree) -> None:
    """Have scripts run when the page is read; none is needed to show it.

    The search page has scripts in its text, which need the others first.
    """
    files = [file for file in context["script_files"] if file.filename]
    for file in files:  # which all pages share
        file.attributes["defer"] = None if pagename == "search" else "defer"
    context["script_files"] = files


def visit_image(translator, node) -> None:
    """Write an image with its size, and let it wait: nothing moves when it comes."""
    node["loading"] = "lazy"
    size = get_image_size(Path(translator.builder.srcdir) / node["uri"])
    HTML5Translator.visit_image(translator, node)
    if size:
        image = f'<img width="{size[0]}" height="{size[1]}" '
        translator.body[-1] = translator.body[-1].replace("<img ", image, 1)


def warn_of_images(app, doctree) -> None:
    """Warn about every image of a page that has no alternative text."""
    bad = [
        node for node in doctree.findall(nodes.image) if not node.get("alt", "").strip()
    ]
    for node in doctree.findall(nodes.raw):
        if not all(RAW_ALT.search(image) for image in RAW_IMAGE.findall(node.astext())):
            bad.append(node)
    for node in bad:
        logger.warning(
            "image without alternative text: say what it shows, in its alt text or, "
            "for a figure of a cell, in the cell's metadata: mystnb.image.alt",
            location=(app.env.docname, line_of(node)),
        )


def setup(app) -> dict:
    """Register with Sphinx."""
    app.add_node(nodes.image, override=True, html=(visit_image, lambda *_: None))
    app.connect("doctree-read", warn_of_images)
    app.connect("html-page-context", let_scripts_wait, priority=900)
    app.connect("build-finished", cut_icons)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
