"""Every icon that a published page shows is in the style sheet and in its font."""

import re
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont

pytestmark = pytest.mark.xdist_group("site")

STYLE = "_static/styles/pydata-sphinx-theme.css"
FONTS = "_static/vendor/fontawesome/webfonts"
ICON = re.compile(r'class="([^"]*\bfa-[^"]*)"')
RULE = re.compile(r'((?:\.fa-[a-z0-9-]+:before,?)+)\{content:"\\([0-9a-f]{4})"\}')


def missing(site: Path, html: str) -> list[str]:
    """Return the icons of a page, as their classes, for which a reader would see nothing."""
    style = (site / STYLE).read_text(encoding="utf-8")
    characters = {
        name: int(character, 16)
        for names, character in RULE.findall(style)
        for name in re.findall(r"\.(fa-[a-z0-9-]+):", names)
    }
    drawn = set()
    for font in (site / FONTS).glob("*.woff"):
        drawn.update(TTFont(font).getBestCmap())
    return [
        classes
        for classes in ICON.findall(html)
        if not any(characters.get(name) in drawn for name in classes.split())
    ]


def test_every_icon_of_every_page_is_drawn(site):
    shown = 0
    for path in site.rglob("*.html"):
        html = path.read_text(encoding="utf-8")
        shown += len(ICON.findall(html))
        assert missing(site, html) == [], path
    assert shown > 100
    assert 'class="fab fa-github"' in (site / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["fa-no-such-icon", "fa-poo"])
def test_planted_icon_is_missed(site, name):
    assert missing(site, f'<i class="fa-solid {name} fa-lg"></i>') == [f"fa-solid {name} fa-lg"]
