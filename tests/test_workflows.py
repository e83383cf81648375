"""The workflows run the README's commands, may do little, and cannot look green by a trick.

Two linters read them as well: GitHub's own schema, which check-jsonschema carries, and zizmor,
which looks for weak spots. A third, actionlint, runs on GitHub only (see ci.yml).
"""

import configparser
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import yaml
from helpers_book import ROOT

FOLDER = ROOT / ".github/workflows"
FILES = {path.stem: path for path in sorted(FOLDER.glob("*.y*ml"))}
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in FILES.items()}
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PYTEST_INI = (ROOT / "pytest.ini").read_text(encoding="utf-8")
BRANCH = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]["branch"]

TRICKS = ["continue-on-error", "|| true", "|| :", "set +e", "always()", "exit 0", "--exit-zero"]
PRIVILEGED = ["pull_request_target", "workflow_run", "secrets.", "self-hosted"]
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}|docker://[\w./-]+:[\w.]+@sha256:[0-9a-f]{64}")
# What each job may do beyond reading the code; no other may do anything more.
MAY = {
    ("publish", "build"): {"contents": "read", "pages": "read"},
    ("publish", "deploy"): {"pages": "write", "id-token": "write"},
    ("scheduled", "report"): {"contents": "read", "actions": "read", "issues": "write"},
}
# The settings in use. Any other may take the sense out of a command that is still there: a variable
# like PYTEST_ADDOPTS, a shell that goes on after a failure, a checkout of something else.
WORKFLOW = {"name", True, "permissions", "concurrency", "jobs"}  # YAML 1.1 reads `on` as true
JOB = {"name", "needs", "if", "runs-on", "timeout-minutes", "permissions", "strategy", "steps"}
STEP = {"name", "id", "if", "uses", "with", "run", "env"}
WITH = {
    "actions/checkout": {"persist-credentials", "fetch-depth"},
    "actions/setup-python": {"python-version", "cache", "cache-dependency-path"},
    "actions/upload-artifact": {"name", "path", "if-no-files-found"},
    "actions/upload-pages-artifact": {"path"},
}
ENV = {
    ("ci", "windows"): [{"OMP_NUM_THREADS": "1"}],
    ("publish", "build"): [{"SITE_URL": "${{ steps.pages.outputs.base_url }}"}],
    ("scheduled", "world"): [{"VERB": "${{ matrix.verb }}"}],
    ("scheduled", "report"): [{"GH_TOKEN": "${{ github.token }}"}],
}
MATRIX = {
    ("ci", "linux"): {"runner": ["ubuntu-24.04", "ubuntu-24.04-arm"]},
    ("scheduled", "world"): {"verb": ["faults", "long", "matrix", "links", "audit"]},
}
ENVIRONMENT = {
    ("publish", "deploy"): {
        "name": "github-pages",
        "url": "${{ steps.deployment.outputs.page_url }}",
    },
}
CONCURRENCY = {
    "ci": {
        "group": "ci-${{ github.ref }}",
        "cancel-in-progress": "${{ github.event_name == 'pull_request' }}",
    },
    # a deployment is never broken off, nor a run that is to tell its result
    "publish": {"group": "publish", "cancel-in-progress": False},
    "scheduled": {"group": "scheduled", "cancel-in-progress": False},
}
# Commands that are neither in the Makefile nor in the README, since only a workflow needs them.
OWN = [
    "git worktree add --detach ../before HEAD^1",
    'cat _build/changes.md >> "$GITHUB_STEP_SUMMARY"',
    "python3 tools/scheduled_issue.py",
]
MAKE = re.compile(
    r"make (?:--silent )?(?:-C \.\./before )?(?P<verb>[a-z-]+|\"\$VERB\")"
    r"(?: TORCH=cpu)?(?: OLD=\.\./before/_build/html > _build/changes\.md)?"
)


