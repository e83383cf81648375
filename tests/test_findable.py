"""Pages are found: titles, descriptions, addresses, icon, sitemap, redirects; nothing invented."""

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
from docutils import nodes
from helpers_book import PUBLISHED, build, tiny_book
from helpers_browser import pages
from page_head import plain, summary
from site_address import find_site
from sphinx.errors import ConfigError

pytestmark = pytest.mark.xdist_group("site")  # which is built once for all that look at it

BOOK = "Deep Learning, Built and Checked"
FORK = "https://github.com/Some-Teacher/class.2026"

# ---- the site's address -------------------------------------------------------------------


@pytest.mark.parametrize(
    "repository, site",
    [
        (FORK, "https://some-teacher.github.io/class.2026/"),
        ("https://GitHub.com/o/Course", "https://o.github.io/Course/"),
        ("https://www.github.com/o/r", "https://o.github.io/r/"),
        ("https://github.com/O/o.github.io", "https://o.github.io/"),
        ("https://github.com/O/O.GitHub.io", "https://o.github.io/"),
        ("https://github.com/o/other.github.io", "https://o.github.io/other.github.io/"),
        ("", ""),
        ("https://git.example.org/o/r", ""),
        ("https://gitlab.com/o/r", ""),
        ("https://notgithub.com/o/r", ""),
        ("https://github.com/o/r/tree", ""),
        ("https://github.com/name_company/r", ""),
    ],
)
def test_address_of_a_repositorys_pages(repository, site):
    assert find_site("", {}, repository) == site


def test_order_configuration_then_environment_then_repository():
    environment = {"SITE_URL": "https://second.example"}
    assert find_site("https://first.example", environment, FORK) == "https://first.example/"
    assert find_site("", environment, FORK) == "https://second.example/"
    assert find_site("", {"SITE_URL": ""}, FORK) == "https://some-teacher.github.io/class.2026/"


@pytest.mark.parametrize(
    "given, site",
    [
        ("https://example.org", "https://example.org/"),
        ("https://example.org/a/b-c_d/", "https://example.org/a/b-c_d/"),
        ("http://Example.ORG/Course", "http://example.org/Course/"),
        ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example/"),
        (" http://localhost:8000 ", "http://localhost:8000/"),
    ],
)
def test_address_that_is_set_gets_one_form(given, site):
    assert find_site(given, {}, "") == site
    assert find_site("", {"SITE_URL": given}, "") == site


@pytest.mark.parametrize(
    "given",
    [
        "example.org/course",
        "/course/",
        "ftp://example.org",
        "https://",
        "https://user:s3cret@example.org",
        "https://example.org/course/index.html",
        "https://example.org/?a=b",
        "https://example.org/#top",
        "https://example.org//course",
        "https://example.org/a/../b/..",
        "https://example.org/two words",
        'https://example.org/"quoted"',
        "https://bücher.example",
    ],
)
def test_wrong_address_is_refused_with_the_settings_name(given):
    with pytest.raises(ConfigError, match="^_config.yml: html.baseurl must look like https://"):
        find_site(given, {}, "")
    with pytest.raises(ConfigError, match="^SITE_URL must look like https://"):
        find_site("", {"SITE_URL": given}, "")


# ---- descriptions -------------------------------------------------------------------------

WHOLE = "This sentence has some eighty characters, which is enough to say what a page has."
LONG = "This one goes on and on, " + "for it has very much to say, " * 6 + "and ends."


@pytest.mark.parametrize(
    "text, told",
    [
        ("One sentence. And another.", "One sentence. And another."),
        ("Why so? Because of this.", "Why so? Because of this."),
        ("Version 1.5 is out, e.g. here.", "Version 1.5 is out, e.g. here."),
        ("One sentence. Then \0 grows.", "One sentence."),
        ("It has \0 in it. And another.", ""),
        (f"{WHOLE} {LONG}", WHOLE),
        (f"Too short. {LONG}", "Too short. This one goes on and on, for it has very much to say, "
         "for it has very much to say, for it has very much to say, for it has very much to say, "
         "for it…"),
    ],
)  # fmt: skip
def test_description_is_whole_sentences_without_formulas(text, told):
    assert summary(text) == told
    assert len(told) <= 160


