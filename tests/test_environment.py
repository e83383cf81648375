"""tools/environment.py leaves an environment whole, whatever state it finds it in."""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import environment
import pytest
from helpers_book import ROOT, copy_repository, run_tool


def write_wheel(folder: Path, package: str, version: str, more: str = "") -> None:
    """Write an installable package of one empty module, with more lines of metadata."""
    info = f"{package}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n{more}"
    wheel = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(folder / f"{package}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{package}.py", "")
        archive.writestr(f"{info}/METADATA", metadata)
        archive.writestr(f"{info}/WHEEL", wheel)
        archive.writestr(f"{info}/RECORD", f"{package}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n")


def lock(root: Path) -> None:
    """Write the locks of a project as `make pins` does: versions, and hashes of the files."""
    for name, files in [
        ("book", ["requirements-book.txt"]),
        ("full", ["requirements-book.txt", "requirements.txt"]),
        ("assets", ["requirements-assets.txt"]),
    ]:
        lines = []
        for package, version in environment.pins(*(root / file for file in files)).items():
            wheel = root.parent / f"wheels/{package}-{version}-py3-none-any.whl"
            digest = hashlib.sha256(wheel.read_bytes() if wheel.exists() else b"").hexdigest()
            lines.append(f"{package}=={version} \\\n    --hash=sha256:{digest}\n")
        (root / environment.LOCKED[name]).write_text("".join(lines))


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """A project whose requirements are tiny packages from a folder: pip asks no network."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for package, version in [("alpha", "1.0"), ("alpha", "2.0"), ("beta", "1.0")]:
        write_wheel(wheels, package, version)
    write_wheel(wheels, "gamma", "1.0", "Requires-Dist: not-to-be-had\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.delenv("TORCH", raising=False)
    root = tmp_path / "project"
    (root / "tools").mkdir(parents=True)
    shutil.copy2(ROOT / "tools/environment.py", root / "tools")
    (root / "requirements-book.txt").write_text("alpha==1.0\n")
    (root / "requirements.txt").write_text("-r requirements-book.txt\nbeta==1.0\n")
    (root / "requirements-assets.txt").write_text("gamma==1.0\n")
    (root / "constraints.txt").write_text("")
    lock(root)
    return root


def has(root: Path, name: str, package: str) -> str | None:
    """Return the version of a package in an environment, asking the environment itself."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    python = environment.python_of(root / ".venv" / name)
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return done.stdout.strip() or None


@pytest.mark.slow
def test_made_once_then_left_alone_until_something_changed(project):
    first = run_tool(project, "environment.py", "book")
    assert first.returncode == 0, first.stderr
    assert "Making .venv/book" in first.stdout and has(project, "book", "alpha") == "1.0"
    # Taken for its files only, so what it needs to run is not asked for.
    assert has(project, "book", "gamma") == "1.0"

    stamp = project / ".venv/book" / environment.STAMP
    before = stamp.stat().st_mtime_ns
    again = run_tool(project, "environment.py", "book")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert stamp.stat().st_mtime_ns == before

    (project / "requirements-book.txt").write_text("alpha==2.0\n")
    stale = run_tool(project, "environment.py", "book")
    assert stale.returncode == 1
    assert "alpha should be 2.0, and is 1.0" in stale.stderr
    assert "run `make pins`, which renews locked-book.txt" in stale.stderr
    lock(project)
    changed = run_tool(project, "environment.py", "book")
    assert "it was never finished" in changed.stdout and has(project, "book", "alpha") == "2.0"


@pytest.mark.slow
def test_package_removed_or_changed_by_hand_is_noticed(project):
    environment.prepare("full", project)
    assert environment.complaint("full", project) is None
    beta = next((project / ".venv/full").rglob("beta-1.0.dist-info"))
    beta.rename(beta.with_name("beta-1.1.dist-info"))
    assert environment.complaint("full", project) == "beta 1.0 was removed or changed"
    shutil.rmtree(beta.with_name("beta-1.1.dist-info"))
    assert environment.complaint("full", project) == "beta 1.0 was removed or changed"


@pytest.mark.slow
def test_interrupted_installation_is_repaired(project):
    def interrupted(command, **options):
        """Make the environment, then stop as Ctrl-C in the middle of pip's work would."""
        if "pip" in command:
            raise KeyboardInterrupt
        return subprocess.run(command, **options)

    with pytest.raises(KeyboardInterrupt):
        environment.make("book", project, run=interrupted)
    assert (project / ".venv/book").is_dir()
    assert environment.complaint("book", project) == "it was never finished"
    environment.prepare("book", project)
    assert environment.complaint("book", project) is None
    assert has(project, "book", "alpha") == "1.0"


@pytest.mark.slow
def test_interrupted_repair_does_not_leave_the_old_stamp(project):
    (project / ".venv/book").mkdir(parents=True)
    (project / ".venv/book" / environment.STAMP).write_text("{}")

    def interrupted(command, **options):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        environment.make("book", project, run=interrupted)
    assert environment.complaint("book", project) is not None


@pytest.mark.slow
def test_moved_folder_and_broken_stamp_are_noticed(project, tmp_path):
    environment.prepare("book", project)
    moved = tmp_path / "moved"
    project.rename(moved)
    assert "the folder changed" in environment.complaint("book", moved)
    (moved / ".venv/book" / environment.STAMP).write_text("{half a st")
    assert environment.complaint("book", moved) == "it was never finished"


