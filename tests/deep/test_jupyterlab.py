"""A reader opens each notebook in a real JupyterLab, and runs Lesson 46 whole.

The server runs in a copy of the course whose notebooks have lost their outputs: what
they hold afterwards came from the kernel, through the browser.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from jupyter_server.serverapp import list_running_servers

from tools.bands import sanitize
from tools.notebooks import NAMES, NOTEBOOKS, ROOT, path_of, printed, read

pytestmark = pytest.mark.xdist_group("jupyterlab")

# JupyterLab draws only the cells in sight, unless a reader's settings say otherwise.
TRACKER = "lab/user-settings/@jupyterlab/notebook-extension/tracker.jupyterlab-settings"
NOTEBOOK = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook"
IDLE = f"{NOTEBOOK}-ExecutionIndicator[data-status='idle']"
LINKS = f"{NOTEBOOK} .jp-RenderedMarkdown a[href*='/files/']"
# MathJax draws in red what it does not understand.
UNTYPESET = f"{NOTEBOOK} :is(mjx-merror, [mathcolor=red], [style*='color: red'])"
# All cells are drawn, but for those of closed sections, and all links are resolved.
DRAWN = """([notebook, cells]) => {
  const found = selector => [...document.querySelectorAll(`${notebook} ${selector}`)];
  return found(".jp-Cell").length === cells
    && found(".jp-MarkdownCell:not(.lm-mod-hidden)")
      .every(cell => cell.querySelector(".jp-RenderedMarkdown > *"))
    && found(".jp-RenderedMarkdown a")
      .every(link => /^(\\w+:|#|\\/)/.test(link.getAttribute("href")));
}"""
PATIENCE = 240  # seconds


def without_outputs(path: Path) -> None:
    """Take outputs and counts out of a notebook's file."""
    notebook = read(path)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(notebook, path)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Run JupyterLab; give the folder that it serves, its address and its token."""
    folder = tmp_path_factory.mktemp("lab")
    root = folder / "course"
    shutil.copytree(ROOT / "lessons", root / "lessons")
    for page in ROOT.glob("*.md"):
        shutil.copy(page, root)
    for path in NOTEBOOKS:
        without_outputs(root / "lessons" / path.name)
    places = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    own = {place: str(folder / place) for place in places} | {"HOME": str(folder)}
    settings = folder / "JUPYTER_CONFIG_DIR" / TRACKER
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"windowingMode": "none"}), encoding="utf-8")
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--ServerApp.port=0", f"--ServerApp.root_dir={root}"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, env={**os.environ, **own}, stdout=log, stderr=log
        )
    end = time.monotonic() + 60
    while not (servers := list(list_running_servers(own["JUPYTER_RUNTIME_DIR"]))):
        log_text = (folder / "log").read_text()
        assert process.poll() is None and time.monotonic() < end, log_text[-2000:]
        time.sleep(0.2)
    yield root, servers[0]["url"], servers[0]["token"]
    process.terminate()
    process.wait()


@contextmanager
def opened(lab, browser, name: str):
    """Open a notebook; give the page when all of it is drawn."""
    root, address, token = lab
    page = browser.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    page.goto(f"{address}lab/tree/lessons/{name}?token={token}&reset")
    page.wait_for_selector(IDLE)
    cells = read(root / "lessons" / name).cells
    page.wait_for_function(DRAWN, arg=[NOTEBOOK, len(cells)])
    yield page
    page.close()


@pytest.mark.parametrize("name", NAMES)
def test_notebook_opens_typeset_and_its_links_lead_somewhere(name, lab, browser):
    with opened(lab, browser, path_of(name).name) as page:
        links = page.eval_on_selector_all(LINKS, "all => all.map(link => link.href)")
        assert links
        dead = [link for link in set(links) if not page.request.get(link).ok]
        assert not dead
        assert page.locator(UNTYPESET).all_inner_texts() == []


def test_lesson_46_runs_whole_and_shows_what_is_stored(lab, browser):
    path = path_of("46")
    file = lab[0] / "lessons" / path.name
    with opened(lab, browser, path.name) as page:
        page.click(".lm-MenuBar-itemLabel:text-is('Run')")
        page.click(".lm-Menu-itemLabel:text-is('Run All Cells')")
        end = time.monotonic() + PATIENCE
        while any(
            c.cell_type == "code" and not c.execution_count for c in read(file).cells
        ):
            assert time.monotonic() < end, "the notebook does not come to its end"
            page.wait_for_timeout(2000)
            page.keyboard.press("ControlOrMeta+s")
            page.wait_for_timeout(500)
    shown = [sanitize(printed(cell)) for cell in read(file).cells]
    assert shown == [sanitize(printed(cell)) for cell in read(path).cells]
