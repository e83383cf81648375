"""Pages can be used by everybody: axe finds nothing, on any page, size or theme."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from helpers_browser import CONTRAST, SIZES, THEMES, pages

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Opens what is closed, and makes plain text of each piece of code that has the class, and so the
# colours, of an earlier piece in the same kind of box: there are thousands, and axe is slow.
PREPARE = """() => {
  document.querySelectorAll("details").forEach(details => { details.open = true; });
  const seen = new Set();
  for (const piece of document.querySelectorAll(".highlight span")) {
    const boxes = [];
    for (let box = piece; box && box.tagName !== "ARTICLE"; box = box.parentElement) {
      boxes.push(box.className);
    }
    const kind = boxes.join("|");
    if (seen.has(kind)) {
      piece.replaceWith(piece.textContent);
    }
    seen.add(kind);
  }
}"""


def violations(page) -> list[str]:
    """Let axe look at a page with all its closed parts open; return one line a violation."""
    page.evaluate(PREPARE)
    options = {
        "runOnly": {"type": "tag", "values": RULES},
        "rules": {"label-content-name-mismatch": {"enabled": True}},
        "resultTypes": ["violations"],
    }
    # The pieces a formula is drawn from, thousands on a page, are hidden from screen readers.
    context = {"exclude": [[".katex-html"]]}
    found = Axe().run(page, context=context, options=options).response["violations"]
    return [
        f"{rule['id']}: {node['target']} {node['html'][:120]} {node.get('failureSummary', '')}"
        for rule in found
        for node in rule["nodes"]
    ]


def lost(page) -> list[str]:
    """Return what one cannot see of a page: beyond its right edge, or cut by its box.

    What has a box of its own to scroll in, to the side, is not lost.
    """
    return page.evaluate("""() => {
      const root = document.documentElement;
      const scrolls = box => ["auto", "scroll"].includes(getComputedStyle(box).overflowX);
      const boxed = part =>
        part && part.tagName !== "ARTICLE" && (scrolls(part) || boxed(part.parentElement));
      const sticksOut = part => part.getBoundingClientRect().right > root.clientWidth + 1;
      // for the ear only, or cut to size by a drawing
      const unseen = ".katex-mathml, .katex-mathml *, svg *";
      const parts = [...document.querySelectorAll("article *, .bd-header-article *")].filter(
        part => !part.matches(unseen) && part.checkVisibility()
      );
      const wide = parts.filter(part => sticksOut(part) && !boxed(part.parentElement));
      const cut = parts.filter(part =>
        ["hidden", "clip"].includes(getComputedStyle(part).overflowY)
        && part.scrollHeight > part.clientHeight + 1 && part.clientHeight > 1
      );
      const shape = image => {
        const pad = side => parseFloat(getComputedStyle(image)[`padding${side}`]);
        return (image.clientWidth - pad("Left") - pad("Right"))
          / (image.clientHeight - pad("Top") - pad("Bottom"));
      };
      const own = image => image.getAttribute("width") / image.getAttribute("height");
      const bent = parts.filter(
        part => part.matches("img[width]") && Math.abs(shape(part) / own(part) - 1) > 0.02
      );
      const start = part => part.outerHTML.slice(0, 150);
      const found = [...wide, ...cut, ...bent].slice(0, 5).map(start);
      return root.scrollWidth > root.clientWidth ? [`${root.scrollWidth} px`, ...found] : found;
    }""")


@pytest.fixture(
    scope="module",
    params=[(size, theme) for size in SIZES for theme in THEMES],
    ids="-".join,
)
def page(browser, request):
    """Open an empty page of one size, for a reader whose system asks for one theme."""
    size, theme = request.param
    opened = browser.new_page(viewport=SIZES[size], color_scheme=theme, reduced_motion="reduce")
    yield opened
    opened.close()


@pytest.mark.parametrize("name", pages())
def test_axe_finds_nothing(page, address, name):
    page.goto(f"{address}{name}.html")
    assert violations(page) == []


FAULTS = {
    "image without alternative text": ('<img src="data:,">', "image-alt"),
    "pale text": ('<p style="color: #aaa">text</p>', "color-contrast"),
    "pale code, closed": (
        "<details><summary>more</summary><article class=highlight><pre><span>a</span>"
        '<span class="c" style="color: #aaa">text</span></pre></article></details>',
        "color-contrast",
    ),
    "no name for a button": ("<button></button>", "button-name"),
    "other name than what it shows": (
        '<button aria-label="Go">Search</button>',
        "label-content-name-mismatch",
    ),
    "heading left out": ("<h4>deep</h4>", "heading-order"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault_is_found(browser, name):
    html, rule = FAULTS[name]
    page = browser.new_page()
    start = '<!doctype html><html lang="en"><title>T</title><main><h1>T</h1>'
    page.set_content(f"{start}</main>")
    assert violations(page) == []
    page.set_content(f"{start}{html}</main>")
    assert [line.partition(":")[0] for line in violations(page)] == [rule]
    page.close()


def test_text_outside_every_landmark_is_found(browser):
    page = browser.new_page()
    page.set_content('<html lang="en"><title>T</title><p>lost</p><main><h1>T</h1></main>')
    assert [line.partition(":")[0] for line in violations(page)] == ["region"]
    page.close()


@pytest.mark.parametrize("name", pages())
def test_page_fits_its_window_and_says_its_language(browser, address, name):
    """The narrowest window, of 320 px, is a desktop at a zoom of 400 %: WCAG 2.2, 1.4.10."""
    page = browser.new_page(viewport=SIZES["desktop"])
    page.goto(f"{address}{name}.html")
    page.evaluate(PREPARE)
    assert page.get_attribute("html", "lang") == "en"
    for size in (SIZES["desktop"], SIZES["phone"], {"width": 320, "height": 256}):
        page.set_viewport_size(size)
        assert lost(page) == [], size
    page.close()


@pytest.mark.parametrize(
    "html",
    [
        "<article><p><code>{line}</code></p></article>",
        "<article style='overflow: hidden'><p><code>{line}</code></p></article>",
        "<article><pre style='overflow: auto hidden; height: 1em'>a<br>b<br>c</pre></article>",
        "<article><img width=80 height=40 style='max-height: 20px; object-fit: cover'></article>",
        "<div class='bd-header-article' style='width: 500px'><button>last</button></div>",
    ],
)
def test_planted_lost_text_is_found(browser, html):
    page = browser.new_page(viewport=SIZES["phone"])
    line = "wide_" * 100
    page.set_content(f"<article><pre style='overflow-x: auto'>{line}</pre></article>")
    assert lost(page) == []
    page.set_content(html.format(line=line))
    assert lost(page)
    page.close()


def unspoken_stars(page) -> int:
    """Return how many stars of a page are not read out as "landmark paper"."""
    stars = page.locator("main").evaluate("main => main.textContent.split('\\u2605').length - 1")
    # by role and name: as a screen reader gets it
    return stars - page.get_by_role("img", name="landmark paper", exact=True).count()


@pytest.mark.parametrize("name", [name for name in pages() if name != "search"])
def test_star_is_spoken_as_landmark_paper(browser, address, name):
    page = browser.new_page()
    page.goto(f"{address}{name}.html")
    page.evaluate(PREPARE)
    assert unspoken_stars(page) == 0
    if name == "references" or name == "lessons/46-transformer-architecture":
        assert page.get_by_role("img", name="landmark paper", exact=True).count() > 0
    page.close()


@pytest.mark.parametrize("star", ["&#9733;", "<span aria-label='landmark paper'>&#9733;</span>"])
def test_planted_silent_star_is_found(browser, star):
    page = browser.new_page()
    spoken = "<span role='img' aria-label='landmark paper'>&#9733;</span>"
    page.set_content(f"<main>{spoken}</main>")
    assert unspoken_stars(page) == 0
    page.set_content(f"<main>{spoken} {star}</main>")
    assert unspoken_stars(page) == 1
    page.close()


# Paper must be opaque, or a dark page shows through behind black text.
CHANGED = """async () => {
  const changed = [];
  for (const image of document.querySelectorAll("article img")) {
    image.loading = "eager";
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    const paper = canvas.getContext("2d");
    paper.drawImage(image, 0, 0);
    const points = paper.getImageData(0, 0, canvas.width, canvas.height).data;
    const opaque = points.every((value, place) => place % 4 !== 3 || value === 255);
    const {filter, opacity, mixBlendMode} = getComputedStyle(image);
    const plain = filter === "none" && opacity === "1" && mixBlendMode === "normal";
    if (!plain || !opaque) { changed.push(image.src); }
  }
  return changed;
}"""


@pytest.mark.parametrize("name", [name for name in pages() if name.startswith("lessons/")])
def test_figures_keep_their_colours_in_the_dark(browser, address, name):
    page = browser.new_page(color_scheme="dark")
    page.goto(f"{address}{name}.html")
    assert page.evaluate(CHANGED) == []
    page.close()


@pytest.mark.parametrize(
    "style", ["filter: brightness(0.8)", "opacity: 0.1", "mix-blend-mode: multiply"]
)
def test_planted_changed_figure_is_found(browser, address, style):
    page = browser.new_page(color_scheme="dark", bypass_csp=True)
    page.goto(f"{address}lessons/46-transformer-architecture.html")
    figures = page.locator("article img").count()
    assert figures > 0
    page.evaluate(f"document.querySelector('article img').style.cssText = '{style}'")
    assert len(page.evaluate(CHANGED)) == 1
    page.close()


def test_first_page_shows_what_the_course_is_in_one_screen(browser, address):
    page = browser.new_page(viewport=SIZES["desktop"])
    page.goto(f"{address}index.html")
    assert page.locator("article h1").bounding_box()["y"] > 0
    figure = page.locator(".lesson-map svg").bounding_box()
    assert figure["y"] + figure["height"] < SIZES["desktop"]["height"]
    page.close()


# axe needs scripts to run; so a page without them is compared with one that axe has seen.
COLOURS = """() => [...document.querySelectorAll("article *")].map(part => {
  const style = getComputedStyle(part);
  return [style.color, style.backgroundColor, style.borderInlineStartColor].join(" ");
})"""


@pytest.mark.parametrize("name", ["index", "lessons/46-exercises"])
def test_page_without_scripts_has_the_colours_of_the_light_one(browser, address, name):
    seen = []
    for scripts, theme in ((True, "light"), (False, "light"), (False, "dark")):
        context = browser.new_context(java_script_enabled=scripts, color_scheme=theme)
        page = context.new_page()
        page.goto(f"{address}{name}.html")
        page.locator(".copybtn").evaluate_all("buttons => buttons.forEach(one => one.remove())")
        seen.append(page.evaluate(COLOURS))
        context.close()
    assert len(seen[0]) > 50
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("theme", THEMES)
def test_page_is_light_or_dark_as_the_system_asks(browser, address, theme):
    page = browser.new_page(color_scheme=theme)
    page.goto(f"{address}index.html")
    assert page.get_attribute("html", "data-theme") == theme
    assert page.get_attribute("html", "data-mode") == "auto"
    page.close()


# The drawing's colours, which axe does not judge: texts to their boxes, the rest to the page.
DRAWN = (
    f"() => {{{CONTRAST}"
    + """
  const style = part => getComputedStyle(document.querySelector(`.lesson-map ${part}`));
  const box = style("rect").fill;
  const paper = getComputedStyle(document.body).backgroundColor;
  return {
    title: contrast(style("tspan:first-child").fill, box),
    text: contrast(style("text").fill, box),
    arrow: contrast(style(".lesson-map-arrows path").stroke, paper),
    edge: contrast(style("rect").stroke, paper),
  };
}"""
)


@pytest.mark.parametrize("theme", THEMES)
def test_map_of_the_lessons_can_be_read_and_heard(browser, address, theme):
    page = browser.new_page(color_scheme=theme)
    page.goto(f"{address}index.html")
    drawn = page.evaluate(DRAWN)
    assert min(drawn["title"], drawn["text"]) >= 4.5 and min(drawn["arrow"], drawn["edge"]) >= 3
    drawing = page.get_by_role("group", name="Map of the lessons")
    links = drawing.get_by_role("link").all()
    assert len(links) == len(
        [name for name in pages() if re.fullmatch(r"lessons/.*(?<!exercises)", name)]
    )
    for link in links:
        number = re.match(r"Lesson (\d+) ", link.get_attribute("aria-label"))[1]
        assert link.get_attribute("href").startswith(f"lessons/{number}-")
    page.close()