def triggers(text: str) -> dict:
    """Return what starts a workflow. YAML 1.1 reads the key `on` as true."""
    return yaml.safe_load(text)[True]


def jobs(text: str) -> dict:
    """Return the jobs of a workflow."""
    return yaml.safe_load(text)["jobs"]


def commands(job: dict) -> list[str]:
    """Return the command lines of a job."""
    lines = [line for step in job.get("steps", []) for line in step.get("run", "").splitlines()]
    return [line.strip() for line in lines if line.strip()]


def unpinned(text: str, job: dict) -> list[str]:
    """Return what a job uses that may change without us, and pins without a version beside them."""
    found = []
    for step in [job, *job.get("steps", [])]:
        used = step.get("uses")
        if used and not PINNED.fullmatch(used):
            found.append(f"{used} is not pinned to a commit")
        elif used and used.startswith("actions/"):
            if not re.search(rf"{re.escape(used)} # v\d+\.\d+\.\d+$", text, re.M):
                found.append(f"{used} does not say its version")
    return found


def power(name: str, text: str) -> list[str]:
    """Return what a workflow may do and should not, and what it could be made to do."""
    workflow = yaml.safe_load(text)
    found = [f"{word} gives more than this needs" for word in PRIVILEGED if word in text]
    if workflow.get("permissions") != {"contents": "read"}:
        found.append("permissions must be `contents: read`")
    for key, job in workflow["jobs"].items():
        allowed = MAY.get((name, key), {"contents": "read"})
        if job.get("permissions", {"contents": "read"}) != allowed:
            found.append(f"job {key}: permissions must be {allowed}")
        for step in job.get("steps", []):
            kept = step.get("with", {}).get("persist-credentials")
            if step.get("uses", "").startswith("actions/checkout@") and kept is not False:
                found.append(f"job {key}: the checkout keeps the credentials")
    return found


def stray(text: str) -> list[str]:
    """Return the command lines that are in neither Makefile nor README."""
    found = []
    for job in jobs(text).values():
        verbs = job.get("strategy", {}).get("matrix", {}).get("verb", [])
        for line in commands(job):
            match = MAKE.fullmatch(line)
            named = verbs if match and "$VERB" in match["verb"] else [match and match["verb"]]
            if match and all(re.search(rf"^{verb}:", MAKEFILE, re.M) for verb in named) and named:
                continue
            if line not in OWN and f"\n{line}\n" not in README and f"`{line}`" not in README:
                found.append(f"`{line}` is a command of neither Makefile nor README")
    return found


def unlisted(place: str, settings: dict, known: set) -> list[str]:
    """Return the settings of a place that are not among those known, one line each."""
    return [f"{place}: `{key}` is no setting in use here" for key in settings if key not in known]


def settings(name: str, text: str) -> list[str]:
    """Return what a workflow sets and should not, or does not set and should."""
    workflow = yaml.safe_load(text)
    found = unlisted("workflow", workflow, WORKFLOW)
    if workflow.get("concurrency") != CONCURRENCY[name]:
        found.append(f"concurrency must be {CONCURRENCY[name]}")
    for key, job in workflow["jobs"].items():
        place, steps = f"job {key}", job.get("steps", [])
        found += unlisted(place, job, JOB | {"env", "environment"})
        env = [part["env"] for part in (job, *steps) if "env" in part]
        if env != ENV.get((name, key), []):
            found.append(f"{place}: env must be {ENV.get((name, key), 'absent')}")
        if job.get("environment") != ENVIRONMENT.get((name, key)):
            found.append(f"{place}: environment must be {ENVIRONMENT.get((name, key))}")
        matrix = MATRIX.get((name, key))
        if job.get("strategy") != (matrix and {"fail-fast": False, "matrix": matrix}):
            found.append(f"{place}: all of the matrix must run, and it must be {matrix}")
        for step in steps:
            action = step.get("uses", "").partition("@")[0]
            found += unlisted(f"{place}, a step", step, STEP)
            found += unlisted(f"{place}, {action}", step.get("with", {}), WITH.get(action, set()))
        first = steps[0].get("uses", "") if steps else ""
        if commands(job) and not first.startswith("actions/checkout@"):
            found.append(f"{place}: does not begin with a checkout")
    return found


