"""`make test` finds a Chromium, installs one where it may, and else says what to do."""

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
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(browser, "is_root_on_debian", lambda: False)
    monkeypatch.setattr(browser.subprocess, "run", run)
    return SimpleNamespace(folder=tmp_path, ran=ran)


def add_program(folder, name: str) -> str:
    """Put a program that does nothing into a folder, and return its path."""
    path = folder / name
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


def test_variable_that_names_nothing_fails_and_installs_nothing(machine, monkeypatch, capsys):
    add_program(machine.folder, "chromium")
    monkeypatch.setenv("CHROMIUM", "/nowhere/chromium")
    monkeypatch.setattr(browser, "is_root_on_debian", lambda: True)
    assert browser.main() == 1
    assert "CHROMIUM=/nowhere/chromium is no program" in capsys.readouterr().err
    assert machine.ran == []


def test_without_rights_the_command_is_printed_and_nothing_is_run(machine, capsys):
    assert browser.main() == 1
    assert f"sudo {browser.INSTALL}" in capsys.readouterr().err
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
    assert [command[:2] for command in machine.ran] == [["apt-get", "update"], ["apt-get", "install"]]


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
