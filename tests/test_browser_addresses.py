"""Addresses without a page: the 404 page helps at any depth, and old addresses lead to new ones."""

import pytest
from helpers_book import build, tiny_book
from helpers_browser import SIZES, THEMES, Handler, listen, serve
from test_browser_access import lost, violations
from test_browser_light import visible_searches
from test_findable import KNOWN, NO_REDIRECTS, REDIRECTS, configure

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

NAME = "class.2026"  # the site's path on its host


class Host(Handler):
    """Serve as GitHub Pages does: where there is no page, the site's 404.html with status 404."""

    def send_error(self, code, *_) -> None:
        """Answer with the site's own page."""
        with open(f"{self.directory}/{NAME}/404.html", "rb") as page:
            body = page.read()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder for a host, in which a tiny book with redirects lies at its path."""
    root = tiny_book(tmp_path_factory.mktemp("book") / "book")
    configure(root, NO_REDIRECTS, REDIRECTS)
    done = build(root, **KNOWN["repository"][0])
    assert done.returncode == 0, done.stderr
    (root / "_build/html").rename(root / "_build" / NAME)
    return root / "_build"


@pytest.fixture(scope="module")
def host(folder):
    """Serve that folder; give the site's address on this machine."""
    with serve(folder, Host) as address:
        yield f"{address}{NAME}/"


def visit_nothing(page, host: str, path: str) -> list[str]:
    """Open an address without a page; return what failed besides the address itself."""
    failed = []
    complaints = listen(page)

    def note(response) -> None:
        if response.status >= 400 and response.url != host + path:
            failed.append(response.url)

    page.on("response", note)
    assert page.goto(host + path, wait_until="networkidle").status == 404
    # Chromium says once in the console that the address itself has no page.
    if complaints and "status of 404" in complaints[0]:
        complaints.pop(0)
    return failed + complaints


@pytest.mark.parametrize("path", ["nothing.html", "lessons/deeper/still/nothing.html", "lessons/"])
def test_help_at_any_depth(browser, host, path):
    page = browser.new_page()
    assert visit_nothing(page, host, path) == []
    assert page.inner_text("article h1") == "There is no page here"
    font = page.evaluate("getComputedStyle(document.querySelector('article h1')).fontFamily")
    assert "Charter" in font, "without its style sheets"
    links = page.evaluate("""() => [...document.querySelectorAll("article a")].map(a => a.href)""")
    assert {f"{host}{name}.html" for name in ("index", "lessons/07-tiny", "references")} == set(
        links
    )
    assert [link for link in links if page.request.get(link).status != 200] == []
    page.locator("article input[type=search]").fill("Tiny")
    page.keyboard.press("Enter")
    page.locator("#search-results").get_by_role("link", name="Lesson 07").first.wait_for()
    page.close()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", SIZES)
def test_help_is_for_everybody(browser, host, size, theme):
    page = browser.new_page(viewport=SIZES[size], color_scheme=theme, reduced_motion="reduce")
    assert visit_nothing(page, host, "lessons/deeper/nothing.html") == []
    assert violations(page) == []
    assert lost(page) == []
    assert visible_searches(page) == 1
    page.close()


@pytest.mark.parametrize(
    "old, new", [(f'"/{NAME}/_static', '"_static'), ("</body>", "<script>oops()</script></body>")]
)
def test_planted_fault_is_seen(browser, folder, host, old, new):
    file = folder / NAME / "404.html"
    good = file.read_text(encoding="utf-8")
    assert old in good
    file.write_text(good.replace(old, new), encoding="utf-8")
    page = browser.new_page()
    assert visit_nothing(page, host, "lessons/nothing.html") != []
    page.close()
    file.write_text(good, encoding="utf-8")


@pytest.mark.parametrize("how", ["served", "from a folder"])
@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_old_address_leads_to_the_new_one(browser, folder, host, how, script):
    start = host if how == "served" else f"{(folder / NAME).as_uri()}/"
    context = browser.new_context(java_script_enabled=script)
    page = context.new_page()
    complaints = listen(page)
    page.goto(f"{start}lessons/05-x.html?a=b#lesson-07-tiny")
    kept = "?a=b#lesson-07-tiny" if script else ""
    page.wait_for_url(f"{start}lessons/07-tiny.html{kept}")
    assert page.inner_text("article h1").startswith("Lesson 07: Tiny")
    assert complaints == []
    context.close()
