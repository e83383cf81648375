"""A failed weekly run is told in exactly one issue, which a passing one closes."""

import json
import os
import subprocess
import sys

import pytest
import scheduled_issue
from helpers_book import ROOT

ADDRESS = "https://github.com/o/r/actions/runs/7"


class GitHub:
    """Keeps issues as GitHub does, and understands the commands that the tool uses."""

    def __init__(self, *conclusions: str, has_issues: bool = True):
        self.conclusions, self.has_issues = conclusions, has_issues
        self.issues, self.labels = [], set()

    def __call__(self, *arguments: str) -> str:
        """Do what `gh` would do; anything unknown is an error."""
        what, verb, *rest = [word for word in arguments if word != "--force"]
        subject = rest.pop(0) if len(rest) % 2 else None
        options = {key.removeprefix("--"): value for key, value in zip(rest[::2], rest[1::2])}
        if subject and subject.isdigit():
            subject = int(subject)
        if what == "issue" and not self.has_issues:
            said = "the 'o/r' repository has disabled issues"
            raise subprocess.CalledProcessError(1, ["gh", *arguments], stderr=said)
        return getattr(self, f"{what}_{verb}")(subject, **options)

    def repo_view(self, _, json):
        """Say whether the repository has issues at all; a fork begins without."""
        assert json == "hasIssuesEnabled"
        return dumps({"hasIssuesEnabled": self.has_issues})

    def run_view(self, number, json):
        """Return the jobs of the run, and the one that asks."""
        assert (number, json) == (7, "jobs")
        jobs = [
            {"name": f"job {i}", "status": "completed", "conclusion": c, "url": f"{ADDRESS}/{i}"}
            for i, c in enumerate(self.conclusions)
        ]
        jobs.append({"name": "report", "status": "in_progress", "conclusion": "", "url": ""})
        return dumps({"jobs": jobs})

    def label_create(self, name, description):
        """Make a label, or change it."""
        self.labels.add(name)
        return ""

    def issue_list(self, _, state, label, json):
        """List the open issues with a label, newest first."""
        assert state == "open"
        found = [i for i in self.issues if i["open"] and i["label"] == label]
        return dumps([{"number": i["number"]} for i in reversed(found)])

    def issue_create(self, _, title, label, body):
        """Open an issue; GitHub refuses a label that it does not know."""
        assert label in self.labels
        number = len(self.issues) + 1
        self.issues.append(
            {"number": number, "title": title, "label": label, "open": True, "said": [body]}
        )
        return ""

    def issue_comment(self, number, body):
        """Add a comment."""
        self.issues[number - 1]["said"].append(body)
        return ""

    def issue_close(self, number, comment):
        """Close an issue with a comment."""
        self.issues[number - 1]["said"].append(comment)
        self.issues[number - 1]["open"] = False
        return ""


dumps = json.dumps


def report(github: GitHub, *conclusions: str) -> str:
    """Let a run end with these conclusions of its jobs, and report it."""
    github.conclusions = conclusions
    return scheduled_issue.report("7", ADDRESS, github)


def test_weeks_of_failing_and_passing_make_one_issue_each_time():
    github = GitHub()
    assert "none was open" in report(github, "success", "success")
    assert github.issues == []
    assert "opened an issue" in report(github, "success", "failure")
    assert "said so in issue 1" in report(github, "failure", "failure")
    assert [issue["open"] for issue in github.issues] == [True]
    assert report(github, "success", "success") == "passed; closed: 1"
    assert [issue["open"] for issue in github.issues] == [False]
    assert len(github.issues[0]["said"]) == 3
    report(github, "failure")
    assert [issue["open"] for issue in github.issues] == [False, True]


def test_the_issue_names_the_jobs_that_failed_and_links_to_their_logs():
    github = GitHub()
    report(github, "success", "failure")
    (issue,) = github.issues
    assert issue["title"] == "The weekly run fails"
    assert f"- [job 1]({ADDRESS}/1): failure" in issue["said"][0]
    assert "job 0" not in issue["said"][0] and f"]({ADDRESS})" in issue["said"][0]


