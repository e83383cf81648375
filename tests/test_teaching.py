"""What teaching.md tells teachers is so: commands, settings, names, and numbers."""

import re

import pytest
import yaml
from doctor import SPARE, WEIGHT
from helpers_book import ROOT
from helpers_jupyterlab import MEMORY
from matrix import MAX_BINDER
from repository_links import launch_buttons
from test_browser_light import LESSON

TEXT = (ROOT / "teaching.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PAGES_MONTH = 100_000_000_000  # bytes that GitHub Pages asks a site to stay below


def strange_commands(text: str) -> list[str]:
    """Return what a text tells to run, by make or among the workflows, and which is not there."""
    verbs = re.findall(r"(?:^|`)make ([a-z]+)", text, re.M)
    found = [f"make {verb}" for verb in verbs if not re.search(rf"^{verb}:", MAKEFILE, re.M)]
    workflows = {path.stem for path in (ROOT / ".github/workflows").glob("*.yml")}
    chosen = re.findall(r"choose \*(\w+)\*,", text)
    return found + [name for name in chosen if name not in workflows]


def strange_files(text: str) -> list[str]:
    """Return what a text shows as a file or folder of ours, and is none."""
    names = re.findall(r"`([\w./-]+(?:\.\w+|/))`", text)
    return [name for name in names if not (ROOT / name).exists()]


def wrong_numbers(text: str) -> list[str]:
    """Return the numbers of a text that differ from what tests hold the course to."""
    promises = {
        f"at most {LESSON // 1000} kB": "a lesson's page (test_browser_light.py)",
        f"{round(PAGES_MONTH / LESSON, -4):,.0f} such visits": "visits a month",
        f"less than {MEMORY / 1e9:.0f} GB of memory": "memory (test_browser_jupyterlab.py)",
        f"thirty of them want {30 * MEMORY / 1e9:.0f} GB": "memory of a class",
        f"{PAGES_MONTH / 1e9:.0f} GB a month": "the traffic that the visits are counted from",
        f"less than {MAX_BINDER / 1e9:.1f} GB": "space on a hub (tools/matrix.py)",
        f"about {WEIGHT['full'] + SPARE / 2:.0f} GB of space": "space (tools/doctor.py)",
        "measured for books of up to 1,000 lessons": "the sizes of tools/bench.py",
    }
    text = " ".join(text.split())
    return [f"{what}: not {words!r}" for words, what in promises.items() if words not in text]


def configured(text: str) -> tuple[dict, dict]:
    """Return the launch buttons of _config.yml: as they are, and with the line a text shows."""
    (line,) = re.findall(r"```yaml\n(.*\n)```", text)
    ours = (ROOT / "_config.yml").read_text(encoding="utf-8")
    key = re.escape(line.partition(":")[0])
    with_line, times = re.subn(rf"^{key}:.*\n", line, ours, flags=re.M)
    assert times == 1, f"_config.yml has no line for {line}"
    return tuple(yaml.safe_load(settings)["launch_buttons"] for settings in (ours, with_line))


def test_every_name_and_number_is_so():
    assert strange_commands(TEXT) + strange_files(TEXT) == []
    assert wrong_numbers(TEXT) == []


@pytest.mark.parametrize(
    "right, wrong",
    [
        ("make handout", "make handouts"),
        ("`make doctor`", "`make nurse`"),
        ("`_toc.yml`", "`toc.yml`"),
        ("`binder/`", "`hub/`"),
        ("*publish*", "*deploy*"),
        ("270 kB", "250 kB"),
        ("370,000", "300,000"),
        ("1.4 GB", "1 GB"),
        ("less than 1 GB", "less than 2 GB"),
        ("up to 1,000 lessons", "up to 2,000 lessons"),
        ("want 30 GB", "want 3 GB"),
        ("100 GB a month", "500 GB a month"),
        ("2 GB of space", "1 GB of space"),
    ],
)
def test_planted_slip_is_seen(right, wrong):
    assert right in TEXT
    text = TEXT.replace(right, wrong)
    assert strange_commands(text) + strange_files(text) + wrong_numbers(text)


def test_the_line_for_a_hub_is_a_line_of_the_settings_and_adds_its_button():
    before, after = configured(TEXT)
    assert before["jupyterhub_url"] == "", "off until a teacher turns it on"
    assert set(before) == set(after)
    buttons = launch_buttons(after, "https://github.com/o/r")
    assert buttons["jupyterhub_url"] == "https://hub.example.org"
    with pytest.raises(AssertionError, match="no line for"):
        configured(TEXT.replace("  jupyterhub_url: h", "  hub_url: h"))


def test_the_steps_to_publish_are_those_of_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert strange_commands(readme) == []
    assert strange_commands(readme.replace("*publish*", "*deploy*")) == ["deploy"]
    for step in ("*Settings, Pages*", "*GitHub Actions*", "*Issues*", "*publish*"):
        assert step in TEXT and step in readme