def faults(name: str, text: str) -> list[str]:
    """Return what is wrong with a workflow, one line a fault."""
    workflow = yaml.safe_load(text)
    found = [f"{trick} hides a failure" for trick in TRICKS if trick in text]
    found += power(name, text) + stray(text) + settings(name, text)
    for key, job in workflow["jobs"].items():
        found += unpinned(text, job)
        if "uses" not in job and not job.get("timeout-minutes"):
            found.append(f"job {key} may hang for hours: no timeout-minutes")
    for branches in [
        (event or {}).get("branches")
        for event in dict(triggers(text)).values()
        if isinstance(event, dict)
    ]:
        if branches not in (None, [BRANCH]):
            found.append(f"runs on {branches}, and the branch of _config.yml is {BRANCH}")
    return found


def test_there_are_three_workflows():
    assert set(FILES) == {"ci", "publish", "scheduled"}


@pytest.mark.parametrize("name", FILES)
def test_no_trick_little_power_known_commands_pinned_actions(name):
    assert faults(name, TEXTS[name]) == []


CHECKOUT = "@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"


@pytest.mark.parametrize(
    "name, old, new, fault",
    [
        ("ci", "make book", "make book || true", "hides a failure"),
        ("ci", "timeout-minutes: 60", "continue-on-error: true", "hides a failure"),
        ("ci", "timeout-minutes: 60", "", "job linux may hang"),
        ("ci", "contents: read", "contents: write", "permissions"),
        ("ci", "permissions:\n  contents: read\n", "", "permissions"),
        ("ci", CHECKOUT, "@v7", "is not pinned"),
        ("ci", CHECKOUT, CHECKOUT[:41], "does not say its version"),
        ("ci", "actionlint:1.7.12@sha256:b193", "actionlint:1.7.12@sha256:", "is not pinned"),
        ("ci", "  pull_request:", "  pull_request_target:", "gives more"),
        ("ci", "persist-credentials: false", "persist-credentials: true", "keeps the credentials"),
        ("ci", "make verify", "make everything", "`make everything` is a command of neither"),
        ("ci", "make verify", "curl example.org", "`curl example.org` is a command of neither"),
        ("ci", "concurrency:\n", "other:\n", "concurrency must be"),
        ("ci", "jobs:\n", "env:\n  PYTEST_ADDOPTS: -x\njobs:\n", "workflow: `env` is no"),
        ("ci", "jobs:\n", "defaults:\n  run:\n    shell: bash {0}\njobs:\n", "`defaults` is no"),
        (
            "ci",
            "    name: macOS",
            "    name: macOS\n    defaults: {}",
            "job macos: `defaults` is no",
        ),
        (
            "ci",
            "    name: macOS",
            "    name: macOS\n    container: x",
            "job macos: `container` is no",
        ),
        ("ci", "- run: make book", "- run: make book\n        shell: bash {0}", "`shell` is no"),
        ("ci", "arm]\n", "arm]\n        exclude: [runner: ubuntu-24.04]\n", "all of the matrix"),
        ("ci", "fail-fast: false", "max-parallel: 1", "all of the matrix"),
        ("ci", 'OMP_NUM_THREADS: "1"', "PYTEST_ADDOPTS: -x", "job windows: env must be"),
        (
            "ci",
            "9331f9315667\n",
            "9331f9315667\n        with:\n          args: -version\n",
            "`args` is no",
        ),
        (
            "publish",
            "    name: Test\n",
            "    name: Test\n    env:\n      PYTEST_ADDOPTS: --collect-only\n",
            "job test: env must be absent",
        ),
        (
            "publish",
            "persist-credentials: false\n",
            "persist-credentials: false\n          ref: published\n",
            "job build, actions/checkout: `ref` is no",
        ),
        ("publish", "in-progress: false", "in-progress: true", "concurrency must be"),
        ("publish", "name: github-pages", "name: other", "job deploy: environment must be"),
        ("publish", "    environment:\n", "    outputs:\n", "job deploy: environment must be"),
        ("publish", "branches: [main]", "branches: [master]", "the branch of _config.yml"),
        ("publish", "pages: read", "pages: write", "job build: permissions"),
        ("publish", "      id-token: write", "      contents: write", "job deploy: permissions"),
        ("scheduled", "links,", "likns,", '`make "$VERB" TORCH=cpu` is a command of neither'),
        ("scheduled", "!cancelled()", "always()", "hides a failure"),
        ("scheduled", "GH_TOKEN:", "TOKEN:", "job report: env must be"),
        (
            "scheduled",
            "        env:\n          GH_TOKEN: ${{ github.token }}\n",
            "",
            "job report: env must be",
        ),
        ("scheduled", "audit]\n", "audit]\n        exclude: [verb: audit]\n", "all of the matrix"),
        (
            "scheduled",
            "      - uses: actions/checkout",
            "      - uses: x/x",
            "begin with a checkout",
        ),
    ],
)
def test_planted_fault_is_found(name, old, new, fault):
    assert old in TEXTS[name]
    found = faults(name, TEXTS[name].replace(old, new))
    assert any(fault in line for line in found), found


