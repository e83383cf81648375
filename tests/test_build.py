"""`make book` is strict: a fault fails it, one line names the place, and nothing is lost."""

import re
import shutil
from pathlib import Path

import build_book
import nbformat
import pytest
from helpers_book import ROOT, build, copy_repository, run_tool, snapshot, tiny_book, tiny_lesson
from nbformat.v4 import new_markdown_cell


def append(root: Path, name: str, text: str) -> None:
    """Add a paragraph to a page of the tiny book."""
    with (root / name).open("a", encoding="utf-8") as page:
        page.write(f"\n{text}\n")


def append_cell(root: Path, text: str) -> None:
    """Add a fourth cell, of text, to the lesson of the tiny book."""
    lesson = tiny_lesson()
    lesson.cells.append(new_markdown_cell(text, id="fault"))
    nbformat.write(lesson, root / "lessons/07-tiny.ipynb")


def replace(root: Path, name: str, old: str, new: str) -> None:
    """Replace text in a file of the tiny book, where it must occur."""
    text = (root / name).read_text(encoding="utf-8")
    assert old in text
    (root / name).write_text(text.replace(old, new), encoding="utf-8")


def use_real_check(root: Path) -> None:
    """Give the tiny book the real check of notebooks, and break its notebook."""
    shutil.copy2(ROOT / "tools/check_notebooks.py", root / "tools")
    (root / "lessons/07-tiny.ipynb").write_text("{ not JSON")


