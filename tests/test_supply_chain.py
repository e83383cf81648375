"""New versions are proposed, but none that breaks the course; weak ones are looked up, all of them."""

import re
from importlib.metadata import requires
from types import SimpleNamespace

import audit
import pytest
import yaml
from environment import LOCKED, pins
from helpers_book import ROOT
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from test_issue_forms import schema_complaint

DEPENDABOT = ROOT / ".github/dependabot.yml"


def updates() -> dict[str, dict]:
    """Return Dependabot's settings by the kind of package."""
    settings = yaml.safe_load(DEPENDABOT.read_text(encoding="utf-8"))
    return {update["package-ecosystem"]: update for update in settings["updates"]}


def proposed(package: str, version: str) -> bool:
    """Say whether Dependabot would propose a version of a Python package."""
    for rule in updates()["pip"]["ignore"]:
        if rule["dependency-name"] == package:
            return not any(Version(version) in SpecifierSet(range_) for range_ in rule["versions"])
    return True


def test_dependabot_watches_packages_and_actions_and_its_settings_are_valid():
    assert schema_complaint(DEPENDABOT, "dependabot") == ""
    assert set(updates()) == {"pip", "github-actions"}
    for update in updates().values():
        assert update["schedule"]["interval"] == "weekly"
        assert update["cooldown"]["default-days"] >= 7
    listed = {path.parent for path in ROOT.glob("**/requirements*.txt") if ".venv" not in str(path)}
    watched = {ROOT / folder.lstrip("/") for folder in updates()["pip"]["directories"]}
    assert listed == watched
    # what is generated is renewed by `make pins`, not line by line
    excluded = updates()["pip"]["exclude-paths"]
    generated = {path for pattern in excluded for path in ROOT.glob(pattern)}
    assert generated == {ROOT / "constraints.txt", *(ROOT / file for file in LOCKED.values())}


@pytest.mark.parametrize(
    "package, version, expected",
    [
        ("jupyter-book", "2.0.0", False),
        ("jupyter-book", "2.1.4", False),
        ("jupyter-book", "1.0.5", True),
        ("sphinx", "8.0.0", False),
        ("pytest", "9.2.0", False),
        ("pytest", "9.1.2", True),
        ("torch", "3.0.0", True),
    ],
)
def test_what_breaks_the_course_is_not_proposed(package, version, expected):
    assert proposed(package, version) is expected


def test_every_rule_is_about_a_package_in_use():
    for rule in updates()["pip"]["ignore"]:
        files = (ROOT / "requirements.txt", ROOT / "requirements-book.txt")
        assert rule["dependency-name"] in pins(*files)


def test_what_jupyter_book_cannot_stand_beside_is_not_proposed():
    used = pins(ROOT / "requirements-book.txt")
    needs = [Requirement(need) for need in requires("jupyter-book")]
    for need in (need for need in needs if need.name in used and not need.marker):
        newer = [str(major) for major in range(Version(used[need.name]).major + 1, 100)]
        refused = [version for version in newer if version not in need.specifier]
        assert [version for version in refused if proposed(need.name, version)] == [], need


@pytest.mark.parametrize("slip", ["updates:", "interval: weekly", "package-ecosystem: pip"])
def test_planted_slip_in_dependabots_settings_is_seen(tmp_path, slip):
    text = DEPENDABOT.read_text(encoding="utf-8")
    assert slip in text
    planted = tmp_path / "dependabot.yml"
    planted.write_text(text.replace(slip, "slip: x"), encoding="utf-8")
    assert schema_complaint(planted, "dependabot")


def test_the_audit_asks_about_every_locked_package_and_takes_silence_for_a_failure():
    command = audit.command()
    assert {"--strict", "--no-deps", "--disable-pip"} <= set(command)
    asked = {word.partition("=")[2] for word in command if word.startswith("--requirement=")}
    files = [*LOCKED.values(), "requirements.txt", "requirements-book.txt"]
    assert asked == {str(ROOT / file) for file in files}
    assert "torch" in pins(*(ROOT / file for file in files))


@pytest.mark.parametrize("code, expected", [(0, 0), (1, 1), (2, 1), (-9, 1)])
def test_the_audit_passes_only_when_pip_audit_does(monkeypatch, code, expected):
    monkeypatch.setattr(audit.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=code))
    assert audit.main() == expected


def test_every_answer_to_a_finding_has_a_reason_and_is_shown(monkeypatch, capsys):
    for number, reason in audit.ANSWERED.items():
        assert re.fullmatch(r"(GHSA(-\w{4}){3}|PYSEC-\d+-\d+|CVE-\d+-\d+)", number)
        assert len(reason.split()) > 5
    monkeypatch.setattr(audit, "ANSWERED", {"PYSEC-2026-1": "Nothing here calls that function."})
    monkeypatch.setattr(audit.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=0))
    assert "--ignore-vuln=PYSEC-2026-1" in audit.command()
    audit.main()
    assert "PYSEC-2026-1: answered. Nothing here" in capsys.readouterr().out


def test_planted_package_that_cannot_be_looked_up_fails(tmp_path, monkeypatch):
    """Without a network nothing can be looked up, which must not pass for a clean result."""
    (tmp_path / "list.txt").write_text("six==1.17.0\n")
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "https_proxy", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    for variable in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(audit, "ROOT", tmp_path)
    monkeypatch.setattr(audit, "LOCKED", dict.fromkeys(LOCKED, "list.txt"))
    monkeypatch.setattr(audit, "REQUIREMENTS", {"full": "list.txt"})
    assert audit.main() == 1


def test_a_weakness_can_be_reported_in_private():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "Report a vulnerability" in text and "make audit" in text
    assert not re.search(r"\S+@\S+\.\w+", text), "no person's address is made up"
