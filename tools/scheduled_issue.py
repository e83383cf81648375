"""Tell a failed scheduled run in one issue: open it, say what failed, close it when all is well.

    python tools/scheduled_issue.py

The last job of .github/workflows/scheduled.yml runs this, with nothing installed but GitHub's own
command `gh`. Nobody watches a weekly run; an issue is seen. It is known by its label, and there is
never a second one: the next failed run adds a comment. GitHub switches issues off in a fork. Then
none can be opened: the job says so, and fails if another did.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable

LABEL = "scheduled-run"
TITLE = "The weekly run fails"
OFF = (
    "issues are switched off in this repository; to be told in one, "
    "switch them on under Settings, General, Features"
)
INTRODUCTION = """\
Once a week the course is checked against the world: newest versions, links, all planted faults.
This issue was opened because that failed, gets a comment each time it fails again, and is closed
by the first run that passes.

"""


def gh(*arguments: str) -> str:
    """Run GitHub's command, and return what it prints.

    Errors: `subprocess.CalledProcessError` when it fails; what it says is not kept back.
    """
    done = subprocess.run(["gh", *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def failed_jobs(jobs: list[dict]) -> list[dict]:
    """Return the finished jobs that did not pass, those that were skipped or timed out included.

    The job that runs this is not finished.
    Errors: `ValueError` when no job is finished: that no job failed would then mean nothing.
    """
    finished = [job for job in jobs if job["status"] == "completed"]
    if not finished:
        raise ValueError("no job of this run is finished, so nothing is known about it")
    return [job for job in finished if job["conclusion"] != "success"]


def in_words(failed: list[dict], address: str) -> str:
    """Return what failed as Markdown, with links to the logs and the run."""
    lines = [f"- [{job['name']}]({job['url']}): {job['conclusion']}" for job in failed]
    return "\n".join([*lines, "", f"[The whole run]({address})"])


def report(run: str, address: str, ask: Callable[..., str] = gh) -> str:
    """Open, continue or close the issue, as the run went; return in words what was done.

    Arguments: the run's number, its address, and what runs `gh`.
    Errors: those of `gh` and `failed_jobs`; `ValueError` when there is a failure to tell and the
    repository has its issues switched off.
    """
    failed = failed_jobs(json.loads(ask("run", "view", run, "--json", "jobs"))["jobs"])
    settings = json.loads(ask("repo", "view", "--json", "hasIssuesEnabled"))
    if not settings["hasIssuesEnabled"]:
        if failed:
            names = ", ".join(job["name"] for job in failed)
            raise ValueError(f"{len(failed)} job(s) failed ({names}), and {OFF}")
        return f"passed; nothing to report, and {OFF}"
    listed = ask("issue", "list", "--state", "open", "--label", LABEL, "--json", "number")
    issues = [str(number) for number in sorted(issue["number"] for issue in json.loads(listed))]
    if not failed:
        for issue in issues:
            ask("issue", "close", issue, "--comment", f"[This run]({address}) passes.")
        return f"passed; closed: {', '.join(issues) or 'none was open'}"
    words = in_words(failed, address)
    if issues:
        ask("issue", "comment", issues[0], "--body", f"It failed again.\n\n{words}")
        return f"{len(failed)} job(s) failed; said so in issue {issues[0]}"
    ask("label", "create", LABEL, "--force", "--description", "Opened and closed by the weekly run")
    body = INTRODUCTION + words
    ask("issue", "create", "--title", TITLE, "--label", LABEL, "--body", body)
    return f"{len(failed)} job(s) failed; opened an issue"


def main() -> int:
    """Report the run that the environment names; return the exit code."""
    variables = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")
    missing = [name for name in variables if not os.environ.get(name)]
    if missing:
        print(f"error: {', '.join(missing)}: not set; a workflow sets these", file=sys.stderr)
        return 1
    server, repository, run = (os.environ[name] for name in variables)
    try:
        print(report(run, f"{server}/{repository}/actions/runs/{run}"))
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        print(f"error: the result of this run could not be reported: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
