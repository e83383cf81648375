"""The built site is whole, found, light and private, and its links follow the fork."""

import re
import subprocess
from functools import cache
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from fontTools.ttLib import TTFont
from sphinx.errors import ConfigError

from tests.book import change
from tests.browser import LESSONS, LISTED, PAGES, complaints_of, serve
from tests.conftest import FORK
from theme.extensions.findable import find_site
from theme.extensions.launch import find_repository
from tools.build import build
from tools.form import FORMULA
from tools.notebooks import ROOT, read

pytestmark = pytest.mark.xdist_group("site")

SITE = "https://some-teacher.github.io/class"
LESSON, EXERCISES = "lessons/46-transformer-architecture", "lessons/46-exercises"


@cache
def parse(path):
    """Return a page of a site as its elements."""
    return BeautifulSoup(path.read_text(encoding="utf-8"), "lxml")


@pytest.fixture
def html(site):
    """Return a function that gives a page of the site by its name."""
    return lambda name: parse(site / f"{name}.html")


# ---- whole --------------------------------------------------------------------------


@pytest.mark.parametrize("page", LISTED)
def test_page_has_its_heading_its_text_and_all_outputs(html, page):
    article, path = html(page).article, ROOT / f"{page}.ipynb"
    assert 0 < len(article.h1.get_text()) < len(article.get_text()) / 10
    cells = read(path).cells if path.is_file() else []
    stored = [cell for cell in cells if cell.get("outputs")]
    assert len(article.select(".cell_output")) == len(stored)


def test_there_is_no_other_page(site):
    built = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
    pages = {path.as_posix() for path in built if path.parts[0] != "_static"}
    assert pages == set(PAGES)


def dead_references(site, base: str = "/") -> list[str]:
    """Return what pages name within a site that is not there; `base` is its path."""
    site, found = site.resolve(), []
    pages = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    places = {page: {tag["id"] for tag in parse(page).select("[id]")} for page in pages}
    for page in pages:
        for tag in parse(page).select("[href], [src]"):
            url = urlsplit(tag.get("href") or tag.get("src"))
            if url.scheme or url.netloc or not (url.path or url.fragment):
                continue
            start = site if url.path.startswith("/") else page.parent
            target = (start / unquote(url.path).removeprefix(base)).resolve()
            target = page if not url.path else target
            target = target / "index.html" if target.is_dir() else target
            is_there = target.is_file() and target.is_relative_to(site)
            if url.fragment and target in places:
                is_there = unquote(url.fragment) in places[target]
            if not is_there:
                found.append(f"{page.name}: {url.geturl()}")
    return found


def test_every_reference_within_the_site_leads_somewhere(site):
    assert dead_references(site, "/class/") == []


def test_every_icon_is_drawn(site, browser):
    assert ElementTree.parse(site / "_static/favicon.svg")
    fonts = (site / "_static/vendor/fontawesome/webfonts").glob("*.woff")
    drawn = {chr(code) for font in fonts for code in TTFont(font).getBestCmap()}
    page = browser.new_page()
    page.goto((site / f"{LESSON}.html").as_uri())
    shown = """icons => icons.map(icon => getComputedStyle(icon, "::before").content)"""
    icons = page.eval_on_selector_all("[class*=' fa-']", shown)
    assert len(icons) > 10 and {icon.strip('"') for icon in icons} <= drawn
    page.close()


def test_page_that_was_once_listed_is_there_or_redirected():
    command = ["git", "-C", ROOT, "log", "-p", "--format=", "--", "_toc.yml"]
    log = subprocess.run(command, capture_output=True, text=True).stdout
    once = set(re.findall(r"^\+.*(?:root|file): (\S+)", log, re.MULTILINE))
    settings = (ROOT / "_config.yml").read_text(encoding="utf-8")
    gone = [page for page in once - set(LISTED) if f"{page}:" not in settings]
    assert not gone, "_config.yml: say in rediraffe_redirects where readers find it"


# ---- what is made of the lessons ----------------------------------------------------


def test_entry_of_the_references_says_who_cites_it(html):
    cited = {}
    for page in LISTED:
        for link in html(page).article.select("a[href*='references.html#']"):
            cited.setdefault(urlsplit(link["href"]).fragment, set()).add(f"{page}.html")
    lines = html("references").select(".cited-in")
    assert len(cited) > 20 and cited == {
        line.parent["id"]: {link["href"] for link in line.select("a")} for line in lines
    }


