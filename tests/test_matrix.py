"""`make matrix` covers what the README promises, and says what it could not run."""

import os
import sys
from pathlib import Path

import matrix
import pytest
import yaml
from helpers_book import ROOT
from test_requirements import imported

HERE = "%d.%d" % sys.version_info[:2]


def test_the_readme_promises_what_the_matrix_runs():
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    pythons = f"Python {matrix.PYTHONS[0]} to {matrix.PYTHONS[-1]}"
    assert f"{pythons} and torch {matrix.OLDEST_TORCH} to the newest" in text
    assert {python for python, _ in matrix.COMBINATIONS} == set(matrix.PYTHONS)
    torches = {torch for _, torch in matrix.COMBINATIONS}
    oldest, *others = matrix.OLDEST_TORCH, matrix.PINNED_TORCH, matrix.NEWEST_TORCH
    assert torches == {oldest, *others, matrix.BINDER, matrix.COLAB_TORCH}


def test_the_readme_says_what_colab_has_and_since_when():
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    others = matrix.OTHERS[matrix.COLAB_TORCH]
    assert (
        f"its own list of {matrix.COLAB_DATE}, Python {matrix.COLAB_PYTHON}, torch "
        f"{matrix.COLAB_TORCH}, numpy {others['numpy']} and matplotlib {others['matplotlib']}."
    ) in text
    assert (matrix.COLAB_PYTHON, matrix.COLAB_TORCH) in matrix.COMBINATIONS


def test_every_pattern_of_tests_finds_files():
    for pattern in matrix.TESTS:
        assert list(ROOT.glob(pattern)), pattern


def reached(path: Path) -> set[str]:
    """Return the modules that a file imports, and those that modules of ours import for it."""
    folders = ("tests", "tools", "theme/extensions")
    ours = {file.stem: file for folder in folders for file in (ROOT / folder).glob("*.py")}
    found, todo = set(), [path]
    while todo:
        more = imported(todo.pop().read_text(encoding="utf-8")) - found
        found |= more
        todo += [ours[module] for module in more if module in ours]
    return found - set(ours) - sys.stdlib_module_names | found & {"helpers_book"}


def needing_more(patterns) -> dict[str, list[str]]:
    """Return the test files that need what the matrix does not install, and what that is.

    `helpers_book` builds the book, in a process of its own, and so needs all that this needs.
    """
    files = [path for pattern in patterns for path in sorted(ROOT.glob(pattern)) if path.is_file()]
    installed = {"torch", *matrix.PACKAGES}
    needed = {path.name: sorted(reached(path) - installed) for path in files}
    return {name: modules for name, modules in needed.items() if modules}


def test_what_the_matrix_runs_needs_no_more_than_it_installs():
    assert needing_more(matrix.TESTS) == {}


def test_planted_tests_of_the_book_are_found():
    found = needing_more(["tests/test_lesson_*.py"])
    assert found["test_lesson_head.py"] == ["helpers_book"]
    assert found["test_lesson_map.py"] == ["docutils", "helpers_book", "sphinx"]


def test_this_python_is_found():
    assert matrix.find_python(HERE)


def test_a_python_that_is_absent_is_said(capsys, monkeypatch):
    monkeypatch.setattr(matrix, "COMBINATIONS", (("9.9", "1.0"),))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    assert matrix.main([]) == 0
    assert "not run: there is no Python 9.9 here" in capsys.readouterr().out


def test_a_runner_can_get_everything_so_what_is_not_run_there_fails(capsys, monkeypatch):
    monkeypatch.setattr(matrix, "COMBINATIONS", (("9.9", "1.0"),))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert matrix.main([]) == 1
    assert "error: Python 9.9, torch 1.0: not run" in capsys.readouterr().out


def test_the_weekly_run_has_every_python_of_the_matrix():
    text = (ROOT / ".github/workflows/scheduled.yml").read_text(encoding="utf-8")
    work = yaml.safe_load(text)["jobs"]["world"]
    (pythons,) = [s["with"]["python-version"] for s in work["steps"] if "python-version" in str(s)]
    assert set(pythons.split()) == set(matrix.PYTHONS)
    assert "matrix" in work["strategy"]["matrix"]["verb"]


@pytest.mark.parametrize("torch", [matrix.NEWEST_TORCH, matrix.COLAB_TORCH])
def test_what_a_lesson_imports_comes_in_the_versions_of_the_combination(torch):
    ours = matrix.install_commands(matrix.PINNED_TORCH, cpu=False)[1]
    theirs = matrix.install_commands(torch, cpu=False)[1]
    changed = {package.partition("==")[0] for package in set(theirs) - set(ours)}
    assert changed == {"numpy", "matplotlib"} == set(matrix.OTHERS[torch])
    newest = [package for package in theirs if package in ("numpy", "matplotlib")]
    assert len(newest) == (2 if torch == matrix.NEWEST_TORCH else 0)


