"""What tests of the site share: its pages, a server, what is wrong with a page."""

import gzip
import re
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe

from tools.notebooks import ROOT

TOC = (ROOT / "_toc.yml").read_text(encoding="utf-8")
LISTED = re.findall(r"(?:root|file): (\S+)", TOC)  # paths without suffix
PAGES = [*LISTED, "search", "404"]
LESSONS = [page for page in LISTED if page.startswith("lessons/")]

SIZES = {
    "desktop": {"width": 1280, "height": 800},
    "phone": {"width": 360, "height": 740},
}


class Handler(SimpleHTTPRequestHandler):
    """Serve a folder as a static host does: compressed, with its own 404 page."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer with the file, or with the site's own 404 page."""
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        self.send_response(200 if path.is_file() else 404)
        path = path if path.is_file() else Path(self.directory) / "404.html"
        body = path.read_bytes()
        self.send_header("Content-Type", self.guess_type(str(path)))
        if path.suffix in (".html", ".css", ".js", ".svg"):
            body = gzip.compress(body, 6)  # the level most hosts use
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serve(folder: Path):
    """Serve a folder to this machine while the block runs; give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder))
    server.handle_error = lambda *_: None  # a browser that hangs up
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def complaints_of(page) -> list[str]:
    """Return a list that fills with the errors and warnings of a page's console."""
    found = []
    page.on(
        "console",
        lambda said: said.type in ("error", "warning") and found.append(said.text),
    )
    page.on("pageerror", lambda error: found.append(f"uncaught: {error}"))
    return found


# Opens what is closed, and makes plain text of each piece of code that has the class,
# and so the colours, of an earlier piece in the same kind of box: there are thousands.
OPEN = """() => {
  document.querySelectorAll("details").forEach(details => { details.open = true; });
  const seen = new Set();
  for (const piece of document.querySelectorAll(".highlight span")) {
    const kind = piece.className + piece.closest("div:not(.highlight)")?.className;
    if (seen.has(kind)) piece.replaceWith(piece.textContent);
    seen.add(kind);
  }
}"""
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
AXE = {
    "runOnly": {"type": "tag", "values": RULES},
    "rules": {"label-content-name-mismatch": {"enabled": True}},
    "resultTypes": ["violations"],
}


def axe_violations(page) -> list[str]:
    """Return what axe finds on a page with all its closed parts open, one line each."""
    page.evaluate(OPEN)
    # the pieces a formula is drawn from are hidden from screen readers
    found = Axe().run(page, context={"exclude": [[".katex-html"]]}, options=AXE)
    return [
        f"{rule['id']}: {node['html'][:120]} {node.get('failureSummary', '')}"
        for rule in found.response["violations"]
        for node in rule["nodes"]
    ]


OVERFLOWING = """() => {
  const root = document.documentElement;
  const scrolls = box => ["auto", "scroll"].includes(getComputedStyle(box).overflowX);
  const boxed = part =>
    part && part.tagName !== "ARTICLE" && (scrolls(part) || boxed(part.parentElement));
  const unseen = ".katex-mathml, .katex-mathml *, svg *";  // for the ear, or drawn
  const all = document.querySelectorAll("article *, .bd-header-article *");
  const seen = part => !part.matches(unseen) && part.checkVisibility();
  const parts = [...all].filter(seen);
  const right = part => part.getBoundingClientRect().right;
  const wide = parts.filter(part =>
    right(part) > root.clientWidth + 1 && !boxed(part.parentElement)
  );
  const cut = parts.filter(part =>
    ["hidden", "clip"].includes(getComputedStyle(part).overflowY)
    && part.scrollHeight > part.clientHeight + 1 && part.clientHeight > 1
  );
  const side = (part, name) => part[name] / part.getAttribute(name);
  const bent = parts.filter(part => part.matches("img[width]")
    && Math.abs(side(part, "width") / side(part, "height") - 1) > 0.02);
  const found = [...wide, ...cut, ...bent].map(part => part.outerHTML.slice(0, 150));
  return root.scrollWidth > root.clientWidth ? ["the page", ...found] : found;
}"""


def overflowing_elements(page) -> list[str]:
    """Return what sticks out of a page, is cut by its box, or is bent."""
    return page.evaluate(OVERFLOWING)