@pytest.mark.slow
def test_failed_installation_says_what_to_do_and_is_not_trusted(project):
    (project / "requirements-book.txt").write_text("alpha==9.9\n")
    lock(project)
    failed = run_tool(project, "environment.py", "book")
    assert failed.returncode == 1
    assert "alpha==9.9" in failed.stderr, "what pip said"
    assert "error: could not install locked-book.txt" in failed.stderr
    assert environment.complaint("book", project) == "it was never finished"


@pytest.mark.slow
@pytest.mark.parametrize("package, lock_of", [("alpha", "book"), ("gamma", "assets")])
def test_planted_other_file_of_the_same_version_is_refused(project, package, lock_of):
    wheel = project.parent / f"wheels/{package}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("planted.py", "")
    failed = run_tool(project, "environment.py", "book")
    assert failed.returncode == 1
    assert "DO NOT MATCH THE HASHES" in failed.stderr
    assert f"could not install locked-{lock_of}.txt" in failed.stderr


@pytest.mark.slow
def test_planted_requirement_that_no_lock_has_is_refused(project):
    write_wheel(project.parent / "wheels", "delta", "1.0")
    write_wheel(project.parent / "wheels", "beta", "1.0", "Requires-Dist: delta\n")
    (project / "locked-full.txt").write_text((project / "locked-book.txt").read_text())
    failed = run_tool(project, "environment.py", "full")
    assert failed.returncode == 1
    assert "error: beta, delta: not in locked-full.txt; run `make pins`" in failed.stderr


def test_only_torch_and_what_it_brings_may_go_without_a_hash():
    names = ["torch", "triton", "nvidia-nccl-cu13", "cuda-toolkit", "torch-geometric", "numpy"]
    free = [name for name in names if environment.UNLOCKED.fullmatch(name)]
    assert free == ["torch", "triton", "nvidia-nccl-cu13", "cuda-toolkit"]
    present = dict.fromkeys(["pip", "torch", "cuda-x", "evil"], "1.0")
    assert environment.unlocked(present, "full", ROOT) == ["evil"]


class Done:
    """What a command that succeeded returns."""

    returncode = 0


def test_misleading_variables_of_the_reader_are_kept_out(project, monkeypatch):
    given = []

    def note(command, env, **options):
        """Note the variables a command is given, in place of running it."""
        given.append(env)
        (project / ".venv/book").mkdir(parents=True, exist_ok=True)
        return Done

    for variable in ("PIP_TARGET", "PIP_USER", "PYTHONPATH"):
        monkeypatch.setenv(variable, "elsewhere")
    versions = {"alpha": "1.0", "gamma": "1.0"}
    monkeypatch.setattr(environment, "installed", lambda folder: versions)
    environment.make("book", project, run=note)
    assert len(given) == 3
    assert not any("elsewhere" in variables.values() for variables in given)


def test_small_torch_comes_first_and_through_binder(project, monkeypatch):
    commands = []

    def note(command, **options):
        """Note a command in place of running it: the small build may be out of reach."""
        commands.append(command)
        (project / ".venv/full").mkdir(parents=True, exist_ok=True)
        return Done

    versions = {"alpha": "1.0", "beta": "1.0+cpu", "gamma": "1.0"}
    monkeypatch.setattr(environment, "installed", lambda folder: versions)
    environment.make("full", project, "cpu", run=note)
    files = [Path(command[-1]).relative_to(project).as_posix() for command in commands[1:]]
    assert files == [
        "locked-full.txt",
        "binder/requirements.txt",
        "requirements.txt",
        "locked-assets.txt",
    ]
    assert all(str(project / "constraints.txt") in command for command in commands[2:4])
    assert all("--require-hashes" in commands[place] for place in (1, 4))


def test_wish_about_torch_is_checked_and_changes_nothing_in_the_book():
    plain = environment.pip_commands("book", ROOT, "")
    assert environment.pip_commands("book", ROOT, "cpu") == plain
    with pytest.raises(environment.Failure, match="TORCH=gpu is not known"):
        environment.pip_commands("full", ROOT, "gpu")


@pytest.mark.parametrize(
    "trick, message",
    [
        ("sys.modules['ensurepip'] = None", "apt install python3-venv"),
        ("sys.version_info = (3, 10, 4)", "Python 3.11 or newer is needed, and this is 3.10"),
    ],
)
def test_unfit_python_gets_one_clear_line(project, trick, message):
    code = (
        f"import sys, runpy; sys.argv = ['x', 'book']; {trick}; "
        "runpy.run_path({!r}, run_name='__main__')"
    )
    tool = str(project / "tools/environment.py")
    done = subprocess.run([sys.executable, "-c", code.format(tool)], capture_output=True, text=True)
    assert done.returncode == 1
    assert message in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(os.name == "nt", reason="make is not at hand on Windows")
@pytest.mark.slow
def test_fresh_clone_builds_the_book_without_torch(tmp_path):
    """The one slow test here: pip installs all that building needs."""
    root = copy_repository(tmp_path / "clone")
    clean = {
        k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "VIRTUAL_ENV", "MAKE"))
    }
    done = subprocess.run(
        ["make", "book", f"PYTHON={sys.executable}"],
        cwd=root,
        env=clean,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Making .venv/book" in done.stdout
    assert (root / "_build/html/index.html").as_uri() in done.stdout
    assert (root / "_build/html/index.html").is_file()
    assert not {"torch", "jupyterlab", "matplotlib"} & set(
        environment.installed(root / ".venv/book")
    )
