"""A real JupyterLab for the tests: a server of its own, and the steps of a reader in it."""

import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import nbformat
import psutil
from helpers_browser import DESKTOP
from jupyter_server.serverapp import list_running_servers
from playwright.sync_api import TimeoutError as PlaywrightTimeout

# JupyterLab draws only the cells in sight, unless a reader's settings say otherwise.
SETTINGS = {"@jupyterlab/notebook-extension/tracker.jupyterlab-settings": {"windowingMode": "none"}}
NOTEBOOK = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook"
NOTEBOOK_CELL = f"{NOTEBOOK} .jp-Cell"
IDLE = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook-ExecutionIndicator[data-status='idle']"
MARKDOWN_HEADING = ".jp-MarkdownViewer:not(.lm-mod-hidden) h1"
TABS = ".lm-DockPanel-tabBar .lm-TabBar-tabLabel"
CURRENT_TAB = ".lm-DockPanel-tabBar .lm-TabBar-tab.lm-mod-current"
# Whether all cells are drawn, but for those of closed sections, and all links known to the server.
DRAWN = """([notebook, cells]) => {
  const found = selector => [...document.querySelectorAll(`${notebook} ${selector}`)];
  const address = /^(\\w+:|#|\\/)/;
  return found(".jp-Cell").length === cells
    && found(".jp-MarkdownCell:not(.lm-mod-hidden)")
      .every(cell => cell.querySelector(".jp-RenderedMarkdown > *"))
    && found(".jp-RenderedMarkdown a").every(link => address.test(link.getAttribute("href")));
}"""
MEMORY = 1_000_000_000  # bytes that a kernel may take at most; teaching.md has teachers reckon so
PATIENCE = 240  # seconds; a lesson runs in 60 on two cores that do nothing else


def own_settings(folder: Path) -> dict[str, str]:
    """Return an environment in which Jupyter finds no settings of whoever runs the tests."""
    places = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    own = {place: str(folder / place.lower()) for place in places}
    return {**os.environ, **own, "OMP_NUM_THREADS": "1", "HOME": str(folder)}


@contextmanager
def running(command: list, log: Path, ready: Callable, **options):
    """Run a server while the block runs; give its process, and what `ready` returned.

    Arguments: the command, the file for what it says, a function that returns something as soon as
    the server can be used, and options of `subprocess.Popen`.
    Errors: `AssertionError` with the end of the log when it stops or is not ready in a minute.
    """
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, **options)
    try:
        end = time.monotonic() + 60
        while not (found := ready()):
            assert process.poll() is None and time.monotonic() < end, log.read_text()[-2000:]
            time.sleep(0.2)
        yield process, found
    finally:
        process.terminate()
        process.wait()


@contextmanager
def served(command: list[str], folder: Path):
    """Run a JupyterLab while the block runs; give its address, its token and its process.

    Arguments: the command that starts it, and a folder to make for its settings and its log.
    Errors: those of `running`.
    """
    folder.mkdir()
    variables = own_settings(folder)
    for name, settings in SETTINGS.items():
        path = Path(variables["JUPYTER_CONFIG_DIR"], "lab/user-settings", name)
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(settings), encoding="utf-8")

    def ready() -> list[dict]:
        return list(list_running_servers(variables["JUPYTER_RUNTIME_DIR"]))

    with running(command, folder / "log", ready, env=variables) as (process, (server,)):
        yield server["url"], server["token"], psutil.Process(process.pid)


def peak_memory(process: psutil.Process) -> int:
    """Return the most bytes that a process has taken; on macOS, which keeps no record, has now."""
    status = Path(f"/proc/{process.pid}/status")
    if status.is_file():
        return int(re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.M)[1]) * 1024
    memory = process.memory_info()
    return getattr(memory, "peak_wset", memory.rss)