def test_binders_environment_is_made_from_its_own_list_on_its_own_python():
    first, second = matrix.install_commands(matrix.BINDER, cpu=False)
    assert first == ["install", "-r", str(ROOT / "binder/requirements.txt")]
    assert not any(package.startswith("torch") for package in second)
    runtime = (ROOT / "binder/runtime.txt").read_text(encoding="utf-8").strip()
    pythons = [python for python, torch in matrix.COMBINATIONS if torch == matrix.BINDER]
    assert [f"python-{python}" for python in pythons] == [runtime]


@pytest.mark.slow
def test_an_installation_that_fails_is_said_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(matrix, "install_commands", lambda *_: [["install", "no such name"]])
    problem = matrix.prepare(tmp_path / "env", sys.executable, "1.0", cpu=False)
    assert problem.startswith("not run, cannot be installed here: ")
    assert not (tmp_path / "env").exists()


@pytest.mark.slow
def test_only_whole_environments_are_used_again(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(matrix, "install_commands", lambda *_: calls.append(1) or [])
    folder = tmp_path / "env"
    assert matrix.prepare(folder, sys.executable, "1.0", cpu=False) == ""
    assert matrix.prepare(folder, sys.executable, "1.0", cpu=False) == ""
    assert len(calls) == 1
    (folder / matrix.STAMP).unlink()
    matrix.prepare(folder, sys.executable, "1.0", cpu=False)
    assert len(calls) == 2


def test_size_counts_files_and_folders_however_deep(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c").write_bytes(os.urandom(1_000_000))
    assert 1_000_000 <= matrix.size_on_disk(tmp_path) < 1_100_000


@pytest.mark.parametrize("size, failed", [(1_400_000_000, False), (1_401_000_000, True)])
def test_planted_larger_environment_of_binder_is_said_and_fails(
    size, failed, tmp_path, monkeypatch, capsys
):
    def prepare(folder, *_):
        folder.mkdir(parents=True)
        (folder / matrix.STAMP).write_text(str(size))
        return ""

    monkeypatch.setattr(matrix, "ROOT", tmp_path)
    monkeypatch.setattr(matrix, "prepare", prepare)
    monkeypatch.setattr(matrix, "torch_of", lambda _: "2.13.0+cpu")
    monkeypatch.setattr(matrix, "test", lambda _: ("9 passed", False, ""))
    monkeypatch.setattr(matrix, "COMBINATIONS", ((HERE, matrix.BINDER),))
    assert matrix.main([]) == failed
    said = "9 passed, 1,401 MB on disk over 1,400 MB" if failed else "9 passed, 1,400 MB on disk\n"
    assert said in capsys.readouterr().out
    monkeypatch.setattr(matrix, "COMBINATIONS", ((HERE, "1.0"),))
    assert matrix.main([]) == 0


@pytest.mark.slow
def test_what_only_tests_need_does_not_count(tmp_path, monkeypatch):
    def write(megabytes):
        code = f"import sys; open(sys.argv[1], 'wb').write(bytes({megabytes}_000_000))"
        return [sys.executable, "-c", code, str(tmp_path / f"env/{megabytes}")]

    commands = [write(2), write(30)]
    monkeypatch.setattr(matrix, "install_commands", lambda *_: [[], []])
    run = matrix.subprocess.run

    def install(step, **options):
        return run(commands.pop(0) if "pip" in step else step, **options)

    monkeypatch.setattr(matrix.subprocess, "run", install)
    assert matrix.prepare(tmp_path / "env", sys.executable, matrix.BINDER, cpu=False) == ""
    size = matrix.size_on_disk(tmp_path / "env")
    noted = int((tmp_path / "env" / matrix.STAMP).read_text())
    assert commands == [] and 30_000_000 <= size - noted < 31_000_000


def test_torch_comes_first_and_from_the_small_index_if_wished():
    first, second = matrix.install_commands("2.6.0", cpu=True)
    assert first[0] == "install" and first[1] == "--extra-index-url" and first[-1] == "torch==2.6.0"
    assert not any(package.startswith("torch") for package in second)
    assert matrix.install_commands(matrix.NEWEST_TORCH, cpu=False)[0] == ["install", "torch"]


@pytest.mark.parametrize("failed, code", [(True, 1), (False, 0)])
def test_a_failed_test_is_shown_and_fails(monkeypatch, capsys, failed, code):
    outcome = matrix.Outcome("3.11", "2.6.0", "1 failed", 1.0, failed, "the log")
    monkeypatch.setattr(matrix, "try_combination", lambda *_: outcome)
    monkeypatch.setattr(matrix, "COMBINATIONS", (("3.11", "2.6.0"),))
    assert matrix.main([]) == code
    assert ("the log" in capsys.readouterr().out) is failed


def test_an_unknown_version_is_refused():
    with pytest.raises(SystemExit, match="nothing to run for 4.5; there are: 2"):
        matrix.main(["4.5"])
