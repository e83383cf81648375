"""Formulas are whole before a reader comes: with no script, no network, and from a folder."""

import re
from urllib.parse import urlsplit

import pytest
from helpers_browser import listen, pages

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

FORMULA = r'<(?:div|span) class="formula'

# Each formula is drawn from letters of KaTeX's fonts, and is read out from MathML.
LOOK = """async () => {
  await document.fonts.ready;
  const formulas = [...document.querySelectorAll(".formula")];
  document.querySelectorAll("details").forEach(details => { details.open = true; });
  const drawn = formula => {
    const box = formula.querySelector(".katex-html");
    return box !== null && box.getBoundingClientRect().height > 4
      && getComputedStyle(box.parentElement).fontFamily.includes("KaTeX_Main");
  };
  // the table of contents shows the headings below another only when a reader is there
  const due = formula => formula.closest("article") || formula.checkVisibility();
  const read = formula => formula.querySelector("math annotation[encoding='application/x-tex']");
  const text = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  let raw = "";
  while (text.nextNode()) {
    if (!text.currentNode.parentElement.closest(".formula, pre, code, script")) {
      raw += text.currentNode.data;
    }
  }
  // numerator, bar and denominator: without their places they lie on each other
  const height = part => part.getBoundingClientRect();
  const flat = [...document.querySelectorAll("article .mfrac > .vlist-t")].filter(fraction => {
    const rows = [...fraction.querySelector(".vlist").children].map(row => height(row).top);
    return Math.max(...rows) - Math.min(...rows) < 4;
  });
  const own = formula => getComputedStyle(formula.querySelector(".katex-html")).color;
  const text_of = formula => getComputedStyle(formula.parentElement).color;
  const fonts = [...document.fonts].filter(font => font.family.includes("KaTeX"));
  const start = formula => formula.outerHTML.slice(0, 150);
  return {
    formulas: formulas.length,
    undrawn: formulas.filter(formula => due(formula) && !drawn(formula)).map(start),
    flat: flat.map(start),
    pale: formulas.filter(formula => formula.querySelector(".katex-html")
      && own(formula) !== text_of(formula)).map(start),
    unread: formulas.filter(formula => !read(formula)).map(start),
    loaded: fonts.filter(font => font.status === "loaded").length,
    failed: fonts.filter(font => font.status === "error").length,
    raw: raw.match(/\\$|\\\\[a-zA-Z]+/g) ?? [],
  };
}"""


def look(browser, address: str, script: bool) -> tuple[dict, list[str], list[str]]:
    """Open a page without a network, and with or without scripts.

    Returns what is to be seen of its formulas, the console's complaints, and who else was asked.
    """
    context = browser.new_context(java_script_enabled=script, service_workers="block")
    page = context.new_page()
    complaints, asked = listen(page), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address, wait_until="load")
    seen = page.evaluate(LOOK)
    context.close()
    own = urlsplit(address)
    others = [url for url in asked if urlsplit(url)[:2] != own[:2] and not url.startswith("data:")]
    return seen, complaints, others


@pytest.mark.parametrize("script", [True, False], ids=["with scripts", "without scripts"])
@pytest.mark.parametrize("name", [name for name in pages() if name != "404"])
def test_formulas_are_typeset_from_a_folder(browser, site, name, script):
    html = (site / f"{name}.html").read_text(encoding="utf-8")
    seen, complaints, others = look(browser, (site / f"{name}.html").as_uri(), script)
    assert seen["formulas"] == len(re.findall(FORMULA, html))
    assert (
        seen["undrawn"]
        == seen["unread"]
        == seen["flat"]
        == seen["pale"]
        == seen["raw"]
        == others
        == []
    )
    assert complaints == [] or not script
    assert seen["failed"] == 0
    assert (seen["loaded"] > 0) is (seen["formulas"] > 0)


def test_lessons_have_formulas(site):
    """So that the test above has something to look at."""
    lessons = [name for name in pages() if name.startswith("lessons/")]
    assert lessons
    for name in lessons:
        html = (site / f"{name}.html").read_text(encoding="utf-8")
        assert len(re.findall(FORMULA, html)) >= 5, name


def without_fonts(site, html):
    return html.replace("katex/katex.min.css", "katex/gone.css")


def without_maths(site, html):
    return re.sub(r"<math .*?</math>", "", html, flags=re.DOTALL)


def with_raw_tex(site, html):
    return html.replace("</main>", r"<p>Let $d > 0$ and \sqrt{d}.</p></main>")


def without_places(site, html):
    return re.sub(r"katex/pages/[^\"]*", "katex/gone.css", html)


def with_pale_formulas(site, html):
    return html.replace('class="katex-html"', 'class="katex-html landmark-paper"')


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (without_places, "flat"),
        (with_pale_formulas, "pale"),
        (without_fonts, "undrawn"),
        (without_maths, "unread"),
        (with_raw_tex, "raw"),
    ],
)
def test_planted_fault_is_seen(browser, site, damage, what):
    good = site / "lessons/46-transformer-architecture.html"
    bad = good.with_name("damaged.html")
    bad.write_text(damage(site, good.read_text(encoding="utf-8")), encoding="utf-8")
    try:
        assert look(browser, bad.as_uri(), False)[0][what]
        assert not look(browser, good.as_uri(), False)[0][what]
    finally:
        bad.unlink()
