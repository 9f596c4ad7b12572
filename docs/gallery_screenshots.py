"""The pages and the widget as a reader sees them: screenshots in both schemes, from a phone to a desk."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-sync",
)  # fmt: skip


def at_start(page: Any) -> None:
    """As it opens."""


def on_flow(page: Any) -> None:
    """The flow of a pair with a cut in the middle."""
    page.get_by_role("tab", name="Flow").click()
    page.get_by_label("Pair", exact=True).select_option("1")


def on_matrix(page: Any) -> None:
    """Queries by inputs."""
    page.get_by_role("tab", name="Queries").click()


def on_hover(page: Any) -> None:
    """A token under the pointer."""
    page.locator(".panel").nth(1).locator(".unit").nth(6).hover()


class Shot(NamedTuple):
    """A page, how it is seen, and what is done to it before."""

    source: str
    scheme: str
    width: int
    prepare: Callable[[Any], None] = at_start


SHOTS = {
    "page-light": Shot("page-texts", "light", 1180),
    "page-flow": Shot("page-texts", "light", 1180, on_flow),
    "page-dark": Shot("page-difference", "dark", 1180, on_matrix),
    "page-answer": Shot("page-answer", "dark", 1180, on_hover),
    "page-image": Shot("page-image", "dark", 900),
    "page-tablet": Shot("page-texts", "light", 820),
    "page-phone": Shot("page-texts", "dark", 390),
}


def page_screenshots(folder: Path, long: Path | None) -> None:
    """The pages of the gallery, and a long one that is not kept."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None or importlib.util.find_spec("playwright") is None:
        print("no Chromium or no playwright: the screenshots stay as they are")
        return
    from playwright.sync_api import sync_playwright

    sources = {path.stem: path for path in folder.glob("page-*.html")} | ({long.stem: long} if long else {})
    shots = SHOTS | ({"page-long": Shot("page-long", "light", 1180, on_matrix)} if long else {})
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=list(FLAGS))
        for name, shot in shots.items():
            context = browser.new_context(
                viewport={"width": shot.width, "height": 800}, color_scheme=shot.scheme, offline=True, device_scale_factor=1.5
            )  # type: ignore[arg-type]  # fmt: skip
            page = context.new_page()
            page.goto(sources[shot.source].as_uri())
            page.wait_for_selector("[data-painted=all]")
            shot.prepare(page)
            page.wait_for_timeout(400)
            page.screenshot(path=folder / f"{name}.png", full_page=True)
            context.close()
            smaller(folder / f"{name}.png", photograph=shot.source == "page-image")
        browser.close()


def widget_screenshot(path: Path) -> None:
    """The widget in a real JupyterLab: its test takes the picture."""
    test = Path(__file__).parents[1] / "tests" / "render" / "test_widget.py"
    seen = {**os.environ, "ATTNFLOW_SCREENSHOT": str(path.resolve())}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", "jupyterlab", str(test)],
        env=seen,
        cwd=test.parents[2],
        check=False,
    )
    if done.returncode or not path.exists():
        print("no JupyterLab: the screenshot of the widget stays as it is")
    else:
        smaller(path)


def smaller(path: Path, *, photograph: bool = False) -> None:
    """256 colours are enough for what is drawn, and, dithered, for what is photographed; at a third of the size."""
    from PIL import Image

    with Image.open(path) as opened:
        image = opened.convert("RGB")
    dither = Image.Dither.FLOYDSTEINBERG if photograph else Image.Dither.NONE
    image.quantize(palette=image.quantize(256), dither=dither).save(path, optimize=True)