def test_description_has_no_formula_star_or_aside():
    paragraph = nodes.paragraph()
    paragraph += nodes.Text("A block (")
    paragraph += nodes.reference("", "Vaswani et al., 2017")
    paragraph += nodes.raw("", "<span>&#9733;</span>", format="html")
    paragraph += nodes.Text(") with a\n")
    paragraph += nodes.emphasis("", "head")
    paragraph += nodes.Text(" of width ")
    paragraph += nodes.math("", r"d_{\mathrm{head}}")
    assert plain(paragraph) == "A block with a head of width \0"


# ---- the pages of a site ------------------------------------------------------------------


class Head(HTMLParser):
    """What a page's head says: the title, and each `meta` and `link` by its name."""

    def __init__(self, path: Path):
        super().__init__()
        self.said, self.in_title = {}, False
        self.feed(path.read_text(encoding="utf-8").partition("</head>")[0])

    def note(self, name: str, value: str) -> None:
        """Keep a value; a second one for a name is a list of two, which fits nowhere."""
        self.said[name] = [self.said[name], value] if name in self.said else value

    def handle_starttag(self, tag, attributes) -> None:
        """Note what an element says."""
        self.in_title = tag == "title"
        found = dict(attributes)
        if tag == "meta" and (name := found.get("name") or found.get("property")):
            if name != "viewport":
                self.note(name, found["content"])
        elif tag == "link" and found.get("rel") in ("canonical", "icon"):
            self.note(found["rel"], found["href"])

    def handle_data(self, text) -> None:
        """Note the title's text."""
        if self.in_title:
            self.note("title", text)
            self.in_title = False


def is_drawing(file: Path) -> bool:
    """Say whether a file is there, and an SVG that a browser can read."""
    try:
        return ElementTree.parse(file).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    except (OSError, ElementTree.ParseError):
        return False


def head_problems(site: Path, page: str, base: str, prefix: str) -> list[str]:
    """Look at the head of one page; return one line a problem."""
    said, found = Head(site / f"{page}.html").said, []

    def check(holds: bool, name: str) -> None:
        if not holds:
            found.append(f"{page}: {name} is {said.get(name)!r}")

    title = str(said.get("title"))
    name = re.fullmatch(f"(.+) [—-] {BOOK}", title)
    check(title == BOOK if page == "index" else bool(name) and BOOK not in name[1], "title")
    check(said.get("og:title") in (title, "Search", name and name[1]), "og:title")
    description = str(said.get("description"))
    check(30 <= len(description) <= 160, "description")
    check(not re.search(r"[\\$`<>\0]|\*\*|\]\(|\s\s|\( ", description), "description")
    check(said.get("og:description") == description, "og:description")
    check(said.get("og:site_name") == BOOK, "og:site_name")
    check(said.get("og:type") == ("website" if page == "index" else "article"), "og:type")
    check(said.get("twitter:card") == "summary", "twitter:card")
    check(said.get("robots") == ("noindex" if page == "404" else None), "robots")
    address = None
    if base and page != "404":
        address = base + ("" if page == "index" else f"{page}.html")
    check(said.get("canonical") == address, "canonical")
    check(said.get("og:url") == address, "og:url")
    icon = str(said.get("icon"))
    file = site / icon.removeprefix(prefix) if page == "404" else (site / page).parent / icon
    check(is_drawing(file), "icon")
    return found


def site_problems(site: Path, listed: list[str], base: str) -> list[str]:
    """Look at the heads of all pages, and at the files for robots; return one line a problem.

    Arguments: the built site, the pages of its toc, and its address, "" when none is known.
    """
    prefix, found = urlsplit(base).path or "/", []
    for page in [*listed, "search", "404"]:
        found += head_problems(site, page, base, prefix)
    heads = {page: Head(site / f"{page}.html").said for page in [*listed, "search", "404"]}
    for name in ("title", "description"):
        values = [str(said.get(name)) for said in heads.values()]
        found += [f"two pages have the {name} {v!r}" for v in set(values) if values.count(v) > 1]
    robots = "User-agent: *\nAllow: /\n" + (f"Sitemap: {base}sitemap.xml\n" if base else "")
    if (site / "robots.txt").read_text(encoding="utf-8") != robots:
        found.append("robots.txt is not as it should be")
    if not (site / ".nojekyll").is_file():
        found.append(".nojekyll is missing")
    sitemap = site / "sitemap.xml"
    wanted = [base + ("" if page == "index" else f"{page}.html") for page in sorted(listed)]
    if sitemap.exists() != bool(base):
        found.append("sitemap.xml is there without an address, or not there with one")
    elif base:
        space = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
        root = ElementTree.parse(sitemap).getroot()
        names = [place.text for place in root.findall(f"{space}url/{space}loc")]
        if root.tag != f"{space}urlset" or sorted(names) != sorted(wanted):
            found.append(f"sitemap.xml lists {names}")
    return found