def pinned_twice(texts: dict[str, str]) -> list[str]:
    """Return the actions that the workflows together use at more than one commit or version.

    The version beside a pin is a comment: a foreign commit is seen where another place differs.
    """
    used = re.findall(r"uses: ([^\s@]+)@(.*)$", "\n".join(texts.values()), re.M)
    pins = {action: {pin for name, pin in used if name == action} for action, _ in used}
    return [action for action, found in pins.items() if len(found) > 1]


def test_an_action_is_pinned_to_one_commit_everywhere():
    assert pinned_twice(TEXTS) == []
    assert len(re.findall(r"uses: actions/setup-python@", "".join(TEXTS.values()))) > 5


@pytest.mark.parametrize("old", ["5fda3b95a4ea", "v7.0.0"])
def test_planted_pin_that_differs_in_one_place_is_seen(old):
    text = TEXTS["scheduled"].replace(old, old[::-1], 1)
    assert text != TEXTS["scheduled"]
    assert pinned_twice({**TEXTS, "scheduled": text}) == ["actions/setup-python"]


def windows_commands() -> list[str]:
    """Return what the README says for Windows, but for what serves until it is stopped."""
    block = re.search(r"```bat\n(.*?)```", README, re.S)[1]
    others = re.compile(r"set .*|.*(preview|lab)\.py|")
    return [line for line in block.splitlines() if not others.fullmatch(line)]


def test_every_system_runs_what_the_readme_says_for_it():
    ci = jobs(TEXTS["ci"])
    assert ci["linux"]["strategy"]["matrix"]["runner"] == ["ubuntu-24.04", "ubuntu-24.04-arm"]
    assert {commands(ci["linux"])[i] for i in (0, -1)} == {"make book", "make test TORCH=cpu"}
    assert ci["macos"]["runs-on"].startswith("macos-")
    assert commands(ci["macos"]) == ["make book", "make test"]
    assert ci["windows"]["runs-on"].startswith("windows-")
    assert commands(ci["windows"]) == windows_commands() and len(windows_commands()) == 7
    settings = re.findall(r"^set (\w+)=(\w+)$", README, re.M)
    assert dict(settings) == ci["windows"]["env"]
    # of several commands in one step, Windows' shells report the failure of the last only
    assert all("\n" not in step.get("run", "").strip() for step in ci["windows"]["steps"])
    assert all(f"\n{command} " in README for command in ("make book", "make test"))


