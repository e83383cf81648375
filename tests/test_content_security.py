"""A page loads and runs nothing but what the site holds, and what the theme wrote into it."""

import re

import content_security
import pytest
from helpers_browser import listen, pages, serve

# What the theme writes into a page as inline scripts, by a word that is only in one of them.
THEME = ("dataset.mode", "pagename", "search_as_you_type", "Activate the search field")
INLINE = re.compile(r"<[^>]*\s(?:style|on\w+)\s*=|(?:href|src)\s*=\s*[\"']?\s*javascript:", re.I)
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)" />')


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
    assert "unsafe" not in POLICY.search(html)[1]
    assert not INLINE.search(without_code(html))
    scripts = content_security.SCRIPT.findall(html)
    assert [sum(word in script for word in THEME) for script in scripts] == [1] * len(scripts)


@pytest.mark.parametrize(
    "html",
    ['<p style="color: red">', "<a href='javascript:x()'>", "<button\nonclick=x()>"],
)
def test_planted_inline_code_is_found(html):
    assert INLINE.search(without_code(f"<p>{html}</p><pre>x</pre>"))
    assert not INLINE.search(without_code(f"<pre>{html}</pre><p title='on x=1'>style=</p>"))


def test_policy_allows_the_scripts_and_styles_of_a_page_by_their_text_alone():
    html = '<script>one()</script><script src="a.js"></script><style>b{}</style>'
    found = content_security.policy(html)
    assert found.count("'sha256-") == 2
    assert found == content_security.policy(html + "<script>one()</script>")
    assert found != content_security.policy(html.replace("one", "two"))


HEAD = '<head><meta charset="utf-8" /><title>T</title><link rel="icon" href="a.svg"></head>'
GOOD = f'<!doctype html>{HEAD}<script>document.title = "mine";</script><p id="p">text</p><img src="a.svg">'
IMAGE = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>'
FAULTS = {
    "script": "<script>document.title = 'theirs';</script>",
    "script from elsewhere": '<script src="http://other.invalid/a.js"></script>',
    "script of an event": '<img src="none:" onerror="document.title = \'theirs\'">',
    "style": '<p style="position: fixed">text</p>',
    "style sheet": "<style>p { color: red }</style>",
    "image from elsewhere": '<img src="http://other.invalid/a.png">',
    "frame from elsewhere": '<iframe src="http://other.invalid/"></iframe>',
    "other base": '<base href="http://other.invalid/">',
    "plugin": '<object data="a.svg"></object>',
    "form to elsewhere": '<form action="http://other.invalid/"><input autofocus></form>',
}


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize("how", ["served", "from a folder"])
@pytest.mark.parametrize("name", FAULTS)
def test_what_slips_in_is_stopped_by_the_browser(browser, tmp_path, name, how):
    """The policy is that of the page before the fault slipped in."""
    (tmp_path / "a.svg").write_text(IMAGE)
    good = content_security.secured(GOOD)
    (tmp_path / "good.html").write_text(good)
    (tmp_path / "bad.html").write_text(good + FAULTS[name])
    with serve(tmp_path) as address:
        base = address if how == "served" else f"{tmp_path.as_uri()}/"
        page = browser.new_page()
        complaints = listen(page)
        page.goto(f"{base}good.html", wait_until="networkidle")
        assert page.title() == "mine" and complaints == []
        assert page.evaluate("document.images[0].naturalWidth") == 9
        page.goto(f"{base}bad.html", wait_until="networkidle")
        assert page.title() == "mine"
        if "form" in name:
            page.evaluate("document.forms[0].requestSubmit()")
            page.wait_for_timeout(100)
        assert page.url == f"{base}bad.html"
        assert any("Content Security Policy" in line for line in complaints), complaints
        page.close()
