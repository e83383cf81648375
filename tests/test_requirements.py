"""The versions are exact, agree wherever they are written, and cover all that gets installed."""

import ast
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest
from environment import LOCKED, UNLOCKED, normalise, pins, requirement_files
from helpers_book import ROOT, files_of_repository
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from pins import LEFT_OUT, OLDEST_PYTHON, without_unlocked

BOOK = ROOT / "requirements-book.txt"
FULL = ROOT / "requirements.txt"
ASSETS = ROOT / "requirements-assets.txt"
BINDER = ROOT / "binder/requirements.txt"
CONSTRAINTS = ROOT / "constraints.txt"
LOCKS = {name: ROOT / file for name, file in LOCKED.items()}


def lines_of(path: Path) -> list[str]:
    """Return a requirement file's lines without comments, hashes and empty ones."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [re.sub(r"#.*|;.*|--hash=.*", "", line).strip() for line in text.splitlines()]
    return [line for line in lines if line]


def inexact(lines: list[str]) -> list[str]:
    """Return the lines that are neither an option nor one package at one public version."""
    exact = re.compile(r"-.*|[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*")
    return [line for line in lines if not exact.fullmatch(line)]


@pytest.mark.parametrize(
    "path",
    [BOOK, FULL, ASSETS, BINDER, CONSTRAINTS, *LOCKS.values()],
    ids=lambda path: path.name,
)
def test_every_version_is_exact_and_public(path):
    assert inexact(lines_of(path)) == []


@pytest.mark.parametrize(
    "line", ["torch", "torch>=2", "torch==2.13.0+cpu", "torch==2.*", "a @ file:b"]
)
def test_planted_inexact_line_is_found(line):
    assert inexact(["numpy==2.4.6", line]) == [line]


def test_full_list_takes_in_the_book_and_the_book_has_no_torch():
    assert FULL.read_text(encoding="utf-8").splitlines()[0] == "-r requirements-book.txt"
    assert not {"torch", "numpy", "jupyterlab"} & set(pins(BOOK))
    assert pins(BOOK)["jupyter-book"] == "1.0.4.post1"
    assert pins(FULL)["torch"] == "2.13.0"


def test_launched_notebooks_get_the_same_versions():
    everything = pins(*requirement_files("full", ROOT))
    assert pins(BINDER).items() <= everything.items()
    assert set(pins(BINDER)) == {"torch", "numpy", "matplotlib", "jupyterlab"}
    assert (ROOT / "binder/runtime.txt").read_text(encoding="utf-8").strip() == "python-3.11"


def test_constraints_say_how_they_are_made_and_repeat_nothing():
    assert "make pins" in CONSTRAINTS.read_text(encoding="utf-8").splitlines()[0]
    pinned = pins(CONSTRAINTS)
    assert not set(pinned) & set(pins(*requirement_files("full", ROOT)))
    assert [package for package in pinned if LEFT_OUT.fullmatch(package)] == []


def lock_faults(text: str, wanted: dict[str, str], allowed: dict[str, str]) -> list[str]:
    """Return what is wrong with a lock's text, one line a fault.

    Arguments: the text, the versions it must have, and those that it may have; what is in none of
    them only other systems need, so its line must say which.
    """
    found, locked = [], {}
    for line in re.sub(r"^#.*", "", text, flags=re.M).replace("\\\n", " ").split("\n"):
        if not line.strip():
            continue
        match = re.match(
            r"([\w.-]+)==([\w.]+)( ;[^#]*?)?((?: +--hash=sha256:[0-9a-f]{64})+)$", line
        )
        if not match:
            found.append(f"{line.split()[0]} is not one version with hashes")
            continue
        package, version, marker, _ = match.groups()
        locked[package] = version
        if UNLOCKED.fullmatch(package):
            found.append(f"{package} depends on the machine")
        if package in allowed and allowed[package] != version:
            found.append(f"{package} is {version} and should be {allowed[package]}")
        if package not in allowed and not marker and not LEFT_OUT.fullmatch(package):
            found.append(f"{package} is pinned nowhere else")
    missing = {p for p in wanted if not UNLOCKED.fullmatch(p)} - set(locked)
    return found + [f"{package} is missing" for package in sorted(missing)]


def versions_for(name: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the versions that a lock must have, and those that it may have."""
    if name == "assets":
        return pins(ASSETS), pins(ASSETS)
    everything = pins(BOOK, FULL, CONSTRAINTS)
    direct = pins(BOOK) if name == "book" else pins(BOOK, FULL)
    here = needed_by(set(direct))
    return {p: everything[p] for p in here if p in everything}, everything


@pytest.mark.parametrize("name", LOCKS)
def test_locks_have_the_same_versions_and_all_of_them_with_hashes(name):
    text = LOCKS[name].read_text(encoding="utf-8")
    assert "make pins" in text.splitlines()[0]
    assert lock_faults(text, *versions_for(name)) == []


def test_locks_have_what_other_systems_need():
    windows, macos = {"colorama"}, {"appnope"}
    assert windows | macos <= set(pins(LOCKS["book"]))
    assert windows | macos | {"pywinpty"} <= set(pins(LOCKS["full"]))
    assert not {"torch", "jupyterlab", "numpy"} & set(pins(LOCKS["book"]))
    assert LOCKS["book"].read_text(encoding="utf-8").count("--hash=") > 1000, "files of all systems"


