"""A real browser, without a network; skipped with its reason where it is missing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Headless Chromium."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright, from the development group")
    if CHROMIUM is None:
        pytest.skip("needs a Chromium: apt-get install chromium")
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Open a page's HTML from disk with the network off; at the end, no console message may be left."""
    contexts: list[Any] = []
    messages: list[str] = []

    def open_page(
        text: str, *, scheme: str = "light", width: int = 1280, height: int = 900, touch: bool = False
    ) -> Any:
        path = tmp_path / f"{len(contexts)}.html"
        path.write_text(text, encoding="utf-8")
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, offline=True, has_touch=touch
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on(
            "request",
            lambda request: (
                messages.append(request.url) if not request.url.startswith(("file:", "data:", "blob:")) else None
            ),
        )
        page.goto(path.as_uri())
        painted(page)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert messages == []


def painted(page: Any) -> None:
    """Wait until everything that was asked for is drawn."""
    page.wait_for_selector("[data-painted=all]", state="attached")
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30))))"
    )
