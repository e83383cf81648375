"""`make test` finds a Chromium, installs one where it may, and else says what to do."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import browser
import pytest
from helpers_book import ROOT


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without browsers: an empty PATH, and commands noted instead of run."""
    ran = []

    def run(command, **_):
        ran.append(command)
        return SimpleNamespace(returncode=0, stdout="", stderr="")

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser, "places", lambda *_: [])
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(browser, "is_root_on_debian", lambda: False)
    monkeypatch.setattr(browser.subprocess, "run", run)
    return SimpleNamespace(folder=tmp_path, ran=ran)


def add_program(folder, name: str) -> str:
    """Put a program that does nothing into a folder, and return its path.

    Windows finds a program without its suffix, which is in capitals in what it answers.
    """
    path = folder / (f"{name}.EXE" if sys.platform == "win32" else name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("name", browser.NAMES)
def test_browser_on_the_path_is_found_quietly(machine, capsys, name):
    path = add_program(machine.folder, name)
    assert browser.find() == path
    assert browser.main() == 0
    assert capsys.readouterr() == ("", "") and machine.ran == []


def test_the_variable_goes_before_the_path(machine, monkeypatch):
    add_program(machine.folder, "chromium")
    (machine.folder / "own").mkdir()
    own = add_program(machine.folder / "own", "brave")
    monkeypatch.setenv("CHROMIUM", own)
    assert browser.find() == own


@pytest.mark.parametrize(
    "system, place",
    [
        ("darwin", "home/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
        ("darwin", "home/Applications/Chromium.app/Contents/MacOS/Chromium"),
        ("win32", "programs/Google/Chrome/Application/chrome.exe"),
        ("win32", "programs/Chromium/Application/chrome.exe"),
        ("linux", "home/.cache/ms-playwright/chromium-1234/chrome-linux64/chrome"),
        ("linux", "home/.cache/ms-playwright/chromium-1234/chrome-linux-arm64/chrome"),
        (
            "darwin",
            "home/Library/Caches/ms-playwright/chromium-1234/chrome-mac-arm64/"
            "Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing",
        ),
        (
            "win32",
            "home/AppData/Local/ms-playwright/chromium-1234/chrome-win64/chrome.exe",
        ),
    ],
)
def test_browser_that_is_not_on_the_path_is_found_where_the_system_keeps_it(
    tmp_path, system, place
):
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).touch()
    variables = {"PROGRAMFILES": str(tmp_path / "programs")}
    found = browser.places(system, tmp_path / "home", variables)
    assert tmp_path / place in found
    other = "linux" if system == "win32" else "win32"
    assert tmp_path / place not in browser.places(other, tmp_path / "home", variables)


def test_macos_keeps_programs_for_all_users_too(tmp_path):
    found = browser.places("darwin", tmp_path, {})
    assert found[0].as_posix() == (
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
    )


def test_the_newest_of_playwrights_own_is_taken_and_its_folder_may_be_named(tmp_path):
    for number in (999, 1234, 1100):
        folder = tmp_path / f"own/chromium-{number}/chrome-linux64"
        folder.mkdir(parents=True)
        (folder / "chrome").touch()
    variables = {"PLAYWRIGHT_BROWSERS_PATH": str(tmp_path / "own")}
    found = browser.places("linux", tmp_path, variables)
    assert [path.parts[-3] for path in found] == [
        "chromium-1234",
        "chromium-1100",
        "chromium-999",
    ]


def test_what_is_on_the_path_goes_before_other_places(machine, monkeypatch):
    own = Path(add_program(machine.folder / "elsewhere", "chrome"))
    monkeypatch.setattr(browser, "places", lambda *_: [machine.folder / "absent", own])
    assert browser.find() == str(own)
    assert browser.find() != add_program(machine.folder, "chromium") == browser.find()


def test_variable_that_names_nothing_fails_and_installs_nothing(
    machine, monkeypatch, capsys
):
    add_program(machine.folder, "chromium")
    monkeypatch.setenv("CHROMIUM", "/nowhere/chromium")
    monkeypatch.setattr(browser, "is_root_on_debian", lambda: True)
    assert browser.main() == 1
    assert "CHROMIUM=/nowhere/chromium is no program" in capsys.readouterr().err
    assert machine.ran == []


def test_without_rights_the_command_is_printed_and_nothing_is_run(machine, capsys):
    assert browser.main() == 1
    said = capsys.readouterr().err
    assert f"On Debian: sudo {browser.INSTALL};" in said
    assert re.search(r"on Ubuntu: \S+ -m playwright install --with-deps chromium;", said)
    assert "-m playwright install chromium" in said
    assert machine.ran == []


def test_root_on_debian_installs_by_apt(machine, monkeypatch, capsys):
    def run(command, **_):
        machine.ran.append(command)
        if "install" in command:
            add_program(machine.folder, "chromium")
        return SimpleNamespace(returncode=0, stdout="", stderr="")

    monkeypatch.setattr(browser, "is_root_on_debian", lambda: True)
    monkeypatch.setattr(browser.subprocess, "run", run)
    assert browser.main() == 0
    assert [command[:2] for command in machine.ran] == [
        ["apt-get", "update"],
        ["apt-get", "install"],
    ]


@pytest.mark.parametrize("system, asked", [("debian", True), ("ubuntu", False)])
def test_root_on_ubuntu_has_no_apt_package_to_install(tmp_path, monkeypatch, system, asked):
    monkeypatch.setattr(browser, "DEBIAN", tmp_path)
    monkeypatch.setattr(browser.platform, "freedesktop_os_release", lambda: {"ID": system})
    monkeypatch.setattr(browser.os, "geteuid", lambda: 0, raising=False)
    assert browser.is_root_on_debian() is asked


def test_installation_that_fails_is_shown(machine, monkeypatch, capsys):
    failed = SimpleNamespace(returncode=100, stdout="", stderr="E: no such host")
    monkeypatch.setattr(browser, "is_root_on_debian", lambda: True)
    monkeypatch.setattr(browser.subprocess, "run", lambda command, **_: failed)
    assert browser.main() == 1
    assert "E: no such host" in capsys.readouterr().err


def test_make_test_asks_for_the_browser_and_make_check_needs_none():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    verbs = dict(part.split(":", 1) for part in makefile.split("\n\n") if ":" in part)
    assert "$(FULL) tools/browser.py\n" in verbs["test"]
    assert '-m "not slow and not browser"' in verbs["check"]
