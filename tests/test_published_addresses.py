"""An address, once published, never dies: it is a page, or leads to one.

Somebody has linked to it. published_addresses.txt lists all that there ever were; what each
redirect does is looked at in test_findable.py and test_browser_addresses.py.
"""

import pytest
from helpers_book import ROOT
from helpers_browser import pages, redirects

LIST = ROOT / "tests/published_addresses.txt"


def published() -> set[str]:
    """Return the listed addresses, as paths inside the site."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def problems(listed: set[str], present: set[str], redirected: set[str]) -> list[str]:
    """Compare what was published with the pages and redirects of now.

    Returns one line a problem, which says what to do.
    """
    gone = [
        f"{address} was published and is gone: bring the page back, or say in _config.yml, under "
        f"rediraffe_redirects, where its readers find it now: "
        f"`{address.removesuffix('.html')}: path/of/that-page`"
        for address in sorted(listed - present - redirected)
    ]
    new = [
        f"{address} is not in tests/{LIST.name}: add the line `{address}`"
        for address in sorted((present | redirected) - listed)
    ]
    return gone + new


def addresses(names) -> set[str]:
    """Return the addresses of pages; the 404 page has none of its own."""
    return {f"{name}.html" for name in names if name != "404"}


def test_every_published_address_still_leads_somewhere():
    assert problems(published(), addresses(pages()), addresses(redirects())) == []


PAGE, NEW = "lessons/46-x.html", "lessons/46-y.html"


@pytest.mark.parametrize(
    "present, redirected, says",
    [
        ({PAGE}, set(), []),
        (set(), {PAGE}, []),
        (set(), set(), [f"{PAGE} was published and is gone"]),
        ({PAGE, NEW}, set(), [f"{NEW} is not in tests/published_addresses.txt"]),
        ({NEW}, set(), [f"{PAGE} was published and is gone", f"{NEW} is not in"]),
    ],
    ids=["page", "redirect", "removed", "new", "renamed"],
)
def test_planted_change_is_seen(present, redirected, says):
    found = problems({PAGE}, present, redirected)
    assert len(found) == len(says)
    assert all(line.startswith(start) for line, start in zip(found, says, strict=True))


def test_removed_page_is_told_what_to_do():
    (line,) = problems({PAGE}, set(), set())
    assert "rediraffe_redirects" in line and "`lessons/46-x: path/of/that-page`" in line
