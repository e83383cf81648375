"""Build the book with a PDF of each lesson and of the whole: `python -m tools pdf`.

Chromium prints what a reader would print, from a strict build. The whole book is
printed from one page that holds all, since PDFs joined afterwards lose their tags.
"""

import os
import shutil
from pathlib import Path

import pikepdf
from playwright.sync_api import Browser, Error, Page, Playwright, sync_playwright

from theme.extensions.paper import book_file, page_file
from tools.build import build, one_line, report

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu"]
PATIENCE = 300_000  # milliseconds for one page; the whole book takes some 15 seconds

# Load every image, and return the headings. Links to other files would name a folder
# of this machine: they lead to the published site if the page names it, and else go.
PREPARE = """async () => {
  const images = [...document.querySelectorAll("article img")];
  images.forEach(image => { image.loading = "eager"; });
  await Promise.all(images.map(image => image.decode()));
  await document.fonts.ready;

  const here = location.href.split("#")[0];
  const published = document.querySelector("link[rel=canonical]")?.href;
  for (const link of document.querySelectorAll("a[href]")) {
    if (link.protocol !== "file:" || link.href.split("#")[0] === here) continue;
    if (published) link.href = new URL(link.getAttribute("href"), published).href;
    else link.removeAttribute("href");
  }

  const headings = document.querySelectorAll("article :is(h1, h2, h3, h4, h5, h6)");
  return [...headings].map(heading => {
    const copy = heading.cloneNode(true);
    copy.querySelectorAll(".headerlink").forEach(mark => mark.remove());
    copy.querySelectorAll(".katex").forEach(formula => {
      formula.replaceWith(formula.querySelector("annotation").textContent);
    });
    return copy.textContent.trim().replace(/\\s+/g, " ");
  });
}"""

# Return the page's article for the book as one page. An anchor gets the page's name
# in front, since several are named alike, and a link to it the same.
ARTICLE = """([site, pages, name]) => {
  const article = document.querySelector("article").cloneNode(true);
  const named = [...article.querySelectorAll("[id]:not(marker)")];
  named.forEach(part => { part.id = `${name}/${part.id}`; });
  article.id = `${name}/`;
  article.querySelectorAll("img").forEach(image => { image.src = image.src; });
  for (const link of article.querySelectorAll("a[href]")) {
    const {href} = new URL(link.getAttribute("href"), location);
    const [target, place] = href.replace(site, "").split(/\\.html#?/);
    if (pages.includes(target)) link.setAttribute("href", `#${target}/${place}`);
  }
  return article.outerHTML;
}"""
WHOLE = "html => { document.querySelector('article').outerHTML = html; }"

FOOTER = """<div style="display: flex; font: 8pt sans-serif; width: 100%;
  justify-content: space-between; margin: 0 16mm"><span class="title"></span>
  <span><b class="pageNumber"></b>/<b class="totalPages"></b></span></div>"""


def launch(playwright: Playwright) -> Browser:
    """Start what CHROMIUM names, or a Chromium on PATH, Playwright's own, or Chrome."""
    named = os.environ.get("CHROMIUM")
    found = [shutil.which(name) for name in ([named] if named else NAMES)]
    ways = [{"executable_path": path} for path in found if path]
    for way in ways if named else [*ways, {}, {"channel": "chrome"}]:
        try:
            return playwright.chromium.launch(args=FLAGS, **way)
        except Error:
            continue
    if named:
        raise FileNotFoundError(f"CHROMIUM={named} does not start; mend it or unset it")
    command = "python -m playwright install --with-deps chromium"
    raise FileNotFoundError(f"no Chromium found, to print pages; run: {command}")


def outline_items(item):
    """Yield the entries below an entry of a PDF's outline, in their order."""
    below = item.get("/First")
    while below is not None:
        yield below
        yield from outline_items(below)
        below = below.get("/Next")


def finish_file(path: Path, headings: list[str]) -> None:
    """Compress the tags, and mend the outline, in which words run together."""
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        items = outline_items(pdf.Root.get("/Outlines", {}))
        for item, heading in zip(items, headings, strict=True):
            item.Title = heading
        pdf.save(path, object_stream_mode=pikepdf.ObjectStreamMode.generate)


def print_page(page: Page, target: Path) -> None:
    """Print an open page into a PDF."""
    headings = page.evaluate(PREPARE)
    page.pdf(
        path=target,
        format="A4",
        prefer_css_page_size=True,
        display_header_footer=True,
        header_template="<span></span>",
        footer_template=FOOTER,
        tagged=True,
        outline=True,
    )
    finish_file(target, headings)


def print_all(fresh: Path, pages: list[str]) -> list[str]:
    """Print a fresh site, and with it the whole book; return one line a problem."""
    site, articles, name = fresh / "html", [], pages[0]
    (site / "pdf").mkdir()
    try:
        with sync_playwright() as playwright, launch(playwright) as browser:
            page = browser.new_context(offline=True).new_page()
            page.set_default_timeout(PATIENCE)
            for name in pages:
                page.goto((site / f"{name}.html").as_uri())
                where = [f"{site.as_uri()}/", pages, name]
                articles.append(page.evaluate(ARTICLE, where))
                if file := page_file(name):
                    print_page(page, site / file)
            page.goto((site / f"{pages[0]}.html").as_uri())
            page.evaluate(WHOLE, "".join(articles))
            name = book_file(page.title())
            print_page(page, site / name)
    except (Error, OSError, pikepdf.PdfError, ValueError) as error:
        # what follows the first line is the browser's log
        return [f"{name}: {one_line(str(error).partition(chr(10))[0], fresh)}"]
    return []


def main(arguments: list[str]) -> int:
    """Build and print; return the exit code."""
    print("Building and printing the book; this takes about a minute ...", flush=True)
    return report(build(settings={"course_pdf": True}, finish=print_all))