TINY = ["index", "lessons/07-tiny", "references"]
WORDS = 'What the "author" says of a page & of others, in so many words.'
MATTER = f"---\nmyst:\n  html_meta:\n    description: {WORDS}\n---\n\n"
NO_REDIRECTS = "rediraffe_redirects: {}"
REDIRECTS = "rediraffe_redirects: {lessons/07-old: lessons/07-tiny, lessons/05-x: lessons/07-old}"
# how the address becomes known, and what it is then
KNOWN = {
    "nothing known": ({}, "", ""),
    "repository": ({"GITHUB_REPOSITORY": FORK[19:]}, "", "https://some-teacher.github.io/class.2026/"),
    "settings": ({"SITE_URL": "https://b.example"}, "https://a.example/c", "https://a.example/c/"),
}  # fmt: skip


def configure(root: Path, old: str, new: str) -> None:
    """Replace one setting of a tiny book, which must stand there."""
    text = (root / "_config.yml").read_text(encoding="utf-8")
    assert text.count(old) == 1
    (root / "_config.yml").write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """Return a function that builds a tiny book with redirects, each way once."""
    built = {}

    def make(how: str) -> Path:
        if how not in built:
            variables, configured, _ = KNOWN[how]
            root = tiny_book(tmp_path_factory.mktemp("tiny") / "book")
            configure(root, 'baseurl: ""', f'baseurl: "{configured}"')
            configure(root, NO_REDIRECTS, REDIRECTS)
            described = (root / "references.md").read_text(encoding="utf-8")
            (root / "references.md").write_text(MATTER + described, encoding="utf-8")
            done = build(root, **variables)
            assert done.returncode == 0, done.stderr
            built[how] = root / "_build/html"
        return built[how]

    return make


@pytest.mark.parametrize("how", KNOWN)
def test_tiny_site_is_findable(sites, how):
    assert site_problems(sites(how), TINY, KNOWN[how][2]) == []


def test_nothing_is_invented_when_no_address_is_known(sites):
    for path in sites("nothing known").rglob("*.html"):
        html = path.read_text(encoding="utf-8")
        assert "og:url" not in html and 'rel="canonical" href="http' not in html, path


def test_real_site_is_findable(site):
    listed = [page for page in pages() if page not in ("search", "404")]
    assert site_problems(site, listed, f"{PUBLISHED['SITE_URL']}/") == []
    tiresome = "a page of Deep Learning"
    assert [p for p in listed if tiresome in Head(site / f"{p}.html").said["description"]] == []


