"""The workflows run a laptop's commands, may do little, and cannot look green by a trick."""

import re

import pytest
import yaml
from helpers_book import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.y*ml"))
TRICKS = ["continue-on-error", "|| true", "set +e", "if: always()", "exit 0"]
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")


def faults(text: str) -> list[str]:
    """Return what is wrong with a workflow's text, one line a fault."""
    found = [f"{trick} hides a failure" for trick in TRICKS if trick in text]
    workflow = yaml.safe_load(text)
    if workflow.get("permissions") != {"contents": "read"}:
        found.append("permissions must be `contents: read`")
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if "uses" in step and not PINNED.fullmatch(step["uses"]):
                found.append(f"{step['uses']} is not pinned to a commit")
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_trick_little_power_pinned_actions(path):
    assert faults(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "old, new, fault",
    [
        ("make test", "make test || true", "hides a failure"),
        ("timeout-minutes: 40", "continue-on-error: true", "hides a failure"),
        ("contents: read", "contents: write", "permissions"),
        ("@3d3c42e5aac5ba805825da76410c181273ba90b1", "@v7", "not pinned"),
    ],
)
def test_planted_fault_is_found(old, new, fault):
    text = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert old in text
    assert any(fault in line for line in faults(text.replace(old, new)))


def test_checks_run_on_main_and_pull_requests_with_the_same_commands():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    # YAML 1.1 reads the key `on` as true.
    assert workflow[True] == {"push": {"branches": ["main"]}, "pull_request": None}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert [step["run"] for step in steps if "run" in step] == ["make book", "make test TORCH=cpu"]


def test_the_scheduled_run_does_what_is_too_long_for_every_push():
    text = (ROOT / ".github/workflows/scheduled.yml").read_text(encoding="utf-8")
    job = yaml.safe_load(text)["jobs"]["checks"]
    assert job["strategy"]["matrix"]["verb"] == ["faults", "long", "matrix"]
    assert [step["run"] for step in job["steps"] if "run" in step] == ['make "$VERB" TORCH=cpu']


def test_every_command_is_one_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for verb in ("book", "test", "faults", "long", "matrix"):
        assert re.search(rf"^{verb}:.*## ", makefile, re.M), verb


def test_ci_run_calls_make_test_and_nothing_else():
    lines = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    assert lines == [
        "#!/usr/bin/env bash",
        "set -euo pipefail",
        'cd "$(dirname "$0")/.."',
        "make test",
    ]