def test_line_ends_are_the_same_on_every_system():
    lines = (ROOT / ".gitattributes").read_text(encoding="utf-8").splitlines()
    assert "* text=auto eol=lf" in lines


def skips(text: str) -> dict:
    """Return the conditions of a workflow, by the job and, if it is a step's, what this does."""
    found = {}
    for key, job in jobs(text).items():
        for part in [job, *job.get("steps", [])]:
            if "if" in part:
                place = key if part is job else (key, part.get("run") or part.get("uses"))
                found[place] = part["if"]
    return found


BROWSER = ".venv/full/bin/python -m playwright install --with-deps chromium"


def gaps(publish: str, ci: str) -> list[str]:
    """Return the ways in which a site could go out untested or not whole, one line each."""
    found = []
    steps = jobs(publish)
    if triggers(ci) != {"push": {"branches": [BRANCH]}, "pull_request": None}:
        found.append(f"ci must run on every pull request, and on {BRANCH}")
    if triggers(publish) != {"push": {"branches": [BRANCH]}, "workflow_dispatch": None}:
        found.append(f"publish must run on {BRANCH}, and by hand")
    if commands(steps["test"]) != ["make test TORCH=cpu"]:
        found.append("the tests are not those of the README")
    if {steps[job].get("runs-on") for job in ("test", "build")} != {"ubuntu-24.04"}:
        found.append("tested is not where it is built")
    if set(steps["deploy"].get("needs", [])) != {"test", "build"}:
        found.append("deploy does not wait for the tests and the build")
    expected = ["make pdf TORCH=cpu", "make verify"]
    if commands(steps["build"]) != expected:
        found.append(f"build must run {expected}")
    if "cache" in str(steps["build"]["steps"]) + str(steps["test"]["steps"]):
        found.append("the build or the tests take a cache")
    upload = steps["build"]["steps"][-1]
    if "upload-pages-artifact" not in upload.get("uses", ""):
        found.append("something comes after the upload, and is not checked")
    if upload.get("with") != {"path": "_build/html"}:
        found.append("what is uploaded is not what was checked")
    if skips(publish) != {"deploy": f"github.ref == 'refs/heads/{BRANCH}'"}:
        found.append("a part of publish runs only under a condition")
    if skips(ci) != {
        "site": "github.event_name == 'pull_request'",
        ("linux", BROWSER): "runner.arch == 'ARM64'",
    }:
        found.append("a part of ci runs only under a condition")
    return found


def test_a_site_goes_out_only_whole_and_when_the_tests_of_its_commit_passed():
    assert gaps(TEXTS["publish"], TEXTS["ci"]) == []


@pytest.mark.parametrize(
    "name, old, new, gap",
    [
        ("publish", "needs: [test, build]", "needs: [build]", "does not wait"),
        ("publish", "make test TORCH=cpu", "make check TORCH=cpu", "not those of the README"),
        ("publish", "runs-on: ubuntu-24.04", "runs-on: macos-15", "not where it is built"),
        ("publish", "make verify", "make help", "build must run"),
        ("publish", "path: _build/html", "path: _build", "is not what was checked"),
        (
            "publish",
            'python-version: "3.11"',
            'python-version: "3.11"\n          cache: pip',
            "cache",
        ),
        ("publish", "    timeout-minutes: 15", "    timeout-minutes: 15\n    if: failure()", ""),
        ("publish", "if: github.ref == 'refs/heads/main'", "if: '!cancelled()'", "condition"),
        ("publish", "branches: [main]", "branches: [gh-pages]", "must run on main"),
        ("ci", "    name: macOS", "    name: macOS\n    if: false", "a part of ci"),
        ("ci", f"        run: {BROWSER}\n      - run:", "        run:", "a part of ci"),
        ("ci", "  push:\n    branches: [main]\n", "", "and on main"),
        ("ci", "  pull_request:", "  pull_request: {branches: [x]}", "every pull request"),
    ],
)
def test_planted_gap_before_publishing_is_found(name, old, new, gap):
    texts = dict(TEXTS)
    assert old in texts[name]
    texts[name] = texts[name].replace(old, new)
    found = gaps(texts["publish"], texts["ci"])
    assert any(gap in line for line in found), found


