"""The forms for issues are valid, ask for what is needed, and are opened by the link on each page."""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from bs4 import BeautifulSoup
from helpers_book import PUBLISHED, ROOT, build, tiny_book

FOLDER = ROOT / ".github/ISSUE_TEMPLATE"
FORMS = {path.stem: path for path in sorted(FOLDER.glob("*.yml")) if path.stem != "config"}
# The fields that somebody who wants to help cannot do without, and which must be filled in.
ASKED = {
    "mistake": {"page": True, "wrong": True, "right": False},
    "does-not-run": {
        "place": True,
        "step": True,
        "output": True,
        "versions": True,
        "again": True,
    },
}
TITLES = {"mistake": "A mistake in a lesson", "does-not-run": "It does not run here"}


def schema_complaint(path: Path, name: str) -> str:
    """Hold a file to a schema of GitHub's that check-jsonschema carries; return what is wrong."""
    tool = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{name}"]
    done = subprocess.run([*tool, path], capture_output=True, text=True)
    return done.stdout if done.returncode else ""


def fields(text: str) -> dict[str, bool]:
    """Return the fields of a form by their id, and whether each must be filled in."""
    body = yaml.safe_load(text)["body"]
    return {field["id"]: field["validations"]["required"] for field in body}


@pytest.mark.parametrize("name", TITLES)
def test_a_form_is_valid_and_asks_for_what_is_needed(name):
    assert set(FORMS) == set(TITLES)
    text = FORMS[name].read_text(encoding="utf-8")
    assert schema_complaint(FORMS[name], "github-issue-forms") == ""
    assert fields(text) == ASKED[name]
    assert yaml.safe_load(text)["name"] == TITLES[name]


@pytest.mark.parametrize(
    "old, new",
    [
        ("description: Something", "describe: Something"),
        ("type: textarea", "type: text"),
        ("required: true", "required: perhaps"),
    ],
)
def test_planted_slip_in_a_form_is_seen(tmp_path, old, new):
    text = FORMS["mistake"].read_text(encoding="utf-8")
    assert old in text
    planted = tmp_path / "mistake.yml"
    planted.write_text(text.replace(old, new), encoding="utf-8")
    assert "mistake.yml" in schema_complaint(planted, "github-issue-forms")


def test_an_issue_without_a_form_stays_possible_for_the_button_of_the_theme():
    config = FOLDER / "config.yml"
    assert schema_complaint(config, "github-issue-config") == ""
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    assert settings == {"blank_issues_enabled": True}


def test_the_link_on_a_page_opens_the_form_with_the_page_filled_in(tmp_path):
    root = tiny_book(tmp_path / "book")
    done = build(root, **PUBLISHED)
    assert done.returncode == 0, done.stderr
    for page in ("index", "lessons/07-tiny"):
        html = (root / f"_build/html/{page}.html").read_text(encoding="utf-8")
        footer = BeautifulSoup(html, "html.parser").select_one(".course-footer")
        (link,) = footer.find_all("a", string=re.compile("Report a mistake"))
        address = urlsplit(link["href"])
        query = {key: value for key, [value] in parse_qs(address.query).items()}
        assert f"https://{address.netloc}{address.path}" == (
            "https://github.com/some-teacher/class/issues/new"
        )
        form = FOLDER / query.pop("template")
        filled = fields(form.read_text(encoding="utf-8")) | {"title": True}
        assert query == {"title": f"Mistake in {page}", "page": page}
        assert set(query) <= set(filled)