LESSON = "lessons/07-tiny"
FAULTS = {
    "dead link in a lesson": (
        lambda root: append_cell(root, "Text.\n\n[gone](99-nowhere.ipynb)"),
        f"{LESSON}.ipynb, cell 4, line 3: 'myst' cross-reference target not found",
    ),
    "lesson not in the toc": (
        lambda root: shutil.copy2(root / f"{LESSON}.ipynb", root / "lessons/08-new.ipynb"),
        "lessons/08-new.ipynb: not in _toc.yml; add `- file: lessons/08-new`",
    ),
    "toc without the lesson": (
        lambda root: (root / f"{LESSON}.ipynb").unlink(),
        f"_toc.yml: {LESSON} is listed, but there is no {LESSON}.md or {LESSON}.ipynb",
    ),
    "notebook that is not JSON": (use_real_check, f"{LESSON}.ipynb"),
    "settings that are not YAML": (
        lambda root: append(root, "_config.yml", "title: [unclosed"),
        "_config.yml: ",
    ),
    "setting of a wrong kind": (
        lambda root: replace(root, "_config.yml", 'author: "', 'author: 3 # "'),
        "_config.yml: - 3 is not of type 'string' [key path: 'author']",
    ),
    "setting with a wrong name": (
        lambda root: replace(root, "_config.yml", "only_build_toc_files", "only_build_toc"),
        "_config.yml: only_build_toc is not a setting of jupyter-book",
    ),
    "setting of a wrong name below another": (
        lambda root: replace(root, "_config.yml", "  branch:", "  branche:"),
        "_config.yml: repository.branche is not a setting of jupyter-book",
    ),
    "toc that is not YAML": (lambda root: append(root, "_toc.yml", "a: [b"), "_toc.yml: "),
    "toc without its first page": (
        lambda root: replace(root, "_toc.yml", "root: index", ""),
        "_toc.yml: ",
    ),
    "unknown extension": (
        lambda root: replace(root, "_config.yml", "      - alt_text", "      - alt_test"),
        "alt_test",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault_fails_the_build_and_leaves_the_last_good_site(tmp_path, name):
    root = tiny_book(tmp_path / "book")
    (root / "_build/html").mkdir(parents=True)
    (root / "_build/html/index.html").write_text("the last good site")
    before = snapshot(root / "_build")
    plant, message = FAULTS[name]
    plant(root)
    done = build(root)
    assert done.returncode == 1, done.stdout
    lines = done.stderr.splitlines()
    assert any(line.startswith(message) or "alt_test" in message in line for line in lines), lines
    assert len(lines) == 2, "one line for the fault, one that closes"
    assert "not built" in lines[-1] and "the last good site is unchanged" in lines[-1]
    assert "Traceback" not in done.stderr
    assert snapshot(root / "_build") == before


def test_the_real_book_builds_whole_and_holds_no_path_of_this_machine(tmp_path):
    root = copy_repository(tmp_path / "book")
    done = build(root)
    assert done.returncode == 0, done.stderr
    assert (root / "_build/html/index.html").as_uri() in done.stdout
    assert [path.name for path in (root / "_build").iterdir()] == ["html"]
    listed = re.findall(r"(?:root|file): (\S+)", (root / "_toc.yml").read_text(encoding="utf-8"))
    for page in listed:
        assert (root / f"_build/html/{page}.html").is_file()
    index = (root / "_build/html/index.html").read_text(encoding="utf-8")
    assert 'id="found-a-mistake"' in index, "the footer of every page links there"
    for path in (root / "_build/html").rglob("*"):
        if path.suffix in (".html", ".js", ".css"):
            assert str(tmp_path) not in path.read_text(encoding="utf-8"), path


def test_good_build_replaces_the_site_and_leaves_nothing_of_the_old(tmp_path):
    root = tiny_book(tmp_path / "book")
    for leftover in ("html/stale.html", "html.old/stale.html", "fresh/html/stale.html"):
        (root / "_build" / leftover).parent.mkdir(parents=True)
        (root / "_build" / leftover).write_text("from a build that was cut off")
    done = build(root)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (root / "_build").iterdir()] == ["html"]
    assert not (root / "_build/html/stale.html").exists()


@pytest.fixture
def folders(tmp_path, monkeypatch) -> Path:
    """Point the tool's functions at a scratch folder for builds, and return it."""
    for name, folder in [("SITE", "html"), ("OLD_SITE", "html.old"), ("FRESH", "fresh")]:
        monkeypatch.setattr(build_book, name, tmp_path / folder)
    return tmp_path


def test_interruption_between_the_two_moves_loses_nothing(folders):
    (folders / "html.old").mkdir()
    (folders / "html.old/index.html").write_text("the last good site")
    build_book.restore()
    assert (folders / "html/index.html").read_text() == "the last good site"


def test_move_that_fails_brings_the_old_site_back(folders):
    (folders / "html").mkdir()
    (folders / "html/index.html").write_text("the last good site")
    with pytest.raises(OSError):  # there is no fresh site to move
        build_book.put_in_place()
    assert (folders / "html/index.html").read_text() == "the last good site"


def test_site_without_a_page_of_the_toc_is_refused(folders, monkeypatch):
    def build_one(output, verbose, settings):
        """Pretend to succeed, with one page of two."""
        output.mkdir(parents=True)
        (output / "index.html").write_text("the first page")
        return []

    monkeypatch.setattr(build_book, "read_settings", lambda: (["index", "notation"], []))
    monkeypatch.setattr(build_book, "page_problems", lambda pages: [])
    monkeypatch.setattr(build_book, "run_sphinx", build_one)
    found, _ = build_book.build(verbose=False)
    assert found == ["_toc.yml: no page was built for notation"]
    assert not (folders / "html").exists()


@pytest.mark.parametrize("problems", [[], ["pdf/a.pdf: no paper"]], ids=["whole", "not whole"])
def test_what_finishes_a_site_decides_whether_it_is_put_in_place(folders, monkeypatch, problems):
    def build_one(output, verbose, settings):
        """Pretend to succeed."""
        output.mkdir(parents=True)
        (output / "index.html").write_text(settings["say"])
        return []

    def finish(pages):
        """Add a file to the fresh site, and find these problems."""
        (folders / "fresh/html/pdf").write_text(pages[0])
        return problems

    monkeypatch.setattr(build_book, "read_settings", lambda: (["index"], []))
    monkeypatch.setattr(build_book, "page_problems", lambda pages: [])
    monkeypatch.setattr(build_book, "run_sphinx", build_one)
    found, _ = build_book.build(verbose=False, settings={"say": "new"}, finish=finish)
    assert found == problems
    if problems:
        assert not list(folders.iterdir())
    else:
        assert snapshot(folders).keys() == {"html/index.html", "html/pdf"}


@pytest.mark.parametrize(
    "warning, line",
    [
        ("{root}/index.md:12: WARNING: bad [a.b]", "index.md, line 12: bad [a.b]"),
        (
            "{root}/lessons/46-x.ipynb:70004: WARNING: bad",
            "lessons/46-x.ipynb, cell 7, line 3: bad",
        ),
        ("{root}/lessons/46-x.ipynb: WARNING: bad", "lessons/46-x.ipynb: bad"),
        ("\x1b[31mWARNING: bad\nand worse\x1b[39;49;00m\n", "bad and worse"),
        ("{root}/index.md:3: ERROR: {root}/a.png is gone", "index.md, line 3: a.png is gone"),
    ],
)
def test_warnings_become_one_line_with_file_and_cell(warning, line):
    assert build_book.in_words(warning.replace("{root}", str(ROOT))) == line


def test_preview_never_touches_the_good_site(tmp_path):
    root = tiny_book(tmp_path / "book")
    (root / "_build/html").mkdir(parents=True)
    (root / "_build/html/index.html").write_text("the last good site")
    append(root, "index.md", "[gone](nowhere.md)")
    done = run_tool(root, "preview.py", "--once")
    assert done.returncode == 1
    assert "index.md, line 11: 'myst' cross-reference target not found" in done.stderr
    assert "gone" in (root / "_build/preview/html/index.html").read_text(encoding="utf-8")
    assert snapshot(root / "_build/html").keys() == {"index.html"}


def test_same_sources_give_the_same_site_byte_for_byte(tmp_path):
    root, sites = tiny_book(tmp_path / "book"), []
    for _ in range(2):
        assert build(root).returncode == 0
        sites.append(snapshot(root / "_build/html"))
    assert len(sites[0]) > 50
    assert sites[0] == sites[1]