def test_the_published_site_knows_its_address():
    build = jobs(TEXTS["publish"])["build"]["steps"]
    ids = {step.get("id"): step.get("uses", "") for step in build}
    assert ids["pages"].startswith("actions/configure-pages@")
    (made,) = [step for step in build if step.get("run", "").startswith("make pdf")]
    assert made["env"] == {"SITE_URL": "${{ steps.pages.outputs.base_url }}"}


def test_a_pull_request_gets_the_site_and_the_list_of_changed_pages():
    site = jobs(TEXTS["ci"])["site"]
    lines = commands(site)
    assert lines.index("make verify") > lines.index("make book")
    upload = site["steps"][-1]
    assert upload["uses"].startswith("actions/upload-artifact@")
    assert upload["with"]["path"].split() == ["_build/html", "_build/changes.md"]
    assert upload["with"]["if-no-files-found"] == "error"
    # the parent that the older site is built from must have been fetched
    assert site["steps"][0]["with"]["fetch-depth"] == 2 and "HEAD^1" in " ".join(lines)


def weekly(text: str) -> list[str]:
    """Return the ways in which a failure could go unseen for weeks, one line each."""
    found = []
    work = jobs(text)
    started = dict(triggers(text))
    cron = "".join(time["cron"] for time in started.pop("schedule", []))
    parts = re.fullmatch(r"(\d+) (\d+) \* \* ([0-7])", cron)
    if not parts or int(parts[1]) > 59 or int(parts[2]) > 23:
        found.append(f"`{cron}` is no time once a week")
    if started != {"workflow_dispatch": None}:
        found.append("must run by the clock, and by hand")
    if commands(work["cold"]) != ["make book", "make test TORCH=cpu"]:
        found.append("the run from nothing is not what the README says")
    if "cache" in str(work["cold"]["steps"]):
        found.append("the run from nothing takes a cache")
    if commands(work["world"]) != ['make "$VERB" TORCH=cpu']:
        found.append("the commands of the matrix are not run")
    # A green run by hand on another branch says nothing of main, and must not close its issue.
    if skips(text) != {"report": f"${{{{ !cancelled() && github.ref == 'refs/heads/{BRANCH}' }}}}"}:
        found.append("a part runs only under a condition, or the report under another")
    if set(work["report"].get("needs", [])) != set(work) - {"report"}:
        found.append("the report does not wait for all other jobs")
    steps = [step.get("run") or step["uses"].partition("@")[0] for step in work["report"]["steps"]]
    if steps != ["actions/checkout", "python3 tools/scheduled_issue.py"]:
        found.append("the report must check out, and run its tool")
    return found


def test_the_weekly_run_does_what_is_too_long_or_comes_from_outside():
    assert weekly(TEXTS["scheduled"]) == []


@pytest.mark.parametrize(
    "old, new, gap",
    [
        ('"17 4 * * 1"', '"17 44 * * 1"', "no time once a week"),
        ('"17 4 * * 1"', '"77 4 * * 1"', "no time once a week"),
        ('"17 4 * * 1"', '"17 4 1 1 *"', "no time once a week"),
        ("  workflow_dispatch:\n", "", "and by hand"),
        ("- run: make book", "- if: false\n        run: make book", "under a condition"),
        ("    name: From", "    if: false\n    name: From", "under a condition"),
        (" && github.ref == 'refs/heads/main'", "", "under a condition"),
        ("!cancelled() && ", "", "under a condition"),
        ("needs: [cold, world]", "needs: [cold]", "does not wait"),
        ("- run: python3 tools/scheduled_issue.py", "- run: make audit", "run its tool"),
        ("- uses: actions/checkout", "- uses: actions/cache", "must check out"),
        ("- run: make book", "- run: make help", "not what the README says"),
        ('make "$VERB"', "make help", "are not run"),
        ('"3.11"', '"3.11"\n          cache: pip', "takes a cache"),
    ],
)
def test_planted_gap_in_the_weekly_run_is_found(old, new, gap):
    assert old in TEXTS["scheduled"]
    found = weekly(TEXTS["scheduled"].replace(old, new))
    assert any(gap in line for line in found), found


