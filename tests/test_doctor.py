"""`make doctor` says in words each thing that is wrong with an environment, and how to mend it."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from types import SimpleNamespace

import doctor
import environment
import matrix
import pytest
import yaml
from helpers_book import ROOT, copy_repository, run_tool, snapshot

TOOL = ROOT / "tools/doctor.py"
CHROMIUM = "/usr/bin/a-chromium"
VERSIONS = environment.pins(*environment.requirement_files("full", ROOT))
BOOK = {"jupyter-book": VERSIONS["jupyter-book"]}
FULL = BOOK | {n: VERSIONS[n] for n in ("torch", "numpy", "matplotlib", "jupyterlab")}
GB = 10**9


def add_packages(folder: Path, versions: dict[str, str]) -> Path:
    """Make an environment's folder look as if it had these packages; return where they are."""
    where = "Lib/site-packages" if os.name == "nt" else "lib/python3.11/site-packages"
    for name, version in versions.items():
        info = folder / where / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(metadata)
    return folder / where


def change(folder: Path, name: str, version: str | None) -> None:
    """Remove a package from such an environment, or put another version in its place."""
    for info in folder.rglob(f"{name.replace('-', '_')}-*.dist-info"):
        shutil.rmtree(info)
    if version:
        add_packages(folder, {name: version})


def stamp(root: Path, name: str) -> None:
    """Stamp an environment as whole, as it is now."""
    folder = root / ".venv" / name
    whole = {
        "fingerprint": environment.fingerprint(name, root),
        "installed": environment.installed(folder),
    }
    (folder / environment.STAMP).write_text(json.dumps(whole))


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """A project whose environments look whole, on a machine that has all there is to have."""
    root = tmp_path / "project"
    (root / "binder").mkdir(parents=True)
    for name in [*ROOT.glob("requirements*.txt"), *ROOT.glob("locked-*.txt")]:
        shutil.copy2(name, root)
    shutil.copy2(ROOT / "constraints.txt", root)
    for name, versions in (("book", BOOK), ("full", FULL)):
        folder = root / ".venv" / name
        add_packages(folder, versions)
        python = environment.python_of(folder)
        python.parent.mkdir(parents=True)
        python.touch()
        stamp(root, name)
    for variable in ("TORCH", "CHROMIUM", "VIRTUAL_ENV", "CONDA_PREFIX", *environment.MISLEADING):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    posix = SimpleNamespace(name="posix", environ=os.environ, pathsep=os.pathsep)
    monkeypatch.setattr(doctor, "os", posix)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(doctor.browser, "find", lambda: CHROMIUM)
    monkeypatch.setattr(doctor, "answer", lambda *command: f"{Path(command[0]).name} 1")
    monkeypatch.setattr(doctor, "has_card", lambda: False)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: SimpleNamespace(free=100 * GB))
    run_in(monkeypatch, tmp_path / "system", {}, own=False)
    return root


def run_in(monkeypatch, prefix: Path, versions: dict[str, str], own: bool = True) -> Path:
    """Let the doctor believe that it runs in an environment, the reader's own or the system's."""
    pretended = SimpleNamespace(
        prefix=str(prefix),
        base_prefix="/usr" if own else str(prefix),
        path=[str(add_packages(prefix, versions))],
        executable=str(prefix / "bin/python"),
        platform="linux",
        version_info=(3, 12, 1),
    )
    monkeypatch.setattr(doctor, "sys", pretended)
    return prefix


def said(capsys, root: Path) -> tuple[int, str]:
    """Return the doctor's exit code, and its words with every line break made a blank."""
    code = doctor.main(root)
    return code, " ".join(capsys.readouterr().out.split())


def test_a_healthy_project_passes_and_its_versions_are_printed(project, capsys):
    code, words = said(capsys, project)
    assert code == 0 and words.endswith("Nothing is wrong.")
    assert "Wrong" not in words and "Note" not in words
    for name, version in FULL.items():
        assert f"{name} {version}" in words
    assert "%d.%d.%d" % sys.version_info[:3] in words and "100.0 GB free" in words
    assert f"{CHROMIUM}, a-chromium 1" in words


