"""What teaching.md tells teachers is so: commands, settings, names, and numbers."""

import re

import pytest
import yaml
from helpers_book import ROOT
from helpers_jupyterlab import MEMORY
from matrix import MAX_BINDER
from repository_links import launch_buttons
from test_browser_light import LESSON

TEXT = (ROOT / "teaching.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PAGES_MONTH = 100_000_000_000  # bytes that GitHub Pages asks a site to stay below


def strange_names(text: str) -> list[str]:
    """Return what a text shows as a command, a file or a workflow of ours, and is none."""
    found = [
        f"make {verb}"
        for verb in re.findall(r"(?:^|`)make ([a-z]+)", text, re.M)
        if not re.search(rf"^{verb}:", MAKEFILE, re.M)
    ]
    for name in re.findall(r"`([\w./-]+(?:\.\w+|/))`", text):
        if not (ROOT / name).exists():
            found.append(name)
    workflows = {path.stem for path in (ROOT / ".github/workflows").glob("*.yml")}
    return found + [
        name for name in re.findall(r"choose \*(\w+)\*,", text) if name not in workflows
    ]


def wrong_numbers(text: str) -> list[str]:
    """Return the numbers of a text that differ from what tests hold the course to."""
    promises = {
        f"at most {LESSON // 1000} kB": "a lesson's page (test_browser_light.py)",
        f"{round(PAGES_MONTH / LESSON, -4):,.0f} such visits": "visits a month",
        f"less than {MEMORY / 1e9:.0f} GB of memory": "memory (test_browser_jupyterlab.py)",
        f"less than {MAX_BINDER / 1e9:.1f} GB": "space on a hub (tools/matrix.py)",
        "measured for books of up to 1,000 lessons": "the sizes of tools/bench.py",
    }
    text = " ".join(text.split())
    return [f"{what}: not {words!r}" for words, what in promises.items() if words not in text]


def setting(text: str) -> dict:
    """Return the settings that a text shows, as _config.yml would hold them."""
    (block,) = re.findall(r"```yaml\n(.*?)```", text, re.S)
    return yaml.safe_load(block)


def test_every_name_and_number_is_so():
    assert strange_names(TEXT) == []
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
    ],
)
def test_planted_slip_is_seen(right, wrong):
    assert right in TEXT
    text = TEXT.replace(right, wrong)
    assert strange_names(text) + wrong_numbers(text)


def test_the_line_for_a_hub_is_a_line_of_the_settings_and_adds_its_button():
    ours = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["launch_buttons"]
    (shown,) = setting(TEXT).values()
    assert list(setting(TEXT)) == ["launch_buttons"] and set(shown) <= set(ours)
    assert ours["jupyterhub_url"] == "", "off until a teacher turns it on"
    buttons = launch_buttons(ours | shown, "https://github.com/o/r")
    assert buttons["jupyterhub_url"] == shown["jupyterhub_url"]
