"""Build the book and print it: a PDF of each lesson, of its exercises, and of the whole book.

    make pdf

Chromium prints what a reader would print, from a strict build. The whole book is printed from a
build that is one page, since PDFs joined afterwards lose their tags. The files go into the site,
under pdf/, and the pages link to them. As with `make book`, a site that is not whole never takes
the place of the last good one.
"""

import argparse
import sys
import time
from pathlib import Path

import pikepdf
from playwright.sync_api import Browser, Error, sync_playwright

import browser as chromium
import build_book
from build_book import FRESH, ROOT, SITE, one_line

sys.path.append(str(ROOT / "theme/extensions"))

from pdf_links import book_file, page_file  # noqa: E402

PATIENCE = 300_000  # milliseconds for one page; the whole book takes a quarter of a minute

# Has every image loaded, and sees to links that lead to other files. These would name a folder of
# this machine: they lead to the published site where the page knows its address, and else go.
# Returns the headings, formulas as TeX.
PREPARE = """async () => {
  const images = [...document.querySelectorAll("article img")];
  images.forEach(image => { image.loading = "eager"; });
  await Promise.all(images.map(image => image.decode()));
  await document.fonts.ready;

  const here = location.href.split("#")[0];
  const published = document.querySelector("link[rel=canonical]")?.href;
  for (const link of document.querySelectorAll("a[href]")) {
    if (link.protocol !== "file:" || link.href.split("#")[0] === here) continue;
    if (published) {
      link.href = new URL(link.getAttribute("href"), published).href;
    } else {
      link.removeAttribute("href");
    }
  }

  return [...document.querySelectorAll("article :is(h1, h2, h3, h4, h5, h6)")].map(heading => {
    const copy = heading.cloneNode(true);
    copy.querySelectorAll(".headerlink").forEach(mark => mark.remove());
    copy.querySelectorAll(".katex").forEach(formula => {
      formula.replaceWith(formula.querySelector("annotation").textContent);
    });
    return copy.textContent.trim().replace(/\\s+/g, " ");
  });
}"""

FOOTER = """<div style="display: flex; font: 8pt sans-serif; justify-content: space-between;
  margin: 0 16mm; width: 100%">
  <span class="title"></span>
  <span><span class="pageNumber"></span>/<span class="totalPages"></span></span>
</div>"""


def outline_items(item):
    """Yield the entries below an entry of a PDF's outline, in the order of the pages."""
    below = item.get("/First")
    while below is not None:
        yield below
        yield from outline_items(below)
        below = below.get("/Next")


def finish_file(path: Path, headings: list[str]) -> None:
    """Mend what Chromium wrote: the outline, and what a file says of the machine it comes from.

    Chromium takes the outline's titles from the lines as drawn: where a heading is broken or
    stands at the edge of a page, words run together or come twice. Times would make each file
    another one. Compressing the tags makes it a quarter as large.
    Errors: `ValueError` when there are not as many entries as headings.
    """
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        items = list(outline_items(pdf.Root.get("/Outlines", {})))
        if len(items) != len(headings):
            raise ValueError(f"{len(headings)} headings, but {len(items)} entries in the outline")
        for item, heading in zip(items, headings):
            item.Title = heading
        for key in ("/Creator", "/CreationDate", "/ModDate"):
            if key in pdf.docinfo:
                del pdf.docinfo[key]
        pdf.save(
            path,
            object_stream_mode=pikepdf.ObjectStreamMode.generate,
            recompress_flate=True,
            deterministic_id=True,
        )


def print_page(browser: Browser, source: Path, target: Path) -> None:
    """Print a page of a built site into a PDF, without a network.

    Errors: those of playwright, `pikepdf.PdfError` and `ValueError`.
    """
    context = browser.new_context(offline=True)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(source.as_uri())
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
    context.close()
    finish_file(target, headings)


def print_all(pages: list[str], verbose: bool = False) -> list[str]:
    """Print the fresh site, and with it the whole book.

    Arguments: the pages of the toc, and whether to show Sphinx's own log. Returns one line a
    problem.
    """
    found = build_book.run_sphinx(FRESH / "single", verbose, builder="singlehtml")
    if found:
        return found
    files = [(FRESH / "html" / f"{page}.html", page_file(page)) for page in pages]
    files.append((FRESH / "single" / f"{pages[0]}.html", book_file(build_book.title())))
    (FRESH / "html/pdf").mkdir()
    name = ""
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=chromium.find(), args=chromium.FLAGS
            )
            for source, name in files:
                if name:
                    print_page(browser, source, FRESH / "html" / name)
            browser.close()
    except (Error, pikepdf.PdfError, ValueError) as error:
        # what follows the first line is the browser's log
        return [f"{name or 'Chromium'}: {one_line(str(error).strip().splitlines()[0])}"]
    return []


def main() -> int:
    """Build and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--verbose", action="store_true", help="show Sphinx's own log")
    options = parser.parse_args()
    if chromium.main():
        return 1
    start = time.perf_counter()
    print("Building and printing the book; this takes about a minute ...", flush=True)
    found, _ = build_book.build(
        options.verbose,
        settings={"course_pdf": True},
        finish=lambda pages: print_all(pages, options.verbose),
    )
    if found:
        return build_book.report(found)
    for path in sorted((SITE / "pdf").iterdir()):
        print(f"{path.stat().st_size / 1e6:6.1f} MB  {path}")
    print(f"Printed in {time.perf_counter() - start:.1f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