@dataclass
class Lab:
    """A running JupyterLab: the folder it serves, its address, its token, and its process."""

    root: Path
    address: str
    token: str
    process: psutil.Process

    def peak_memory(self) -> int:
        """Return the most bytes that one of its kernels has taken so far."""
        return max(peak_memory(child) for child in self.process.children(recursive=True))

    def at(self, path: str) -> str:
        """Return the address of a page of the server."""
        return f"{self.address}{path}?token={self.token}"

    @contextmanager
    def opened(self, browser, name: str):
        """Open a notebook of lessons/; give the page, and a list of what it asks of other machines.

        The kernels that were started meanwhile are stopped at the end.
        """
        page = browser.new_page(viewport=DESKTOP)
        page.set_default_timeout(PATIENCE * 1000)
        strangers = []
        own = (self.address, self.address.replace("http", "ws", 1), "data:", "blob:")
        page.on("request", lambda asked: asked.url.startswith(own) or strangers.append(asked.url))
        # without `reset` it would open again what was open when the last page was closed
        page.goto(self.at(f"lab/tree/lessons/{name}") + "&reset")
        page.wait_for_selector(IDLE)
        cells = nbformat.read(self.root / "lessons" / name, as_version=4).cells
        page.wait_for_function(DRAWN, arg=[NOTEBOOK, len(cells)])
        try:
            yield page, strangers
        finally:
            page.close()
            asking = browser.new_page()
            for session in asking.request.get(self.at("api/sessions")).json():
                asking.request.delete(self.at(f"api/sessions/{session['id']}"))
            asking.close()

    def absent(self, page, files) -> list[str]:
        """Return which of the files, given as paths from the root, the server does not have."""
        return [file for file in files if not page.request.get(self.at(f"files/{file}")).ok]


def forget(path: Path) -> None:
    """Take the outputs and counts out of a notebook: what it has later, it got by running."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(notebook, path)


def run_all(page, path: Path) -> nbformat.NotebookNode:
    """Press "Run All Cells" and save, as a reader does; return the notebook as it is then saved.

    Returns early when a cell fails, for JupyterLab runs none after it.
    Errors: `AssertionError` when it takes longer than `PATIENCE`.
    """
    page.click(".lm-MenuBar-itemLabel:text-is('Run')")
    page.click(".lm-Menu-itemLabel:text-is('Run All Cells')")
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        page.wait_for_timeout(1000)
        page.wait_for_selector(IDLE)
        page.keyboard.press("ControlOrMeta+s")
        page.wait_for_timeout(500)
        notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
        code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
        if failures(notebook) or all(cell.execution_count for cell in code):
            return notebook
    raise AssertionError(f"{path.name} does not come to its end in {PATIENCE} seconds")


def failures(notebook: nbformat.NotebookNode) -> list[str]:
    """Return what went wrong in an executed notebook: exceptions, and whatever went to stderr."""
    found = []
    for number, cell in enumerate(notebook.cells, start=1):
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                found.append(f"cell {number}: {output.ename}: {output.evalue}")
            elif output.get("name") == "stderr":
                found.append(f"cell {number}: {output.text.strip()}")
    return found


def links_to_files(page) -> dict[str, str]:
    """Return the links to files that the notebook in sight shows: path, and text of the first."""
    found = page.evaluate(
        """selector => [...document.querySelectorAll(`${selector} .jp-RenderedMarkdown a[href]`)]
          .filter(link => new URL(link.href).pathname.includes("/files/"))
          .map(link => [new URL(link.href).pathname.split("/files/")[1], link.textContent])""",
        NOTEBOOK,
    )
    return dict(reversed(found))


def untypeset(page) -> list[str]:
    """Return what MathJax did not understand in the notebook in sight; it draws that in red."""
    found = page.locator(f"{NOTEBOOK} :is(mjx-merror, [mathcolor=red], [style*='color: red'])")
    return found.all_inner_texts()


def press(page, text: str, file: str, patience: float = 30) -> str | None:
    """Press a link of the notebook in sight; return the name of the file that is then shown.

    Returns None when no such file is shown after `patience` seconds. Comes back to the notebook.
    """
    name = PurePosixPath(file).name
    here = page.locator(f"{CURRENT_TAB} .lm-TabBar-tabLabel").inner_text()
    page.click(f"{NOTEBOOK} .jp-RenderedMarkdown a:text-is({text!r}) >> nth=0")
    shown = NOTEBOOK_CELL if name.endswith(".ipynb") else MARKDOWN_HEADING
    try:
        page.wait_for_selector(f"{CURRENT_TAB}:has-text('{name}')", timeout=patience * 1000)
        page.wait_for_selector(shown, timeout=patience * 1000)
    except PlaywrightTimeout:
        return None
    page.click(f"{TABS}:text-is('{here}')")
    return name