def test_hints_answers_and_checks_are_closed_under_their_titles(html):
    page, cells = html(EXERCISES), read(ROOT / f"{EXERCISES}.ipynb").cells
    text = "\n".join(cell.source for cell in cells)
    titles = re.findall(r"^### (Hint|Worked answer)$", text, re.MULTILINE)
    closed = page.select("details.closed-section:not([open])")
    assert [box.summary.get_text() for box in closed] == titles and len(titles) > 10
    assert not page.select(".page-toc [href*=hint]")


@pytest.mark.parametrize("page", LESSONS)
def test_closed_cells_bear_their_titles(html, page):
    page, cells = html(page), read(ROOT / f"{page}.ipynb").cells
    hidden = [c for c in cells if "hide-input" in c.metadata.get("tags", [])]
    first = [cell.source.partition("\n")[0] for cell in hidden]
    shown = [box.get_text() for box in page.select("details.hide p.collapsed")]
    assert [f"# @title {title}" for title in shown] == first


@pytest.mark.parametrize("page", LESSONS)
def test_lesson_opens_with_what_it_teaches_needs_and_takes(html, page):
    names = [part.strong.get_text() for part in html(page).select(".lesson-head > div")]
    first = "How it goes" if page.endswith("-exercises") else "You will"
    assert names == [first, "You need", "It takes"]


def test_first_page_shows_each_lesson_its_question_and_needs(html):
    page = html("index")
    lessons = [f"{name}.html" for name in LESSONS if "exercises" not in name]
    assert [link["href"] for link in page.select(".lesson-map a")] == lessons
    rows = [row.select("td") for row in page.select("article table tbody tr")]
    assert [row[0].a["href"] for row in rows] == lessons
    assert all(row[1].get_text().endswith("?") for row in rows)
    needs = {row[0].get_text()[:2]: row[2].get_text() for row in rows}
    assert needs["46"] == "37, 45"
    arrows = sum(len(need.split()) for need in needs.values())
    assert len(page.select(".lesson-map path")) == arrows


# ---- found --------------------------------------------------------------------------


def test_each_page_says_what_it_is_and_where(html):
    said = {}
    for page in PAGES:
        head = html(page).head
        tags = head.select("meta[name], meta[property]")
        found = {tag.get("name") or tag.get("property"): tag["content"] for tag in tags}
        text = found["description"]
        assert 30 <= len(text) <= 160 and not re.search(r"[\\$`<\0]|\(\s", text)
        assert found["og:description"] == text and found["og:title"]
        assert ("noindex" in found.get("robots", "")) is (page == "404")
        own = f"{SITE}/{page}.html".replace("/index.html", "/")
        links = [tag["href"] for tag in head.select("link[rel=canonical]")]
        own = [own] if page != "404" else []
        assert [found["og:url"] for _ in own] == links == own
        said[head.title.get_text()] = text
    assert len(said) == len(set(said.values())) == len(PAGES)
    assert {title.count("Deep Learning, Built and Checked") for title in said} == {1}


def test_robots_find_every_page(site):
    assert (site / ".nojekyll").is_file()
    robots = f"User-agent: *\nAllow: /\nSitemap: {SITE}/sitemap.xml\n"
    assert (site / "robots.txt").read_text() == robots
    places = ElementTree.parse(site / "sitemap.xml").findall("{*}url/{*}loc")
    own = [f"{SITE}/{page}.html".replace("/index.html", "/") for page in LISTED]
    assert sorted(place.text for place in places) == sorted(own)


def test_address_of_the_site_is_set_or_known_from_github():
    pages = {
        "https://github.com/Some-One/a.2026": "https://some-one.github.io/a.2026/",
        "https://github.com/O/O.GitHub.io": "https://o.github.io/",
        "https://gitlab.com/o/r": "",
        "": "",
    }
    assert {repository: find_site("", repository) for repository in pages} == pages
    own = "https://a.example:80/b/"
    assert find_site(own[:-1], "https://github.com/o/r") == own
    for wrong in ["example.org/a", "https://a.org/index.html", "https://a.org/?a=b"]:
        with pytest.raises(ConfigError, match="html.baseurl must look like"):
            find_site(wrong, "")


