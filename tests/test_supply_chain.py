"""New versions are proposed, but none that breaks the course; weak ones are looked up, all."""

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


# The settings in use. Others may silence Dependabot, or send what it proposes elsewhere.
ALL_KINDS = {"package-ecosystem", "schedule", "cooldown", "groups"}
IN_USE = {
    "pip": ALL_KINDS | {"directories", "exclude-paths", "ignore"},
    "github-actions": ALL_KINDS | {"directory"},
}


def silenced(text: str) -> list[str]:
    """Return the settings by which Dependabot would propose less than all, one line each."""
    settings = yaml.safe_load(text)
    found = [f"{key}: not in use here" for key in sorted(set(settings) - {"version", "updates"})]
    kinds = [update["package-ecosystem"] for update in settings["updates"]]
    if sorted(kinds) != sorted(IN_USE):
        found.append(f"there must be one entry for each of {sorted(IN_USE)}")
    for kind, update in zip(kinds, settings["updates"]):
        found += [
            f"{kind}, {key}: not in use here" for key in set(update) - IN_USE.get(kind, set())
        ]
        if update.get("schedule") != {"interval": "weekly"}:
            found.append(f"{kind}, schedule: must be weekly")
        if [group.get("patterns") for group in update.get("groups", {}).values()] != [["*"]]:
            found.append(f"{kind}, groups: must be one, of everything")
        days = update.get("cooldown", {})
        if set(days) != {"default-days"} or not 7 <= days["default-days"] <= 14:
            found.append(f"{kind}, cooldown: must be one week or two")
        # for actions "/" means .github/workflows
        if kind == "github-actions" and update.get("directory") != "/":
            found.append(f"{kind}, directory: must be /")
    return found


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
    assert silenced(DEPENDABOT.read_text(encoding="utf-8")) == []
    listed = {path.parent for path in ROOT.glob("**/requirements*.txt") if ".venv" not in str(path)}
    watched = {ROOT / folder.lstrip("/") for folder in updates()["pip"]["directories"]}
    assert listed == watched
    # what is generated is renewed by `make pins`, not line by line
    excluded = updates()["pip"]["exclude-paths"]
    generated = {path for pattern in excluded for path in ROOT.glob(pattern)}
    assert generated == {ROOT / "constraints.txt", *(ROOT / file for file in LOCKED.values())}


ACTIONS = "  - package-ecosystem: github-actions\n"
PIP = "  - package-ecosystem: pip\n"


@pytest.mark.parametrize(
    "old, new, fault",
    [
        (PIP, PIP + "    open-pull-requests-limit: 0\n", "pip, open-pull-requests-limit: not in"),
        (PIP, PIP + "    target-branch: old\n", "pip, target-branch: not in use"),
        (PIP, PIP + "    allow: [dependency-name: six]\n", "pip, allow: not in use"),
        (ACTIONS, ACTIONS + "    open-pull-requests-limit: 0\n", "github-actions, open-pull-req"),
        (ACTIONS, ACTIONS + "    target-branch: old\n", "github-actions, target-branch: not in"),
        (ACTIONS, ACTIONS + "    ignore: [dependency-name: '*']\n", "github-actions, ignore: not"),
        ("    directory: /\n", "    directory: /binder\n", "github-actions, directory: must be /"),
        ("github-actions", "docker", "one entry for each"),
        ("weekly", "monthly", "pip, schedule: must be weekly"),
        ("default-days: 7", "default-days: 0", "github-actions, cooldown: must be"),
        ("default-days: 7", "default-days: 90", "pip, cooldown: must be"),
        ('patterns: ["*"]', "patterns: [six]", "pip, groups: must be one"),
        ("version: 2\n", "version: 2\nmulti-ecosystem-groups: {}\n", "multi-ecosystem-groups: not"),
    ],
)
def test_planted_setting_that_silences_dependabot_is_found(old, new, fault):
    text = DEPENDABOT.read_text(encoding="utf-8")
    assert old in text
    found = silenced(text.replace(old, new))
    assert any(fault in line for line in found), found


def untold_images(workflow: str, contributing: str) -> list[str]:
    """Return the images in a workflow that Versions does not call work by hand, by their names."""
    section = re.search(r"^## Versions\n(.*?)(?=^## |\Z)", contributing, re.M | re.S)[1]
    told = re.findall(r"Nor does it renew the image of (\w+) in", section)
    return sorted(set(re.findall(r"docker://[\w./-]*?([\w-]+):", workflow)) - set(told))


def test_what_dependabot_does_not_renew_is_told():
    """GitHub says of Dependabot that it knows actions by the syntax of a repository only."""
    folder = ROOT / ".github/workflows"
    workflows = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.yml")))
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "docker://" in workflows and untold_images(workflows, text) == []
    assert "The image of actionlint in ci.yml" in DEPENDABOT.read_text(encoding="utf-8")
    assert untold_images(workflows, text.replace("the image of actionlint", "it")) == ["actionlint"]
    assert untold_images("uses: docker://some/linter:1@sha256:0", text) == ["linter"]


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


SECURITY = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def unsafe(security: str) -> list[str]:
    """Return what would bring a weakness before everybody's eyes, or to nobody's, one line each."""
    text = " ".join(security.split())
    found = [
        f"does not say `{words}`"
        for words in ("Report a vulnerability", "make audit")
        if words not in text
    ]
    refused = r"\bno public issue|\b(?:not|never) (?:open|file|write) a public issue"
    mentions = len(re.findall("public issue", text))
    if not mentions or len(re.findall(refused, text)) != mentions:
        found.append("does not refuse a public issue")
    if re.search(r"\S+@\S+\.\w+", text):
        found.append("makes a person's address up")
    return found


def test_a_weakness_can_be_reported_in_private():
    assert unsafe(SECURITY) == []


@pytest.mark.parametrize(
    "old, new, fault",
    [
        ("no public issue", "a public issue", "public issue"),
        ("no public issue", "no secret issue", "public issue"),
        ("# Security\n", "# Security\n\nBetter: please open a public issue.\n", "public issue"),
        ("Report a vulnerability", "Issues", "Report a vulnerability"),
        ("make audit", "make", "make audit"),
        ("# Security\n", "# Security\n\nWrite to us@example.org.\n", "address"),
    ],
)
def test_planted_public_way_for_a_weakness_is_found(old, new, fault):
    assert old in SECURITY
    (found,) = unsafe(SECURITY.replace(old, new))
    assert fault in found
