"""What the browser tests share: a server as a static host is one, and what a visit to a page shows."""

import gzip
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml
from helpers_book import ROOT

TEXT = {".html", ".css", ".js", ".svg", ".json", ".txt", ".xml", ".md", ".ipynb"}
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}
SIZES = {"desktop": DESKTOP, "phone": PHONE}
THEMES = ("light", "dark")

# JavaScript for the checks that run in a page: the contrast of two colours, as WCAG 2.2 defines it.
CONTRAST = """
  const luminance = colour => {
    const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(value => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
"""


def pages() -> list[str]:
    """Return the pages of the site, as paths without suffix: those of the toc, and two more."""
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    return [*re.findall(r"(?:root|file): (\S+)", toc), "search", "404"]


def redirects() -> set[str]:
    """Return the names, without suffix, that pages had once and that lead to their new ones."""
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    return set(settings["sphinx"]["config"]["rediraffe_redirects"])


class Handler(SimpleHTTPRequestHandler):
    """Serve a folder, with text compressed."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer with the file, or with 404."""
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            self.send_error(404)
            return
        body = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        if path.suffix in TEXT:
            body = gzip.compress(body, 6)  # the level most hosts use
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """A server that takes it calmly when a browser hangs up."""

    def handle_error(self, request, client_address) -> None:
        """Say nothing; what a page lacks is seen in the browser."""


@contextmanager
def serve(folder: Path, handler: type = Handler):
    """Serve a folder to this machine while the block runs; give its address, with a slash."""
    server = Server(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Visit:
    """What a browser did when it opened a page with an empty cache."""

    address: str
    requests: dict[str, str] = field(default_factory=dict)  # address by the request's number
    sizes: dict[str, int] = field(default_factory=dict)  # bytes over the wire, by the same number
    complaints: list[str] = field(default_factory=list)  # errors and warnings of the console

    @property
    def bytes(self) -> int:
        """Return the bytes of all requests together, headers included."""
        return sum(self.sizes.values())

    @property
    def third_parties(self) -> list[str]:
        """Return what was asked of anybody but the site itself."""
        host = re.match(r"\w+://[^/]*/", self.address)[0]
        own = (host, "data:", "blob:")
        return sorted(url for url in self.requests.values() if not url.startswith(own))

    @property
    def heaviest(self) -> str:
        """Return the five heaviest files and their bytes, in one line."""
        most = sorted(self.sizes.items(), key=lambda item: -item[1])[:5]
        names = [(self.requests[number].split("?")[0].rpartition("/")[2], n) for number, n in most]
        return ", ".join(f"{name} {number:,}" for name, number in names)


def listen(page) -> list[str]:
    """Return a list that fills with the errors and warnings of a page's console."""
    complaints = []

    def note(message) -> None:
        if message.type in ("error", "warning"):
            complaints.append(f"{message.type}: {message.text}")

    page.on("console", note)
    page.on("pageerror", lambda error: complaints.append(f"uncaught: {error}"))
    return complaints


def visit(browser, address: str) -> Visit:
    """Open a page with an empty cache, wait until it is quiet, and say what happened."""
    context = browser.new_context(viewport=DESKTOP)
    page = context.new_page()
    seen = Visit(address, complaints=listen(page))
    session = context.new_cdp_session(page)
    session.on(
        "Network.requestWillBeSent",
        lambda event: seen.requests.update({event["requestId"]: event["request"]["url"]}),
    )
    session.on(
        "Network.loadingFinished",
        lambda event: seen.sizes.update({event["requestId"]: round(event["encodedDataLength"])}),
    )
    session.send("Network.enable")
    page.goto(address, wait_until="networkidle")
    context.close()
    return seen