# ---- links that follow the fork -----------------------------------------------------


@pytest.mark.parametrize("page", LESSONS)
def test_launch_source_and_issue_links_are_those_of_the_fork(html, page):
    links = {link["href"] for link in html(page).select("a[href^=http]")}
    own, file = f"https://github.com/{FORK}", f"{page}.ipynb"
    buttons = {
        f"https://colab.research.google.com/github/{FORK}/blob/main/{file}",
        f"https://mybinder.org/v2/gh/{FORK}/main?urlpath=lab/tree/{file}",
        *(own, f"{own}/blob/main/{file}?plain=1", f"{own}/edit/main/{file}"),
    }
    assert buttons <= links
    issues = {link for link in links if link.startswith(f"{own}/issues/new?title=")}
    assert len(issues) == 2 and all(page in unquote(link) for link in issues)


REMOTES = {
    "https://x-access-token:s3cret@github.com/o/a.2026.git": "o/a.2026",
    "git@github.com:o/a.2026.git": "o/a.2026",
    "ssh://git@github.com/o/a.2026": "o/a.2026",
    "https://example.org/github.com/some/thing": "",
}


def test_repository_is_configured_or_the_workflows_or_the_remote(tmp_path):
    def find(configured="", **environment):
        found = find_repository(configured, environment, tmp_path)
        return found.removeprefix("https://github.com/")

    assert find() == ""
    git = ["git", "-C", tmp_path]
    subprocess.run([*git, "init", "-q"], check=True)
    for number, (remote, name) in enumerate(REMOTES.items()):
        command = ["set-url" if number else "add", "origin", remote]
        subprocess.run([*git, "remote", *command], check=True)
        assert find() == name
    assert find(GITHUB_REPOSITORY="second/b") == "second/b"
    assert find("https://github.com/o/a.git", GITHUB_REPOSITORY="second/b") == "o/a"


def test_repository_elsewhere_has_the_links_that_work_there(book):
    change(book / "_config.yml", '  url: ""', "  url: https://git.example.org/o/r")
    change(
        book / "_config.yml", 'hub_url: ""', "hub_url: https://h.example.org/hub/home"
    )
    assert build(book, book / "_build/html") == []
    links = parse(book / "_build/html/lessons/07-tiny.html").select("a[href^=http]")
    assert [link["href"] for link in links if ".example." in link["href"]] == [
        "https://h.example.org/hub/user-redirect/git-pull?repo=https%3A//git.example.org"
        "/o/r&urlpath=lab/tree/r/lessons/07-tiny.ipynb&branch=main",
        "https://git.example.org/o/r",
    ]


def test_nothing_is_invented_and_old_addresses_lead_on(book, browser):
    redirects = "redirects: {lessons/05-x: lessons/06-x, lessons/06-x: lessons/07-tiny}"
    change(book / "_config.yml", "redirects: {}", redirects)
    site = book / "_build/html"
    assert build(book, site) == []
    assert not (site / "sitemap.xml").exists()
    for page in ("index", "lessons/07-tiny", "404"):
        named = "a[href^=http], link[rel=canonical]"
        links = parse(site / f"{page}.html").select(named)
        hosts = {urlsplit(link["href"]).netloc for link in links}
        assert hosts == {"opensource.org", "creativecommons.org"}
    assert dead_references(site) == []
    for script in (True, False):
        page = browser.new_page(java_script_enabled=script)
        page.goto(f"{(site / 'lessons/05-x.html').as_uri()}?a=b#c")
        page.wait_for_url(re.compile(r"07-tiny\.html" + r"\?a=b#c" * script))
        page.close()


def test_page_for_a_wrong_address_helps_at_any_depth(book, browser):
    change(book / "_config.yml", 'baseurl: ""', "baseurl: https://a.example/c.2026")
    site = book / "_build/c.2026"
    assert build(book, site) == []
    assert dead_references(site, "/c.2026/") == []
    (book / "_build/404.html").write_bytes((site / "404.html").read_bytes())
    page, failed = browser.new_page(), []
    complaints = complaints_of(page)
    page.on("requestfailed", lambda request: failed.append(request.url))
    with serve(book / "_build") as host:
        page.goto(f"{host}c.2026/lessons/deep/nothing.html", wait_until="networkidle")
        assert page.inner_text("article h1") == "There is no page here"
        # Chromium says once that the address itself has no page
        assert not failed and all("status of 404" in line for line in complaints[:1])
        assert complaints[1:] == []
        page.fill("article input[type=search]", "Tiny")
        page.keyboard.press("Enter")
        page.locator("#search-results a", has_text="Lesson 07").first.wait_for()
    page.close()