@pytest.mark.parametrize(
    "old, new, fault",
    [
        ("sphinx==7.4.7", "sphinx==7.4.6", "sphinx is 7.4.6 and should be 7.4.7"),
        ("sphinx==7.4.7", "also==1.0\nsphinx==7.4.7", "also==1.0 is not one version with hashes"),
        ("sphinx==7.4.7", "sfinx==7.4.7", "sfinx is pinned nowhere else"),
        ("sphinx==7.4.7", "sfinx==7.4.7", "sphinx is missing"),
        ("sphinx==7.4.7", "torch==2.13.0", "torch depends on the machine"),
        ("sphinx==7.4.7", "sphinx>=7.4.7", "sphinx>=7.4.7 is not one version with hashes"),
    ],
)
def test_planted_fault_in_a_lock_is_found(old, new, fault):
    text = LOCKS["book"].read_text(encoding="utf-8")
    assert text.count(f"\n{old} ") == 1
    found = lock_faults(text.replace(f"\n{old} ", f"\n{new} "), *versions_for("book"))
    assert fault in found


def test_planted_missing_hash_is_found():
    text = LOCKS["assets"].read_text(encoding="utf-8")
    short = re.sub(r" \\\n    --hash=sha256:\w+", "", text)
    assert short != text
    assert len(lock_faults(short, *versions_for("assets"))) == 2


def test_make_pins_leaves_torch_out_of_a_lock_and_nothing_else():
    text = "# a\ncuda-x==1 \\\n    --hash=1\nsix==1 \\\n    --hash=2\ntorch==3 \\\n    --hash=3\n"
    assert without_unlocked(text) == "# a\nsix==1 \\\n    --hash=2\n"


def needed_by(direct: set[str]) -> set[str]:
    """Return all packages that the direct ones need on this machine, found by their metadata."""
    found, todo = set(), [(package, frozenset()) for package in direct]
    seen = set(todo)
    while todo:
        package, extras = todo.pop()
        found.add(package)
        for text in metadata.requires(package) or []:
            need = Requirement(text)
            wanted = any(
                need.marker is None or need.marker.evaluate({"extra": extra})
                for extra in extras | {""}
            )
            item = (normalise(need.name), frozenset(need.extras))
            if wanted and item not in seen:
                seen.add(item)
                todo.append(item)
    return found


def test_every_package_in_use_is_pinned_and_has_that_version():
    direct = pins(BOOK, FULL)
    known = direct | pins(CONSTRAINTS)
    in_use = {package for package in needed_by(set(direct)) if not LEFT_OUT.fullmatch(package)}
    unpinned = sorted(in_use - set(known))
    assert unpinned == [], "run `make pins`"
    other = [p for p in in_use if metadata.version(p).partition("+")[0] != known[p]]
    assert other == [], "run `make full-environment`"


def test_every_pinned_package_takes_the_oldest_python():
    """Debian 12 ships 3.11.2: a package that wants a later 3.11 cannot be installed there."""
    pinned, refusing = pins(BOOK, FULL, ASSETS, CONSTRAINTS), []
    for distribution in metadata.distributions():
        wanted = distribution.metadata["Requires-Python"] or ""
        if normalise(distribution.name) in pinned and OLDEST_PYTHON not in SpecifierSet(wanted):
            refusing.append(f"{distribution.name} wants Python {wanted}")
    assert refusing == [], "run `make pins`"


def imported(code: str) -> set[str]:
    """Return the top-level names of all modules that a piece of Python imports."""
    names = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module.partition(".")[0])
    return names


@pytest.mark.parametrize(
    "folders, files",
    [
        (["tools/build_book.py", "tools/preview.py", "tools/check_notebooks.py", "theme/"], [BOOK]),
        (["tools/", "theme/", "tests/"], [BOOK, FULL]),
    ],
    ids=["book", "full"],
)
def test_what_is_imported_is_a_direct_requirement(folders, files):
    code = [name for name in files_of_repository() if name.endswith(".py")]
    # a module of ours is a file, or a folder with files (tests/faults)
    ours = {name for path in code for name in (Path(path).stem, Path(path).parent.name)}
    distributions = metadata.packages_distributions()
    missing = set()
    for name in code:
        if name.startswith(tuple(folders)):
            for module in imported((ROOT / name).read_text(encoding="utf-8")):
                if module in sys.stdlib_module_names or module in ours:
                    continue
                packages = {normalise(p) for p in distributions.get(module, [module])}
                if not packages & set(pins(*files)):
                    missing.add(f"{name}: {module}")
    assert sorted(missing) == []


def test_other_index_is_named_in_binder_and_workflows_only():
    host = "download.pytorch" + ".org"
    allowed = ("binder/requirements.txt", ".github/workflows/")
    found = []
    for name in files_of_repository():
        if host in (ROOT / name).read_bytes().decode("utf-8", "ignore"):
            found.append(name)
    assert "binder/requirements.txt" in found
    assert [name for name in found if not name.startswith(allowed)] == []
