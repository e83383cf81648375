"""Put the site into one zip, to be read from a folder, without a server or a network.

    make archive

The site is taken as it stands in _build/html, so it has its PDFs after `make pdf` and none after
`make book`. The same site gives the same bytes, whenever and wherever the archive is made.
"""

import sys
import zipfile
from pathlib import Path

from build_book import BUILD, ROOT, SITE, title
from preview import WATCHED

# Sphinx notes there what it was built from, for its own next build; the others are source maps,
# the theme's translations, of which the pages hold what they need, and the page that a host shows
# for a wrong address, which finds its style at a host only.
LEFT_OUT = (".buildinfo", "*.map", "*.po", "*.mo", "404.html")
EARLIEST = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip can name


class Failure(Exception):
    """The reader has to do something first; the text is one line that says what."""


def check_age(site: Path) -> None:
    """See that there is a site, and that nothing it is made from changed since.

    Errors: `Failure` otherwise.
    """
    first = site / "index.html"
    if not first.is_file():
        raise Failure("there is no site yet; run `make book`, or `make pdf` for one with PDFs")
    built = first.stat().st_mtime
    for pattern in WATCHED:
        for path in sorted(ROOT.glob(pattern)):
            if path.stat().st_mtime > built:
                name = path.relative_to(ROOT).as_posix()
                again = "make pdf" if (site / "pdf").exists() else "make book"
                raise Failure(f"{name} changed after the site was built; run `{again}` again")


def files_of(site: Path) -> list[Path]:
    """Return the files of a site that a reader can use, in a fixed order."""
    files = [path for path in site.rglob("*") if path.is_file()]
    kept = [path for path in files if not any(path.match(pattern) for pattern in LEFT_OUT)]
    return sorted(kept, key=lambda path: path.relative_to(site).as_posix())


def write(site: Path, target: Path) -> None:
    """Write a site into a zip, below one folder that has the zip's name.

    The old archive, if any, stays until the new one is whole.
    """
    draft = target.with_suffix(".part")
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in files_of(site):
            name = f"{target.stem}/{path.relative_to(site).as_posix()}"
            entry = zipfile.ZipInfo(name, EARLIEST)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, on every system
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes(), compresslevel=9)
    draft.replace(target)


def main() -> int:
    """Write the archive; return the exit code."""
    from docutils.nodes import make_id

    target = BUILD / f"{make_id(title())}.zip"
    try:
        check_age(SITE)
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    write(SITE, target)
    pdf = "with" if (SITE / "pdf").exists() else "without"
    print(f"{target.stat().st_size / 1e6:.1f} MB, {pdf} PDFs: {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