# ---- light, private, without a network ----------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_page_is_light_private_and_without_complaints(browser, address, page):
    most = 160_000 if page in ("index", "references") else 200_000
    most = 270_000 if page in LESSONS else most
    context = browser.new_context()
    opened, asked, sizes = context.new_page(), [], []
    complaints = complaints_of(opened)
    opened.on("request", lambda request: asked.append(request.url))
    session = context.new_cdp_session(opened)
    session.send("Network.enable")
    loaded = "Network.loadingFinished"
    session.on(loaded, lambda event: sizes.append(event["encodedDataLength"]))
    opened.goto(f"{address}{page}.html", wait_until="networkidle")
    assert complaints == []
    assert not [url for url in asked if not url.startswith((address, "data:"))]
    assert 50_000 < sum(sizes) <= most
    context.close()


def test_figures_that_come_later_are_light_too(site):
    assert max(path.stat().st_size for path in site.glob("_images/*")) <= 150_000


@pytest.mark.parametrize("page", LISTED)
def test_page_holds_no_raw_tex_and_each_formula_twice(html, page):
    article = BeautifulSoup(str(html(page).article), "lxml")  # for the eye and the ear
    formulas, path = article.select(".formula"), ROOT / f"{page}.ipynb"
    if path.is_file():
        cells = [c.source for c in read(path).cells if c.cell_type == "markdown"]
        found = [m for text in cells for m in FORMULA.finditer(text) if not m["code"]]
        assert len(formulas) == len(found)
    for formula in formulas:
        assert formula.select_one(".katex-html .base")
        assert formula.select_one("math annotation")
    for part in article.select(".formula, pre, code, script"):
        part.decompose()
    assert not re.search(r"\$|\\[a-zA-Z]+", article.get_text())


def test_formulas_need_no_script_and_no_network(browser, site):
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto((site / f"{LESSON}.html").as_uri())
    page.evaluate("document.fonts.ready")
    fonts = "[...document.fonts].map(font => font.status)"
    assert {"loaded"} < set(page.evaluate(fonts)) <= {"loaded", "unloaded"}
    formulas = page.locator("article .katex-html").all()
    assert min(formula.bounding_box()["height"] for formula in formulas[:20]) > 4
    context.close()


REMEMBERED = {"mode", "theme", "sidebar-scroll-top", "sphinx_highlight_terms"}


@pytest.mark.parametrize("how", ["served", "from a folder"])
def test_search_works_and_little_is_remembered(browser, address, site, how):
    context = browser.new_context(offline=how != "served")
    page = context.new_page()
    complaints = complaints_of(page)
    page.goto(address if how == "served" else (site / "index.html").as_uri())
    page.keyboard.press("Control+k")
    page.keyboard.type("encoding")
    page.keyboard.press("Enter")
    results = page.locator("#search-results")
    results.locator("a", has_text=re.compile("^Lesson 46")).first.wait_for()
    stored = page.evaluate(
        "[...Object.keys(localStorage), ...Object.keys(sessionStorage)]"
    )
    assert {"mode", "theme"} <= set(stored) <= REMEMBERED and not context.cookies()
    if how == "served":  # an extract shows a formula once, and nothing around the text
        fetch = "async page => Search.htmlToText(await (await fetch(page)).text())"
        text = page.evaluate(fetch, f"{LESSON}.html")
        assert len(text) > 1000 and not re.search(r"\\mathrm|Contents", text)
    assert complaints == []
    context.close()


def test_page_is_as_the_system_asks_and_light_without_scripts(browser, address):
    for theme in ("light", "dark"):
        for script in (True, False):
            page = browser.new_page(java_script_enabled=script, color_scheme=theme)
            page.goto(f"{address}index.html")
            shown = theme if script else "light"
            assert page.get_attribute("html", "data-theme") == shown
            page.close()