def test_environments_that_commands_make_by_themselves_are_no_fault_but_are_said(project, capsys):
    shutil.rmtree(project / ".venv")
    code, words = said(capsys, project)
    assert code == 0 and words.endswith("Nothing is wrong.")
    assert words.count("not made yet") == 2
    assert "Note: .venv/full is made by the first command that needs it" in words
    assert "make full-environment TORCH=cpu" in words


def plant_cuda_without_label(root: Path, version: str = "2.13.0+cu130") -> None:
    """Leave torch as PyPI has it for Linux: only a file of its own names the build."""
    (site,) = environment.site_packages(root / ".venv/full")
    (site / "torch").mkdir()
    text = f"__version__ = '{version}'\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n"
    (site / "torch/version.py").write_text(text)


AGAIN = "Mend it: make full-environment TORCH=cpu"
AFRESH = "Mend it: remove the folder .venv/full, then: make full-environment TORCH=cpu"
PLANTED = {
    "torch absent": (
        lambda root: change(root / ".venv/full", "torch", None),
        "torch 2.13.0 was removed or changed. It lacks torch. " + AGAIN,
    ),
    "torch too old": (
        lambda root: change(root / ".venv/full", "torch", "2.5.1"),
        "It has torch 2.5.1, and the lessons need 2.6.0 or newer. " + AGAIN,
    ),
    "torch of another version": (
        lambda root: change(root / ".venv/full", "torch", "2.11.0"),
        ".venv/full cannot be used as it is: torch 2.13.0 was removed or changed. " + AGAIN,
    ),
    "CUDA by its label": (
        lambda root: (
            change(root / ".venv/full", "torch", "2.13.0+cu130"),
            stamp(root, "full"),
        ),
        "the CUDA build of torch (2.13.0+cu130), and no NVIDIA card was found here",
    ),
    "CUDA without a label": (
        plant_cuda_without_label,
        ".venv/full is not as it should be. It has the CUDA build of torch (2.13.0+cu130), and no "
        "NVIDIA card was found here: gigabytes for nothing, for the lessons compute on the "
        "processor. " + AFRESH,
    ),
    "CUDA as conda builds it": (
        lambda root: plant_cuda_without_label(root, "2.13.0"),
        "It has the CUDA build of torch (2.13.0), and no NVIDIA card was found here",
    ),
    "jupyter-book 2": (
        lambda root: change(root / ".venv/book", "jupyter-book", "2.0.1"),
        "It has jupyter-book 2.0.1, which does not read _config.yml and makes an empty site; "
        "the book is built by jupyter-book 1. Mend it: make book-environment",
    ),
    "never finished": (
        lambda root: (root / ".venv/full" / environment.STAMP).unlink(),
        ".venv/full cannot be used as it is: it was never finished. " + AGAIN,
    ),
    **{
        f"stamp of {text}": (
            lambda root, text=text: (root / ".venv/full" / environment.STAMP).write_text(text),
            ".venv/full cannot be used as it is: it was never finished. " + AGAIN,
        )
        for text in (
            "{}",
            "[]",
            "null",
            '{"fingerprint": ""}',
            '{"fingerprint": "", "installed": 1}',
        )
    },
    "other requirements": (
        lambda root: (root / "constraints.txt").write_text("six==1.0\n"),
        "cannot be used as it is: the requirements, the Python version or the folder changed",
    ),
    "requirements deleted": (
        lambda root: (root / "requirements.txt").unlink(),
        "requirements.txt is missing. Mend it: restore it with `git checkout requirements.txt`",
    ),
    "a lock deleted": (
        lambda root: (root / "locked-full.txt").unlink(),
        "locked-full.txt cannot be read. Mend it: git checkout restores",
    ),
}


