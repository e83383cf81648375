"""A page loads and runs nothing but what the site holds, and what the theme wrote into it."""

import re

import content_security
import pytest
from helpers_book import build, tiny_book
from helpers_browser import listen, pages, serve

INLINE = re.compile(r"<[^>]*\s(?:style|on\w+)\s*=|(?:href|src)\s*=\s*[\"']?\s*javascript:", re.I)
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)" />')
# The whole policy, hashes aside: whoever allows more must say so here.
WHOLE = (
    "default-src 'self'; script-src 'self' HASHES; style-src 'self' HASHES; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'"
)
HASHES = re.compile(r"'sha256-[\w+/]{43}='(?: 'sha256-[\w+/]{43}=')*")
# Asks for nothing that is shown, but tells another host that somebody reads this page.
OTHER_HOST = re.compile(r"<link\b(?![^>]*rel=\"canonical\")[^>]*href=\"(?:https?:)?//[^>]*>")


def without_code(html: str) -> str:
    """Return a page without what its code cells show, which may look like anything."""
    return re.sub(r"<pre>.*?</pre>", "", html, flags=re.DOTALL)


@pytest.mark.browser  # not for the browser, but for the real site, which only those tests build
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize("name", pages())
def test_page_states_a_policy_before_anything_is_loaded_and_needs_no_exception(site, name):
    html = (site / f"{name}.html").read_text(encoding="utf-8")
    assert len(POLICY.findall(html)) == 1
    first = re.search(r"<(?:script|link|style|img)\b", html)
    assert POLICY.search(html).start() < first.start()
    assert HASHES.sub("HASHES", POLICY.search(html)[1]) == WHOLE
    assert not INLINE.search(without_code(html)) and not OTHER_HOST.search(html)
    scripts = content_security.SCRIPT.findall(html)
    assert len(scripts) == (2 if name == "search" else 1)


@pytest.mark.parametrize(
    "html",
    ['<p style="color: red">', "<a href='javascript:x()'>", "<button\nonclick=x()>"],
)
def test_planted_inline_code_is_found(html):
    assert INLINE.search(without_code(f"<p>{html}</p><pre>x</pre>"))
    assert not INLINE.search(without_code(f"<pre>{html}</pre><p title='on x=1'>style=</p>"))


MODE = """
  document.documentElement.dataset.mode = localStorage.getItem("mode") || "auto";
  document.documentElement.dataset.theme = localStorage.getItem("theme") || "auto";
"""


@pytest.mark.parametrize("script", ["run();", f"{MODE} run();", f"run(); {MODE}", ""])
def test_only_what_the_theme_is_known_to_write_is_allowed(script):
    html = f'<script>{MODE}</script><script src="a.js"></script>'
    good = content_security.policy(html)
    assert good.count("'sha256-") == 1 and content_security.unknown(html) == []
    bad = f"{html}<script>{script}</script>"
    assert content_security.policy(bad) == good
    assert content_security.unknown(bad) == [" ".join(script.split())[:60]]


@pytest.mark.parametrize("html", ["<script>run()</script>", "<style>p { color: red }</style>"])
def test_inline_code_fails_the_build_with_its_page(tmp_path, html):
    root = tiny_book(tmp_path / "book")
    with (root / "index.md").open("a") as page:
        page.write(f"\n{html}\n")
    done = build(root)
    assert done.returncode == 1
    assert done.stderr.startswith("index.md: inline code, which the page's policy forbids: ")


HEAD = '<head><meta charset="utf-8" /><title>T</title><link rel="icon" href="a.svg"></head>'
GOOD = f'<!doctype html>{HEAD}<script>{MODE}</script><p id="p">text</p><img src="a.svg">'
FILES = {
    "a.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>',
    "tell.js": "fetch('https://other.invalid/')",
    "font.css": "@font-face { font-family: F; src: url(https://o.invalid/f) } p { font: 9px F }",
}
FAULTS = {
    "script": "<script>document.title = 'theirs';</script>",
    "script from elsewhere": '<script src="https://other.invalid/a.js"></script>',
    "script of an event": '<img src="none:" onerror="document.title = \'theirs\'">',
    "style": '<p style="position: fixed">text</p>',
    "style sheet": "<style>p { color: red }</style>",
    "style sheet from elsewhere": '<link rel="stylesheet" href="https://other.invalid/a.css">',
    "font from elsewhere": '<link rel="stylesheet" href="font.css">',
    "image from elsewhere": '<img src="https://other.invalid/a.png">',
    "frame from elsewhere": '<iframe src="https://other.invalid/"></iframe>',
    "telling others": '<script src="tell.js"></script>',
    "other base": '<base href="https://other.invalid/">',
    "plugin": '<object data="a.svg"></object>',
    "form to elsewhere": '<form action="https://other.invalid/"><input autofocus></form>',
}


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize("how", ["served", "from a folder"])
@pytest.mark.parametrize("name", FAULTS)
def test_what_slips_in_is_stopped_by_the_browser(browser, tmp_path, name, how):
    for file, text in FILES.items():
        (tmp_path / file).write_text(text)
    (tmp_path / "good.html").write_text(content_security.secured(GOOD))
    (tmp_path / "bad.html").write_text(content_security.secured(GOOD + FAULTS[name]))
    with serve(tmp_path) as address:
        base = address if how == "served" else f"{tmp_path.as_uri()}/"
        page = browser.new_page()
        complaints = listen(page)
        page.goto(f"{base}good.html", wait_until="networkidle")
        assert page.get_attribute("html", "data-mode") == "auto"
        assert page.evaluate("document.images[0].naturalWidth") == 9 and complaints == []
        page.goto(f"{base}bad.html", wait_until="networkidle")
        assert page.title() == "T"
        if "form" in name:
            page.evaluate("document.forms[0].requestSubmit()")
            page.wait_for_timeout(100)
        assert page.url == f"{base}bad.html"
        assert any("Content Security Policy" in line for line in complaints), complaints
        page.close()
