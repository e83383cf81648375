"""`make bench` prints what it measured, the growth between sizes, and what failed."""

import sys

import bench
import pytest
from bench import Measured


@pytest.mark.parametrize("power", [0, 0.5, 1, 2])
def test_slope_is_the_power_of_the_growth(power):
    assert bench.slope((10, 1000), (3 * 10**power, 3 * 1000**power)) == pytest.approx(power)


@pytest.fixture
def measured(monkeypatch):
    """Let commands not run: each costs a CPU second a lesson, and writes pages of 1,000 bytes."""
    edited = []

    def pretend(command, root):
        notebooks = sorted((root / "lessons").glob("*.ipynb"))
        pages = root / "_build/html/lessons"
        pages.mkdir(parents=True, exist_ok=True)
        for path in notebooks:
            (pages / f"{path.stem}.html").write_text("a" * 1000)
        if command == bench.PREVIEW:
            edited.append(sum("are a pair" in path.read_text() for path in notebooks))
        failed = command == bench.BUILD and len(notebooks) == 3
        return Measured(2.0, len(notebooks), 5_000_000, int(failed))

    monkeypatch.setattr(bench, "measure", pretend)
    return edited


def test_growth_is_printed_with_its_slopes(measured, capsys):
    assert bench.main(["growth", "--lessons", "8", "2", "4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"{'8 lessons: strict build':44}      2.0      8.0        5" in lines
    assert "8 lessons: a page has 1,000 B, gzipped 29 B" in lines
    slopes = [line for line in lines if line.startswith("slope")]
    assert [line.partition(":")[0] for line in slopes] == [
        "slope from 2 to 4 lessons",
        "slope from 4 to 8 lessons",
    ]
    for line in slopes:
        assert "strict build 1.00" in line and "one lesson edited 1.00" in line
        assert "a page 0.00, a page gzipped 0.00" in line
    assert measured == [0, 1] * 3, "one lesson is edited between the two previews"


def test_a_build_that_fails_is_said_and_left_out(measured, capsys):
    assert bench.main(["growth", "--lessons", "2", "3", "4"]) == 1
    out = capsys.readouterr().out
    assert "failed, exit code 1" in out
    assert "slope from 2 to 4 lessons" in out


def test_measuring_a_command_sees_its_time_memory_and_exit_code(tmp_path):
    script = """import time
x, end = b"x" * 50_000_000, time.time() + 0.5
while time.time() < end:
    pass
raise SystemExit(3)"""
    row = bench.measure((sys.executable, "-c", script), tmp_path)
    assert row.code == 3
    assert row.seconds > 0.5 and row.cpu > 0
    assert row.peak > 50_000_000
