"""Ask every address outside the book that its pages link to whether it still answers.

    make links

Sphinx does the asking, politely: two at a time, again when one fails, slower when a host says so.
This needs the network and depends on others, so no test and no build does it; once a week the
scheduled run does. Publishers of papers often refuse programs, which says nothing about the paper:
there the register of the DOIs is asked instead.
"""

import json
import re
import shutil
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote, urlsplit

from build_book import BUILD, one_line, in_words, run_sphinx

FOLDER = BUILD / "links"
SETTINGS = {
    "linkcheck_workers": 2,
    "linkcheck_retries": 3,
    "linkcheck_timeout": 30,
    "linkcheck_rate_limit_timeout": 120,
    # the next version's own choice; said here, since Sphinx warns where it is not said
    "linkcheck_allow_unauthorized": False,
    "linkcheck_report_timeouts_as_broken": False,
}
REGISTER = "https://doi.org/api/handles/"
REFUSALS = (401, 403, 406, 418, 429)  # "not you", which is another answer than "not here"
BAD = ("broken", "timeout")


def is_registered(address: str, register: str = REGISTER, pause: float = 5.0) -> bool:
    """Say whether the register knows the DOI of an address such as https://doi.org/10.1/2.

    Arguments: the address, the register's, and the seconds to wait before asking once more.
    """
    wanted = register + quote(urlsplit(address).path.lstrip("/"), safe="/")
    for attempt in (1, 2):
        try:
            with urllib.request.urlopen(wanted, timeout=30) as answer:
                return json.load(answer).get("responseCode") == 1
        except (OSError, ValueError):
            if attempt == 1:
                time.sleep(pause)
    return False


def refused(result: dict) -> bool:
    """Say whether a host answered that it does not want to be asked by a program."""
    code = re.match(r"\d{3}\b", result["info"])  # what follows names the address, digits and all
    return result["code"] in REFUSALS or bool(code and int(code[0]) in REFUSALS)


def excused(result: dict) -> bool:
    """Say whether a result is no reason to worry: a DOI in the register, its publisher shy."""
    host = urlsplit(result["uri"]).hostname
    return host == "doi.org" and refused(result) and is_registered(result["uri"])


def read_results(folder: Path) -> list[dict]:
    """Return what Sphinx found out, one dictionary a link, in the order of files and lines."""
    text = (folder / "output.json").read_text(encoding="utf-8")
    results = [json.loads(line) for line in text.splitlines()]
    return sorted(results, key=lambda result: (result["filename"], result["lineno"]))


def in_place(result: dict) -> str:
    """Return a bad result as a line that names the file, the line or cell, and the address."""
    place = f"{result['filename']}:{result['lineno']}"
    why = one_line(result["info"]) or result["status"]
    return in_words(f"{place}: WARNING: {result['uri']} does not answer as it should: {why}")


def main() -> int:
    """Check the links; return the exit code."""
    print("Asking every address that the pages link to; this takes a minute ...", flush=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    said = run_sphinx(FOLDER, builder="linkcheck", settings=SETTINGS)
    if not (FOLDER / "output.json").is_file():
        print(*said, "error: the book could not be read", sep="\n", file=sys.stderr)
        return 1
    results = [result for result in read_results(FOLDER) if result["status"] != "unchecked"]
    bad = [result for result in results if result["status"] in BAD]
    excuses = [result for result in bad if excused(result)]
    for result in excuses:
        print(f"{result['uri']}: refuses programs, and stands in the register of DOIs")
    bad = [result for result in bad if result not in excuses]
    for result in bad:
        print(in_place(result), file=sys.stderr)
    if bad:
        print(f"error: {len(bad)} of {len(results)} links do not answer", file=sys.stderr)
        return 1
    if not results:
        print("error: no link was found, so nothing was checked", file=sys.stderr)
        return 1
    print(f"{len(results)} links answer.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
