"""Cut the theme's icon fonts and its style sheet down to the icons that the theme can show.

Font Awesome brings some 2,000 icons, a page shows about a dozen. Those in use are the classes
`fa-…` in the templates, code and scripts of the theme, and the characters that its style sheet
names by itself (the signs of admonitions). All comes from the installed packages, and so does not
depend on the number of pages. The script that draws the same icons a second time goes.
"""

import re
from functools import lru_cache
from io import BytesIO
from pathlib import Path

import pydata_sphinx_theme
import sphinx_book_theme
from fontTools import subset
from fontTools.ttLib import TTFont

PACKAGES = [Path(package.__file__).parent for package in (pydata_sphinx_theme, sphinx_book_theme)]
STATIC = PACKAGES[0] / "theme/pydata_sphinx_theme/static"
STYLE = "styles/pydata-sphinx-theme.css"
FONTS = "vendor/fontawesome/webfonts"
SCRIPT = "scripts/fontawesome.js"

CLASS = re.compile(r"\bfa-[a-z0-9-]+")
# The theme puts together the class for the host of the repository, so no search finds it whole.
HOSTS = {"fa-github", "fa-gitlab", "fa-bitbucket"}
# `.fa-gear:before,.fa-cog:before{content:"\f013"}`: the names of one icon, and its character.
RULE = re.compile(r'((?:\.fa-[a-z0-9-]+:before,?)+)\{content:"\\([0-9a-f]{4})"\}')
PRIVATE = re.compile("[\ue000-\uf8ff]")


def classes_in_use() -> set[str]:
    """Return the classes of icons that the theme's templates, code and scripts mention."""
    found = set(HOSTS)
    for package in PACKAGES:
        for path in package.rglob("*"):
            wanted = path.suffix in (".html", ".py", ".js") and path.name != Path(SCRIPT).name
            if wanted and path.is_file():
                found.update(CLASS.findall(path.read_text(encoding="utf-8")))
    return found


@lru_cache(maxsize=1)
def style_and_characters() -> tuple[str, str]:
    """Return the theme's style sheet without unused icons, and the characters it still needs."""
    style = (STATIC / STYLE).read_text(encoding="utf-8")
    used = classes_in_use()
    kept = set(PRIVATE.findall(style))

    def keep_or_drop(rule) -> str:
        if not used.intersection(CLASS.findall(rule[1])):
            return ""
        kept.add(chr(int(rule[2], 16)))
        return rule[0]

    style = RULE.sub(keep_or_drop, style)
    # each font in one format, and no word of a source map, which no longer fits
    style = re.sub(
        r'url\(([^)]*)\.woff2\) format\("woff2"\),url\([^)]*\.ttf\) format\("truetype"\)',
        r'url(\1.woff) format("woff")',
        style,
    )
    return re.sub(r"/\*# sourceMappingURL=.*?\*/", "", style), "".join(sorted(kept))


@lru_cache(maxsize=None)
def small_font(name: str, characters: str) -> bytes:
    """Return a font of the theme as WOFF, with these characters only."""
    font = TTFont(STATIC / FONTS / f"{name}.ttf", recalcTimestamp=False)
    options = subset.Options(layout_features=[], notdef_outline=True)
    cutter = subset.Subsetter(options)
    cutter.populate(text=characters)
    cutter.subset(font)
    font.flavor = "woff"
    written = BytesIO()
    font.save(written)
    return written.getvalue()


def write_files(app, exception) -> None:
    """Replace what the theme copied into the finished site."""
    if exception or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    style, characters = style_and_characters()
    (static / STYLE).write_text(style, encoding="utf-8")
    for font in (STATIC / FONTS).glob("*.ttf"):
        small = small_font(font.stem, characters)
        (static / FONTS / f"{font.stem}.woff").write_bytes(small)
        for suffix in (".ttf", ".woff2"):
            (static / FONTS / f"{font.stem}{suffix}").unlink(missing_ok=True)
    for name in (SCRIPT, f"{SCRIPT}.map", f"{STYLE}.map"):
        (static / name).unlink(missing_ok=True)


def setup(app) -> dict:
    """Register with Sphinx."""
    app.connect("build-finished", write_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