def test_ci_run_calls_make_test_and_nothing_else():
    lines = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    assert lines == [
        "#!/usr/bin/env bash",
        "set -euo pipefail",
        'cd "$(dirname "$0")/.."',
        "make test",
    ]


# What the workflows rest on, literally: with one word more, `make test` runs half of the tests.
RECIPES = {
    "test": [
        "@$(FULL) tools/browser.py",
        '@echo "Running every test; this takes some minutes ..."',
        "@$(FULL) -m pytest -n 2 --dist loadgroup -v",
    ],
    "verify": ["@$(BOOK) tools/check_site.py"],
    "pdf": ["@$(FULL) tools/make_pdf.py"],
    "book": ["@$(BOOK) tools/build_book.py"],
    "book-environment": ["@$(PYTHON) tools/environment.py book"],
    "full-environment": ["@$(PYTHON) tools/environment.py full"],
}
VARIABLES = [
    "PYTHON ?= python3",
    "TORCH ?=",
    "LESSON ?=",
    "OLD ?=",
    "export TORCH",
    "export OMP_NUM_THREADS = 1",
    "BOOK = .venv/book/bin/python",
    "FULL = .venv/full/bin/python",
    ".DEFAULT_GOAL := help",
]
PYTEST = {
    "testpaths": "tests lessons",
    "addopts": "--nbval --nbval-current-env --nbval-cell-timeout=300 "
    "--nbval-sanitize-with=tests/nbval_sanitize.cfg --strict-markers -ra",
}


def weakened(makefile: str, pytest_ini: str) -> list[str]:
    """Return what makes the commands do less, or not fail, than the workflows take for granted."""
    found, recipes, others, verb = [], {}, [], None
    for line in makefile.splitlines():
        rule = re.match(r"([a-z-]+):(?!=)", line)
        if rule:
            verb = rule[1]
            if verb in recipes:
                found.append(f"{verb}: has two rules")
            recipes[verb] = []
        elif line.startswith("\t"):
            recipes[verb].append(line.strip())
        elif line and not line.startswith(("#", ".PHONY:")):
            others.append(line)
    for verb, lines in RECIPES.items():
        if recipes.get(verb) != lines:
            found.append(f"{verb}: must run {lines}")
    for verb, lines in recipes.items():
        for line in lines:
            if line.lstrip("@+").startswith("-") or ("|" in line and verb != "help"):
                found.append(f"{verb}: `{line}` hides a failure")
    if others != VARIABLES:
        found.append(f"besides rules the Makefile must hold {VARIABLES}")
    ini = configparser.ConfigParser(interpolation=None)
    ini.read_string(pytest_ini)
    options = dict(ini["pytest"])
    options.pop("markers", None)
    if options != PYTEST:
        found.append(f"pytest.ini must hold {PYTEST}")
    return found


def test_the_commands_do_what_the_workflows_rest_on():
    assert weakened(MAKEFILE, PYTEST_INI) == []


