"""`make archive`: one zip, the same for the same site, that a reader unpacks and opens."""

import os
import re
import shutil
import zipfile
from pathlib import Path

import make_archive
import pytest
from helpers_book import snapshot
from helpers_browser import listen

NAME = "deep-learning-built-and-checked"


@pytest.fixture
def small(tmp_path) -> Path:
    """A site of a few files, with what Sphinx leaves behind among them."""
    site = tmp_path / "html"
    for name in ["index.html", "b/page.html", "_static/a.css", "_static/a.css.map", ".buildinfo"]:
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(f"this is {name}")
    return site


def test_same_site_gives_same_bytes_at_any_time(small, tmp_path):
    make_archive.write(small, tmp_path / "book.zip")
    first = (tmp_path / "book.zip").read_bytes()
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in sorted(small.rglob("*"), reverse=True):  # other order, time and rights
        if path.is_file():
            (copy / path.relative_to(small)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy / path.relative_to(small))
            os.utime(copy / path.relative_to(small), (2e9, 2e9))
            (copy / path.relative_to(small)).chmod(0o600)
    make_archive.write(copy, tmp_path / "book.zip")
    assert (tmp_path / "book.zip").read_bytes() == first
    (copy / "index.html").write_text("another")
    make_archive.write(copy, tmp_path / "book.zip")
    assert (tmp_path / "book.zip").read_bytes() != first
    assert not list(tmp_path.glob("*.part"))


def test_archive_is_one_folder_without_leftovers_of_the_build(small, tmp_path):
    make_archive.write(small, tmp_path / "book.zip")
    with zipfile.ZipFile(tmp_path / "book.zip") as archive:
        assert archive.namelist() == ["book/_static/a.css", "book/b/page.html", "book/index.html"]
        assert archive.read("book/b/page.html") == b"this is b/page.html"
        assert {entry.external_attr >> 16 for entry in archive.infolist()} == {0o644}


def test_no_site_or_an_old_one_is_refused(small, tmp_path, monkeypatch):
    monkeypatch.setattr(make_archive, "ROOT", tmp_path)
    with pytest.raises(make_archive.Failure, match="there is no site yet; run `make book`"):
        make_archive.check_age(tmp_path / "nowhere")
    (tmp_path / "lessons").mkdir()
    lesson = tmp_path / "lessons/46-x.ipynb"
    lesson.write_text("{}")
    os.utime(lesson, (1e9, 1e9))
    make_archive.check_age(small)
    os.utime(lesson, (2e10, 2e10))
    with pytest.raises(make_archive.Failure, match="lessons/46-x.ipynb changed .* `make book`"):
        make_archive.check_age(small)
    (small / "pdf").mkdir()
    with pytest.raises(make_archive.Failure, match="`make pdf` again"):
        make_archive.check_age(small)


@pytest.fixture
def unpacked(site, tmp_path, monkeypatch, capsys) -> Path:
    """Archive the real site by the command, unpack it elsewhere, and return the folder."""
    monkeypatch.setattr(make_archive, "SITE", site)
    monkeypatch.setattr(make_archive, "BUILD", tmp_path)
    monkeypatch.setattr(make_archive, "check_age", lambda site: None)
    assert make_archive.main() == 0
    said = capsys.readouterr().out
    assert re.fullmatch(rf"\d\.\d MB, without PDFs: .*{NAME}\.zip\n", said), said
    shutil.unpack_archive(tmp_path / f"{NAME}.zip", tmp_path / "reader's folder")
    folder = tmp_path / "reader's folder" / NAME
    assert len(snapshot(folder)) > 80
    return folder


def unlike_the_site(page, folder: Path) -> list[str]:
    """Walk through an unpacked archive without a network; return what does not work."""
    found = listen(page)
    page.context.set_offline(True)
    page.goto((folder / "lessons/46-transformer-architecture.html").as_uri())
    fonts = "document.fonts.ready.then(() => document.fonts.check('1em KaTeX_Main'))"
    wide = "[...document.querySelectorAll('.katex-html')].filter(x => x.offsetWidth > 0).length"
    if not page.evaluate(fonts) or page.evaluate(wide) < 50:
        found.append("formulas are not typeset")
    page.goto((folder / "index.html").as_uri())
    page.keyboard.press("Control+k")
    page.keyboard.type("encoding")
    page.keyboard.press("Enter")
    results = page.locator("#search-results").get_by_role("link", name=re.compile("^Lesson 46"))
    try:
        results.first.wait_for(timeout=5000)
    except Exception as error:  # playwright is not imported where no browser is asked for
        found.append(f"search finds nothing: {type(error).__name__}")
    return found


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
def test_reader_opens_it_without_server_or_network(browser, unpacked):
    page = browser.new_page()
    assert unlike_the_site(page, unpacked) == []
    page.close()


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize(
    "lost, words",
    [
        ("searchindex.js", "search finds nothing"),
        ("_static/katex/katex.min.css", "ERR_FILE_NOT_FOUND"),
        ("_static/katex/fonts", "formulas are not typeset"),
    ],
)
def test_archive_without_a_part_is_found(browser, unpacked, lost, words):
    if (unpacked / lost).is_dir():
        shutil.rmtree(unpacked / lost)
    else:
        (unpacked / lost).unlink()
    page = browser.new_page()
    found = unlike_the_site(page, unpacked)
    assert any(words in line for line in found), found
    page.close()
