"""Make the pictures of the live page in docs/gallery: server-light, server-dark, server-phone, server-docs.

    python docs/make_server_screenshots.py [folder]

Starts `attnflow serve` with the bundled model, types and asks as a reader would, in Chromium by playwright.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from gallery_screenshots import FLAGS

HERE = Path(__file__).parent / "gallery"
TEXT = "The key to the cabinets"


def ask(page: Any) -> None:
    """Three methods over a sentence."""
    page.locator("#text").fill(TEXT)
    for name in ("raw", "flow"):
        page.locator("form .chip", has_text=name).click()
    page.get_by_role("button", name="Explain").click()
    page.wait_for_selector("#live[data-state=ready] .viewer[data-painted=all]")


def ask_for_a_pair(page: Any) -> None:
    """The flow of a pair that is limited on its way, found by asking."""
    ask(page)
    slider = page.get_by_role("slider", name="Level")
    slider.focus()
    for _ in range(3):
        slider.press("ArrowLeft")
    page.get_by_role("tab", name="Flow").click()
    page.get_by_label("Query", exact=True).select_option("5")
    page.get_by_label("Input", exact=True).select_option("2")
    page.get_by_role("button", name="Show the flow").click()
    page.wait_for_selector("svg.flow")


class Shot(NamedTuple):
    """What is opened, how it is seen, and what is done to it before."""

    scheme: str
    width: int
    height: int
    prepare: Callable[[Any], None] | None = ask
    path: str = "/"


SHOTS = {
    "server-light": Shot("light", 1180, 1000),
    "server-dark": Shot("dark", 1180, 1700, ask_for_a_pair),
    "server-tablet": Shot("dark", 820, 1180),
    "server-phone": Shot("light", 390, 1100),
    "server-start": Shot("light", 1180, 760, None),
    "server-docs": Shot("light", 1180, 1100, None, "/docs"),
}


@contextmanager
def serving() -> Iterator[str]:
    """The address of a server."""
    command = [sys.executable, "-m", "attnflow", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def main(folder: Path) -> None:
    """All of them."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with serving() as address, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=list(FLAGS))
        for name, shot in SHOTS.items():
            context = browser.new_context(
                viewport={"width": shot.width, "height": shot.height}, color_scheme=shot.scheme, device_scale_factor=1
            )
            page = context.new_page()
            page.goto(address.rstrip("/") + shot.path)
            page.wait_for_load_state("networkidle")
            if shot.prepare is not None:
                shot.prepare(page)
            page.mouse.move(2, 2)
            page.wait_for_timeout(400)
            page.screenshot(path=folder / f"{name}.png")
            context.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