@pytest.mark.parametrize(
    "old, new, gap",
    [
        ("loadgroup -v", 'loadgroup -v -m "not slow"', "test: must run"),
        ("loadgroup -v", "loadgroup -v | tail -n 50", "test: must run"),
        ("\t@$(FULL) tools/browser.py\n", "", "test: must run"),
        ("\t@$(BOOK) tools/check_site.py", "\t-@$(BOOK) tools/check_site.py", "verify: must run"),
        ("\t@$(BOOK) tools/check_site.py", "\t@-$(BOOK) tools/check_site.py", "verify: must run"),
        ("\t@$(FULL) tools/audit.py", "\t-@$(FULL) tools/audit.py", "hides a failure"),
        ("\t@$(FULL) tools/audit.py", "\t@-$(FULL) tools/audit.py", "hides a failure"),
        ("tools/check_links.py", "tools/check_links.py || true", "hides a failure"),
        ("export TORCH\n", "export TORCH\nexport PYTEST_ADDOPTS = -x\n", "the Makefile must hold"),
        ("export TORCH\n", "export TORCH\n.IGNORE:\n", "the Makefile must hold"),
        ("export TORCH\n", "export TORCH\nMAKEFLAGS += -i\n", "the Makefile must hold"),
        ("\nclean:", "\ntest:\n\t@true\nclean:", "test: has two rules"),
        ("testpaths = tests lessons", "testpaths = tests", "pytest.ini must hold"),
        ("addopts = --nbval ", "addopts = ", "pytest.ini must hold"),
        ("-ra\n", "-ra --maxfail=0 --deselect tests\n", "pytest.ini must hold"),
        ("[pytest]\n", "[pytest]\npython_files = test_a*.py\n", "pytest.ini must hold"),
    ],
)
def test_planted_weakening_of_a_command_is_found(old, new, gap):
    assert (old in MAKEFILE) != (old in PYTEST_INI)
    found = weakened(MAKEFILE.replace(old, new), PYTEST_INI.replace(old, new))
    assert any(gap in line for line in found), found


def run(*command: str | Path) -> subprocess.CompletedProcess:
    """Run a command, and return what it said."""
    return subprocess.run(command, capture_output=True, text=True)


def schema(*paths: Path) -> subprocess.CompletedProcess:
    """Hold workflows to the schema that check-jsonschema carries; no network is asked."""
    tool = [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
    return run(*tool, "vendor.github-workflows", *paths)


def zizmor(folder: Path) -> subprocess.CompletedProcess:
    """Have zizmor look at workflows, strictly, and ask no network."""
    tool = Path(sysconfig.get_path("scripts")) / "zizmor"
    return run(tool, "--offline", "--pedantic", "--strict-collection", "--no-progress", folder)


@pytest.fixture
def planted(tmp_path):
    """A copy of .github, and a function that changes a text in one of its workflows."""
    copy = Path(shutil.copytree(ROOT / ".github", tmp_path / ".github"))

    def plant(name: str, old: str, new: str) -> Path:
        path = copy / f"workflows/{name}.yml"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        return path

    return plant


def test_workflows_keep_to_the_schema():
    done = schema(*FILES.values())
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "old, new",
    [
        ("runs-on:", "run-on:"),
        ("timeout-minutes: 5\n", "timeout-minutes: soon\n"),
        ("        with:\n          persist-credentials: false\n", "        withh: {}\n"),
    ],
)
def test_planted_slip_is_seen_by_the_schema(planted, old, new):
    assert schema(planted("ci", old, new)).returncode == 1


def test_zizmor_finds_nothing():
    done = zizmor(ROOT / ".github")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No findings to report" in done.stdout
    assert "zizmor: ignore" not in "".join(TEXTS.values())


@pytest.mark.parametrize(
    "old, new, weakness",
    [
        ("make verify", "echo ${{ github.event.pull_request.title }}", "template-injection"),
        ("permissions:\n  contents: read", "permissions: write-all", "excessive-permissions"),
        (CHECKOUT, "@v7", "unpinned-uses"),
        ("  pull_request:", "  pull_request_target:", "dangerous-triggers"),
    ],
)
def test_planted_weak_spot_is_seen_by_zizmor(planted, old, new, weakness):
    done = zizmor(planted("ci", old, new).parent.parent)
    assert done.returncode != 0 and weakness in done.stdout