@pytest.mark.parametrize("conclusion", ["failure", "cancelled", "timed_out", "skipped", "", None])
def test_whatever_is_no_success_keeps_the_issue_open(conclusion):
    github = GitHub()
    report(github, "success", conclusion)
    report(github, "success", conclusion)
    assert [issue["open"] for issue in github.issues] == [True]


def test_the_oldest_of_several_goes_on_and_all_are_closed():
    github = GitHub()
    github.labels.add(scheduled_issue.LABEL)
    for _ in range(11):
        github.issue_create(None, "t", scheduled_issue.LABEL, "opened twice by accident")
    github.issues[0]["open"] = False
    assert "said so in issue 2" in report(github, "failure")
    report(github, "success")
    assert not any(issue["open"] for issue in github.issues)


def test_issues_of_others_are_left_alone():
    github = GitHub()
    github.issues.append(
        {"number": 1, "title": scheduled_issue.TITLE, "label": "", "open": True, "said": []}
    )
    report(github, "success")
    report(github, "failure")
    report(github, "success")
    assert [issue["open"] for issue in github.issues] == [True, False]
    assert github.issues[0]["said"] == []


def test_a_run_without_finished_jobs_is_an_error_and_closes_nothing():
    github = GitHub()
    report(github, "failure")
    with pytest.raises(ValueError, match="no job of this run is finished"):
        report(github)
    assert github.issues[0]["open"]


def test_without_issues_a_failure_is_an_error_in_words_and_a_success_is_none():
    github = GitHub(has_issues=False)
    assert report(github, "success", "success").startswith("passed; nothing to report, and issues")
    with pytest.raises(
        ValueError, match=r"1 job\(s\) failed \(job 1\), and issues are switched off"
    ):
        report(github, "success", "failure")
    assert github.issues == [] and github.labels == set()


FAKE = """#!{python}
import sys
asked = " ".join(sys.argv[1:])
if asked == "run view 7 --json jobs":
    print('{{"jobs": [{{"name": "world", "status": "completed", "conclusion": "{conclusion}"}}]}}')
elif asked == "repo view --json hasIssuesEnabled":
    print('{{"hasIssuesEnabled": false}}')
else:
    sys.exit("the 'o/r' repository has disabled issues")
"""


@pytest.mark.skipif(os.name == "nt", reason="the fake `gh` is a script, and the job runs on Linux")
@pytest.mark.parametrize("conclusion, code", [("success", 0), ("failure", 1)])
def test_in_a_fork_without_issues_the_job_fails_only_if_another_did(tmp_path, conclusion, code):
    fake = tmp_path / "gh"
    fake.write_text(FAKE.format(python=sys.executable, conclusion=conclusion), encoding="utf-8")
    fake.chmod(0o755)
    set_ = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "o/r"}
    done = run(tmp_path, GITHUB_RUN_ID="7", **set_)
    assert done.returncode == code, done.stderr
    assert "switch them on under Settings" in (done.stderr if code else done.stdout)
    assert ("1 job(s) failed (world)" in done.stderr) == bool(code)


def run(folder, **variables: str) -> subprocess.CompletedProcess:
    """Run the tool as the workflow does, with whatever `gh` a folder holds."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "GH_"))}
    return subprocess.run(
        [sys.executable, ROOT / "tools/scheduled_issue.py"],
        env={**clean, "PATH": str(folder), **variables},
        capture_output=True,
        text=True,
    )


def test_without_the_variables_or_the_command_it_fails_and_says_why(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 1 and "GITHUB_RUN_ID: not set" in done.stderr
    set_ = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "o/r"}
    done = run(tmp_path, GITHUB_RUN_ID="7", **set_)
    assert done.returncode == 1 and "could not be reported" in done.stderr
