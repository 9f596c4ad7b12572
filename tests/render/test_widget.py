"""The viewer as a widget: its parts, and in a real JupyterLab."""

from __future__ import annotations

import builtins
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attnflow import render
from attnflow.errors import MissingExtra
from attnflow.render import _widget
from tests.render.views import VIEWS, view


def test_a_widget_holds_the_document_and_the_viewer() -> None:
    pytest.importorskip("anywidget")
    made = render.widget(VIEWS["some rows"](), title="Rows")
    assert json.loads(made.document) == render.document(VIEWS["some rows"](), title="Rows")
    assert made.query == 4
    assert "export default" in str(made._esm)
    assert ".attnflow" in str(made._css)


def test_without_anywidget_the_message_has_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name == "anywidget":
            raise ImportError(name)
        return real(name, *rest)

    _widget._widget_class.cache_clear()
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtra, match=r'pip install "attnflow\[notebook\]"'):
        render.widget(view())


CELL = """
import numpy as np, attnflow as af
from attnflow import render
words = "the keys to the cabinet in the old house are".split()
levels = np.random.default_rng(1).dirichlet(np.full(10, 0.4), size=(4, 10))
graph = af.AttentionGraph(0.5 * levels + 0.5 * np.eye(10), words)
shown = render.widget([af.raw(graph), af.rollout(graph)], query="are", graphs=graph)
shown
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """A JupyterLab on a free port of this machine, with one notebook; its address."""
    pytest.importorskip("jupyterlab", reason="needs jupyterlab, from the development group")
    pytest.importorskip("anywidget")
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "id": f"c{i}", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
        for i, source in enumerate((CELL, "shown.query"))
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    (tmp_path / "n.ipynb").write_text(
        json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})
    )
    home = tmp_path / "home"
    environment = {
        **os.environ,
        "HOME": str(home),
        "JUPYTER_CONFIG_DIR": str(home / "c"),
        "JUPYTER_RUNTIME_DIR": str(home / "r"),
        "JUPYTER_PREFER_ENV_PATH": "1",
    }
    log = (tmp_path / "lab.log").open("w+")
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0", f"--ServerApp.root_dir={tmp_path}",
        "--IdentityProvider.token=secret", "--LabApp.news_url=", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]  # fmt: skip
    server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
    try:
        yield _address(server, tmp_path / "lab.log")
    finally:
        server.terminate()
        server.wait(30)
        log.close()


def _address(server: subprocess.Popen[bytes], log: Path) -> str:
    for _ in range(240):
        found = re.search(r"http://127\.0\.0\.1:(\d+)/lab", log.read_text())
        if found and _answers(f"http://127.0.0.1:{found[1]}/api?token=secret"):
            return f"http://127.0.0.1:{found[1]}"
        assert server.poll() is None, log.read_text()
        time.sleep(0.25)
    raise AssertionError(log.read_text())


def _answers(address: str) -> bool:
    """It names its address a moment before it listens there."""
    try:
        urllib.request.urlopen(address, timeout=30).close()
    except OSError:
        return False
    return True


def run(page: Any, cell: Any, appears: str) -> None:
    """Run a cell until something appears: a kernel that is still starting may drop the first request."""
    from playwright.sync_api import TimeoutError as Late

    for _ in range(4):
        cell.locator(".cm-content").click()
        page.keyboard.press("Shift+Enter")
        try:
            page.wait_for_selector(appears, state="attached", timeout=30_000)
            return
        except Late:
            continue
    raise AssertionError(f"no {appears} after four runs: {page.locator('.jp-OutputArea').all_inner_texts()}")


def test_the_widget_in_jupyterlab(lab: str, chromium: Any) -> None:
    context = chromium.new_context(viewport={"width": 1200, "height": 1000})
    page = context.new_page()
    page.set_default_timeout(90_000)
    try:
        page.goto(f"{lab}/lab/tree/n.ipynb?token=secret&reset")
        cells = page.locator(".jp-Notebook .jp-CodeCell")
        page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for(state="attached")
        run(page, cells.first, ".attnflow[data-painted=all]")
        viewer = page.locator(".attnflow").first
        assert viewer.locator(".panel h3").all_inner_texts() == ["raw", "rollout"]
        viewer.locator(".unit", has_text="keys").first.click()
        assert "“keys”" in viewer.locator(".question").inner_text()
        run(page, cells.nth(1), ".jp-CodeCell:nth-of-type(2) .jp-OutputArea-output, .jp-OutputArea-executeResult")
        answer = cells.nth(1).locator(".jp-OutputArea-output")
        assert answer.inner_text().strip() == "1"  # Python knows what was pinned
        if os.environ.get("ATTNFLOW_SCREENSHOT"):  # make gallery asks for it
            page.add_style_tag(content=".Toastify { display: none }")  # news of Jupyter
            viewer.evaluate("root => root.scrollIntoView()")
            page.screenshot(path=os.environ["ATTNFLOW_SCREENSHOT"])
    finally:
        context.close()
