"""Pages opened from disk in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import painted


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