@pytest.mark.parametrize("plant, expected", PLANTED.values(), ids=PLANTED)
def test_each_fault_of_the_environments_is_said_with_its_mending(project, capsys, plant, expected):
    plant(project)
    code, words = said(capsys, project)
    assert code == 1 and re.search(r"Wrong: \d, see above\.$", words)
    assert "Wrong: " in words and expected in words


def test_a_cuda_build_is_right_where_there_is_a_card(project, capsys, monkeypatch):
    plant_cuda_without_label(project)
    monkeypatch.setattr(doctor, "has_card", lambda: True)
    assert said(capsys, project)[0] == 0
    assert "TORCH=cpu" not in doctor.command("full-environment")


@pytest.mark.skipif(os.name == "nt", reason="there a program is found by its suffix")
def test_a_card_is_seen_by_its_program_or_its_driver(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(doctor, "CARD", (str(tmp_path / "nvidia0"),))
    assert not doctor.has_card()
    (tmp_path / "nvidia0").touch()
    assert doctor.has_card()
    (tmp_path / "nvidia0").unlink()
    (tmp_path / "nvidia-smi").touch(0o755)
    assert doctor.has_card()


def test_what_shows_a_card_is_of_nvidia_and_no_other_thing():
    def others(places: tuple[str, ...]) -> list[str]:
        return [place for place in places if "nvidia" not in place]

    assert len(doctor.CARD) >= 3 and others(doctor.CARD) == []
    assert others((*doctor.CARD, "/proc")) == ["/proc"]


@pytest.mark.parametrize("lacking", ["venv", "ensurepip"])
def test_a_python_without_venv_is_said(project, capsys, monkeypatch, lacking):
    found = doctor.importlib.util.find_spec
    monkeypatch.setattr(
        doctor.importlib.util, "find_spec", lambda name: None if name == lacking else found(name)
    )
    code, words = said(capsys, project)
    assert code == 1
    assert f"Wrong: This Python lacks {lacking}, and so can make no environment." in words
    assert "Mend it: on Debian and Ubuntu: apt install python3." in words


def too_old(version: tuple) -> subprocess.CompletedProcess:
    """Run the doctor by a Python that says it has this version."""
    code = (
        f"import sys, runpy; sys.version_info = {version}; sys.argv = ['x']; "
        f"runpy.run_path({str(TOOL)!r}, run_name='__main__')"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.parametrize("version", [(3, 8, 18), (3, 10, 4)])
def test_a_python_that_is_too_old_is_said_and_which_to_take(version):
    done = too_old(version)
    assert (done.returncode, done.stderr) == (1, "")
    said = "Wrong: This is Python %d.%d, and the course needs 3.11 or newer." % version[:2]
    assert said in done.stdout
    assert re.search(r"^  Mend it: .*make doctor PYTHON=python3\.1[123], and", done.stdout, re.M)


@pytest.mark.parametrize("tried", doctor.TRIED_PYTHONS)
def test_the_python_named_instead_is_one_that_starts(monkeypatch, tried):
    monkeypatch.setattr(doctor, "answer", lambda name, *_: name.endswith(tried))
    assert f"PYTHON=python{tried}," in doctor.python_fault((3, 9))[1]
    monkeypatch.setattr(doctor, "answer", lambda *_: "")
    assert doctor.python_fault((3, 9))[1].startswith("install Python 3.11 or newer")
    assert doctor.python_fault((3, 11)) == doctor.python_fault((3, 14)) == ()


def test_on_windows_it_is_py_that_starts_another_python(monkeypatch):
    monkeypatch.setattr(doctor, "os", SimpleNamespace(name="nt"))
    monkeypatch.setattr(doctor, "answer", lambda *call: call == ("py", "-3.11", "--version"))
    mend = "py -3.11 tools\\doctor.py, and so for every command"
    assert doctor.python_fault((3, 9))[1] == mend
    monkeypatch.setattr(doctor, "answer", lambda *_: "")
    absent = "install Python 3.11 or newer, and name it: " + mend.replace("3.11", "3.12")
    assert doctor.python_fault((3, 9))[1] == absent


@pytest.mark.parametrize("version, told", [((3, 11), 0), ((3, 13), 0), ((3, 14), 1)])
def test_a_python_newer_than_those_tried_is_told_of(project, capsys, monkeypatch, version, told):
    monkeypatch.setattr(doctor.sys, "version_info", (*version, 0))
    code, words = said(capsys, project)
    assert code == 0
    assert words.count("Note: This is Python 3.14. Tried are 3.11 to 3.13;") == told
    assert words.count("Tried are") == told


def test_the_promised_pythons_are_those_of_the_matrix():
    assert doctor.TRIED_PYTHONS == matrix.PYTHONS[::-1]
    assert "%d.%d" % doctor.OLDEST_PYTHON == matrix.PYTHONS[0]


def grammar_faults(text: str) -> str:
    """Return why Python 3.6 cannot read a program as far as its check of the version, or ""."""
    try:
        body = ast.parse(text, feature_version=(3, 6)).body
    except SyntaxError as error:
        return str(error)
    check = next(i for i, node in enumerate(body) if isinstance(node, ast.If))
    names = {a.name for node in body[:check] for a in getattr(node, "names", [])}
    # Python evaluates annotations of functions when it defines them.
    new = [n for node in body[:check] for n in ast.walk(node) if isinstance(n, ast.Subscript)]
    new = [n for n in new if isinstance(n.value, ast.Name) and n.value.id in ("list", "dict")]
    others = names - {"os", "platform", "shutil", "subprocess", "sys"}
    return f"not in Python 3.6: {sorted(others)}, {new}" if others or new else ""


def test_an_old_python_can_read_the_program():
    assert grammar_faults(TOOL.read_text(encoding="utf-8")) == ""


@pytest.mark.parametrize(
    "old, new",
    [
        ("import sys\n", "import tomllib\n"),
        ("    calls = [", "    if (name := 1): pass\n    calls = ["),
        ("(version: tuple)", "(version: list[int])"),
        ("finding.missing =", "match root:\n        case 1: pass\n    finding.missing ="),
    ],
)
def test_planted_new_grammar_is_seen(old, new):
    text = TOOL.read_text(encoding="utf-8")
    assert old in text
    assert grammar_faults(text.replace(old, new, 1)) != ""


@pytest.mark.parametrize("version", ["3.6", "3.8", "3.10"])
def test_an_old_python_of_this_machine_is_told(version):
    python = matrix.find_python(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here; the tests above stand for it")
    done = subprocess.run([python, TOOL], capture_output=True, text=True)
    assert done.returncode == 1 and f"Wrong: This is Python {version}" in done.stdout


def test_no_chromium_is_said_with_the_ways_to_get_one(project, capsys, monkeypatch):
    monkeypatch.setattr(doctor.browser, "find", lambda: None)
    code, words = said(capsys, project)
    assert code == 1 and "Wrong: There is no Chromium or Chrome" in words
    assert "-m playwright install chromium" in words
    monkeypatch.setenv("CHROMIUM", "/nowhere/chromium")
    assert "Wrong: CHROMIUM=/nowhere/chromium is no program." in said(capsys, project)[1]


@pytest.mark.parametrize(
    "name, debian, mend",
    [
        ("ubuntu", True, ".venv/full/bin/python -m playwright install --with-deps chromium"),
        ("debian", True, "sudo apt-get install"),
        ("fedora", False, "install Chrome; or: .venv/full/bin/python -m playwright"),
        (None, False, "install Chrome; or: .venv/full/bin/python -m playwright"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="there an environment has another form")
def test_each_system_is_told_its_own_way_to_a_chromium(
    project, capsys, monkeypatch, name, debian, mend
):
    monkeypatch.setattr(doctor.browser, "find", lambda: None)
    monkeypatch.setattr(doctor.browser, "DEBIAN", project if debian else project / "absent")

    def release() -> dict[str, str]:
        if name is None:
            raise OSError("no such file")
        return {"ID": name}

    monkeypatch.setattr(doctor.platform, "freedesktop_os_release", release)
    assert f" Mend it: {mend}" in said(capsys, project)[1]
    assert doctor.browser.apt_has_it() is (name == "debian")


def test_a_chromium_that_does_not_start_is_said(project, capsys, monkeypatch):
    monkeypatch.setattr(doctor, "answer", lambda *_: "")
    code, words = said(capsys, project)
    assert code == 1 and f"Wrong: {CHROMIUM} does not start." in words


def test_what_a_program_answers_is_empty_if_it_fails_or_is_absent(tmp_path):
    assert doctor.answer(sys.executable, "-c", "print('1.0')") == "1.0"
    assert doctor.answer(sys.executable, "-c", "print('1.0'); exit(3)") == ""
    assert doctor.answer(str(tmp_path / "absent"), "--version") == ""


SMALL = "Mend it: take the small build of torch: make full-environment TORCH=cpu"
ROOM = "Mend it: make room there"


@pytest.mark.parametrize(
    "free, torch, absent, words",
    [
        (0.4, "cpu", [], "0.4 GB of space left, and 0.5 GB are needed. " + ROOM),
        (2.9, "cpu", ["full"], "and 3.2 GB are needed to make full in .venv. " + ROOM),
        (5.0, "", ["full"], "8.9 GB are needed to make full with CUDA in .venv. " + SMALL),
        (2.9, "", ["full"], "needed to make full with CUDA in .venv. " + ROOM),
        (3.5, "cpu", ["book", "full"], "and 3.8 GB are needed to make book and full in"),
    ],
)
def test_too_little_space_is_said(project, capsys, monkeypatch, free, torch, absent, words):
    for name in absent:
        shutil.rmtree(project / ".venv" / name)
    monkeypatch.setenv("TORCH", torch)
    usage = SimpleNamespace(free=free * GB)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: usage)
    code, printed = said(capsys, project)
    assert code == 1 and words in printed
    usage.free = 9 * GB
    assert said(capsys, project)[0] == 0


def test_too_little_space_for_temporary_files_is_said(project, capsys, monkeypatch):
    shutil.rmtree(project / ".venv")
    monkeypatch.setenv("TORCH", "cpu")
    small = project.parent / "small"

    def usage(folder):
        return SimpleNamespace(free=GB if folder == small else 9 * GB)

    def needed(root, kinds):
        return {root: 2.7, small: 1.1}

    monkeypatch.setattr(doctor.shutil, "disk_usage", usage)
    monkeypatch.setattr(doctor, "space_needed", needed)
    code, words = said(capsys, project)
    assert code == 1 and f"Wrong: {small} has 1.0 GB of space left, and 1.1 GB are needed" in words
    assert "TMPDIR may name a folder elsewhere" in words


def test_temporary_files_count_where_they_lie(project, monkeypatch):
    assert doctor.space_needed(project, ["full"]) == {project: pytest.approx(3.2)}
    elsewhere = project.parent / "elsewhere"
    monkeypatch.setattr(doctor.tempfile, "gettempdir", lambda: elsewhere)
    real = Path.stat

    def stat(self, **options):
        return SimpleNamespace(st_dev=-1) if self == elsewhere else real(self, **options)

    monkeypatch.setattr(Path, "stat", stat)
    needed = {project: pytest.approx(2.3), elsewhere: pytest.approx(0.9)}
    assert doctor.space_needed(project, ["full"]) == needed


def test_a_folder_for_temporary_files_that_is_full_is_said(project, capsys, monkeypatch):
    def full():
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(doctor.tempfile, "gettempdir", full)
    code, words = said(capsys, project)
    assert code == 1
    assert "Wrong: No folder for temporary files can be written to, or it is full." in words


def test_an_unknown_wish_about_torch_is_said(project, capsys, monkeypatch):
    monkeypatch.setenv("TORCH", "gpu")
    code, words = said(capsys, project)
    assert code == 1 and "Wrong: TORCH=gpu is not known. Mend it: say TORCH=cpu" in words


@pytest.mark.parametrize("name", ["torch", "numpy.py"])
def test_a_pythonpath_that_hides_a_package_is_said(project, capsys, monkeypatch, name):
    folder = project.parent / "mine"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    code, words = said(capsys, project)
    assert code == 0 and "Note: PYTHONPATH is set." in words
    (folder / name).mkdir()
    code, words = said(capsys, project)
    package = name.removesuffix(".py")
    assert code == 1
    assert (
        f"names {folder}, whose {package} hides that of every environment. Mend it: unset" in words
    )
    monkeypatch.setattr(doctor.os, "name", "nt")
    assert (
        "Mend it: set PYTHONPATH=, or in PowerShell: $env:PYTHONPATH = ''"
        in (said(capsys, project)[1])
    )


ALL = "install -r binder/requirements.txt"
OWN_FAULTS = [
    ({}, "It lacks torch, numpy, matplotlib.", [ALL]),
    ({"torch": "2.5.1"}, "It has torch 2.5.1, and the lessons need 2.6.0 or newer.", [ALL]),
    (
        {"torch": "2.13.0+cu130"},
        "It has the CUDA build of torch (2.13.0+cu130)",
        ["uninstall -y torch", ALL],
    ),
    (
        {"torch": "2.13.0+cpu", "jupyter-book": "2.0.1"},
        "It has jupyter-book 2.0.1, which does not read _config.yml",
        [f'install "jupyter-book=={VERSIONS["jupyter-book"]}"'],
    ),
]


@pytest.mark.parametrize("versions, words, steps", OWN_FAULTS)
def test_an_environment_of_the_readers_own_is_judged(
    project, capsys, monkeypatch, versions, words, steps
):
    others = {name: VERSIONS[name] for name in ("numpy", "matplotlib")} if versions else {}
    own = run_in(monkeypatch, project.parent / "own", versions | others)
    code, printed = said(capsys, project)
    assert code == 1 and f"The environment {own} does not suit the lessons. {words}" in printed
    pip = f"{(own / 'bin/python').as_posix()} -m pip"
    mend = ", then: ".join(f"{pip} {step}" for step in steps)
    assert f" Mend it: {mend}; or work in the course's own environment: make lab" in printed


def test_without_the_file_of_pins_any_jupyter_book_1_is_named(project, monkeypatch):
    run_in(monkeypatch, project.parent / "own", {})
    (project / "requirements-book.txt").unlink()
    here = doctor.Packages(FULL | {"jupyter-book": "2.0.1"})
    assert doctor.mend_of_own(here, project).endswith(' install "jupyter-book==1.*"')


def test_run_by_an_environment_of_the_project_it_does_not_judge_that_twice(
    project, capsys, monkeypatch
):
    run_in(monkeypatch, project / ".venv/book", {})
    code, words = said(capsys, project)
    assert code == 0 and "Its packages" not in words


@pytest.mark.parametrize("versions, words, _", OWN_FAULTS[1:])
def test_the_python_of_the_system_is_not_judged_but_told_of(
    project, capsys, monkeypatch, versions, words, _
):
    run_in(monkeypatch, project.parent / "other", versions, own=False)
    code, printed = said(capsys, project)
    assert code == 0 and f"Note: This Python does not suit the lessons. {words}" in printed
    assert "`make lab TORCH=cpu` opens them with another." in printed


@pytest.mark.parametrize("name, code", [("mine", 1), ("base", 0)])
def test_an_active_environment_of_conda_is_judged_unless_it_is_the_base(
    project, capsys, monkeypatch, name, code
):
    prefix = run_in(monkeypatch, project.parent / "conda", {}, own=False)
    monkeypatch.setenv("CONDA_PREFIX", str(prefix))
    monkeypatch.setenv("CONDA_DEFAULT_ENV", name)
    assert said(capsys, project)[0] == code


def test_another_torch_than_that_of_the_outputs_is_told_of(project, capsys, monkeypatch):
    lesson = {name: FULL[name] for name in doctor.LESSON_PACKAGES}
    run_in(monkeypatch, project.parent / "own", lesson | {"torch": "2.11.0+cpu"})
    code, words = said(capsys, project)
    assert code == 0
    assert "Note: Notebooks run by this Python have torch 2.11.0+cpu" in words
    run_in(monkeypatch, project.parent / "same", lesson | {"torch": "2.13.0+cpu"})
    assert "Note" not in said(capsys, project)[1]


@pytest.mark.skipif(os.name == "nt", reason="there a program is found by its suffix")
def test_another_active_environment_and_another_jupyter_are_told_of(project, capsys, monkeypatch):
    other = project.parent / "other"
    (other / "bin").mkdir(parents=True)
    (other / "bin/jupyter-lab").touch(0o755)
    monkeypatch.setenv("VIRTUAL_ENV", str(other))
    monkeypatch.setenv("PATH", str(other / "bin"))
    code, words = said(capsys, project)
    assert code == 0
    assert f"Note: The active environment is {other}, and this Python is another" in words
    assert f"Note: `jupyter lab` is {other}/bin/jupyter-lab here" in words
    own = project / ".venv/full"
    (own / "bin/jupyter-lab").touch(0o755)
    monkeypatch.setenv("VIRTUAL_ENV", str(own))
    monkeypatch.setenv("PATH", str(own / "bin"))
    assert "Note" not in said(capsys, project)[1]


def test_threads_that_are_not_bounded_are_told_of(project, capsys, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS")
    code, words = said(capsys, project)
    assert code == 0 and "Note: OMP_NUM_THREADS is not set." in words


def test_on_windows_the_commands_are_those_of_the_readme(monkeypatch):
    monkeypatch.setattr(doctor, "os", SimpleNamespace(name="nt"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for verb in ("lab", "book-environment", "full-environment"):
        assert f"\n{doctor.command(verb)}\n" in readme


def test_on_its_own_it_changes_nothing_and_its_code_fits_its_words(tmp_path):
    root = copy_repository(tmp_path / "clone")
    before = snapshot(root)
    done = run_tool(root, "doctor.py", PYTHONDONTWRITEBYTECODE="1")
    assert done.stderr == "" and snapshot(root) == before
    well = done.stdout.endswith("\nNothing is wrong.\n")
    assert done.returncode == (0 if well else 1), done.stdout
    assert well or re.search(r"\nWrong: \d, see above\.\n$", done.stdout)


def test_in_an_empty_environment_it_needs_no_package_and_says_what_lacks(tmp_path):
    folder = tmp_path / "own"
    venv.create(folder, with_pip=False)
    done = subprocess.run(
        [environment.python_of(folder), TOOL], capture_output=True, text=True, encoding="utf-8"
    )
    words = " ".join(done.stdout.split())
    assert (done.returncode, done.stderr) == (1, "")
    assert "does not suit the lessons. It lacks torch, numpy, matplotlib." in words


def test_make_runs_it_with_the_python_that_makes_environments_and_prepares_none():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^doctor:  ##.*\n\t@\$\(PYTHON\) tools/doctor.py$", makefile, re.M)
    assert "doctor" in re.search(r"^\.PHONY: (.*)", makefile, re.M)[1].split()


def test_the_readme_names_it_and_the_form_for_what_does_not_run_asks_for_it():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "| `make doctor` |" in readme and "\npython tools\\doctor.py\n" in readme
    form = (ROOT / ".github/ISSUE_TEMPLATE/does-not-run.yml").read_text(encoding="utf-8")
    (versions,) = [f for f in yaml.safe_load(form)["body"] if f.get("id") == "versions"]
    asked = versions["attributes"]["description"]
    assert "`make doctor`" in asked and "`python tools/doctor.py`" in asked