LESSON = "lessons/07-tiny.html"
PAGES = "https://some-teacher.github.io/class.2026/"
# the file, what is replaced, by what, and which problems are then seen
PLANTED = {
    "title of another page": (LESSON, "<title>Lesson 07: Tiny", "<title>References", "two pages"),
    "title without the book": (LESSON, " &#8212; Deep", " &#8212; Shallow", f"{LESSON[:-5]}: title"),
    "title twice": ("index.html", f"<title>{BOOK}", f"<title>{BOOK} — {BOOK}", "index: title"),
    "no description": (LESSON, 'name="description"', 'name="x"', f"{LESSON[:-5]}: description"),
    "raw TeX": ("index.html", 'content="The first', r'content="The $\alpha$', "index: description"),
    "raw Markdown": ("index.html", 'content="The first', 'content="The **1**', "index: description"),
    "no social data": (LESSON, 'property="og:title"', "", f"{LESSON[:-5]}: og:title"),
    "no address": (LESSON, 'rel="canonical"', 'rel="x"', f"{LESSON[:-5]}: canonical"),
    "address of another site": (LESSON, PAGES, "https://a.example/", f"{LESSON[:-5]}: canonical"),
    "icon that is not there": (LESSON, "favicon.svg", "favicon.png", f"{LESSON[:-5]}: icon"),
    "icon that is broken": ("_static/favicon.svg", "</svg>", "", f"{LESSON[:-5]}: icon"),
    "icon at a relative address": ("404.html", "/class.2026/_static/f", "x/f", "404: icon"),
    "hidden page": (LESSON, "</head>", '<meta name="robots" content="noindex"></head>',
                    f"{LESSON[:-5]}: robots"),
    "404 page to be found": ("404.html", "noindex", "index", "404: robots"),
    "robots kept out": ("robots.txt", "Allow", "Disallow", "robots.txt"),
    "page not in the sitemap": ("sitemap.xml", "references.html", "refs.html", "sitemap.xml lists"),
    "search in the sitemap": ("sitemap.xml", "</urlset>", f"<url><loc>{PAGES}search.html</loc></url></urlset>",
                              "sitemap.xml lists"),
    "no sitemap": ("sitemap.xml", None, None, "sitemap.xml is"),
    "no .nojekyll": (".nojekyll", None, None, ".nojekyll is missing"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_planted_fault_is_seen(sites, tmp_path, name):
    file, old, new, says = PLANTED[name]
    site = shutil.copytree(sites("repository"), tmp_path / "site")
    if old is None:
        (site / file).unlink()
    else:
        text = (site / file).read_text(encoding="utf-8")
        assert old in text
        (site / file).write_text(text.replace(old, new), encoding="utf-8")
    found = site_problems(site, TINY, PAGES)
    assert any(line.startswith(says) for line in found), found


def test_planted_invention_is_seen(sites, tmp_path):
    site = shutil.copytree(sites("nothing known"), tmp_path / "site")
    shutil.copy2(sites("repository") / "sitemap.xml", site)
    shutil.copy2(sites("repository") / "index.html", site)
    found = site_problems(site, TINY, "")
    assert [line.partition(" is ")[0] for line in found] == [
        "index: canonical",
        "index: og:url",
        "sitemap.xml",
    ]


def test_wrong_address_fails_the_build(tmp_path):
    root = tiny_book(tmp_path / "book")
    done = build(root, SITE_URL="example.org")
    assert done.returncode == 1
    assert "SITE_URL must look like https://example.org/course, and is 'example.org'" in done.stderr


def test_author_may_describe_a_page(sites):
    said = Head(sites("nothing known") / "references.html").said
    assert said["description"] == said["og:description"] == WORDS


# ---- redirects ----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["nothing known", "repository"])
@pytest.mark.parametrize("old", ["lessons/07-old", "lessons/05-x"])
def test_old_address_leads_to_the_new_page(sites, how, old):
    site = sites(how)
    html = (site / f"{old}.html").read_text(encoding="utf-8")
    assert '<meta http-equiv="refresh" content="0; url=07-tiny.html" />' in html
    assert '<link rel="canonical" href="07-tiny.html" />' in html
    assert '<a href="07-tiny.html">' in html
    for address in re.findall(r'(?:href|src)="([^"]+)"', html):
        assert (site / old).parent.joinpath(address).resolve().is_file(), address
    assert re.findall(r"<script[^>]*>([^<]*)", html) == [""], "a policy for content forbids it"
    assert old not in (site / "searchindex.js").read_text(encoding="utf-8")


WRONG = {
    "to no page, from a page that is there": (
        "{lessons/07-old: lessons/08-gone, references: index}",
        ["lessons/08-gone.html does not exist", "references.html already exists"],
    ),
    "in a circle": ("{a: b, b: a}", ["circular redirect"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_redirect_fails_the_build(tmp_path, name):
    redirects, says = WRONG[name]
    root = tiny_book(tmp_path / "book")
    configure(root, NO_REDIRECTS, f"rediraffe_redirects: {redirects}")
    done = build(root)
    assert done.returncode == 1
    assert [words for words in says if words not in done.stderr] == [], done.stderr
    assert "Traceback" not in done.stderr
