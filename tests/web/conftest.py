"""A server as it runs: a real socket, a thread of its own, the bundled model."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import httpx
import pytest
import uvicorn

from attnflow import web
from attnflow.web._models import bundled
from attnflow.web._serve import configured
from tests.browser import painted
from tests.one_thread import one_thread as one_thread

TEXT = "The key to the cabinets"
Open = Callable[..., Any]
Serving = Callable[..., AbstractContextManager[httpx.Client]]


@pytest.fixture(scope="session")
def model() -> web.Served:
    """Loaded once for all servers of the tests."""
    return bundled()


@pytest.fixture(scope="session")
def serving(model: web.Served) -> Serving:
    """Start a server; inside the block, a client that knows its address."""

    @contextlib.contextmanager
    def start(models: Any = None, **options: Any) -> Iterator[httpx.Client]:
        made = web.app({"verb_number": model} if models is None else models, **options)
        config = configured(made, options.get("limits") or web.Limits(stopping=1))
        config.port = 0
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            until(lambda: server.started or not thread.is_alive(), 180)  # kernels may have to be compiled
            port = server.servers[0].sockets[0].getsockname()[1]
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()

    return start


@pytest.fixture(scope="session")
def client(serving: Serving) -> Iterator[httpx.Client]:
    """One server for every test that needs no other."""
    with serving(limits=web.Limits(body_seconds=1.0)) as found:
        yield found


def until(happened: Callable[[], Any], seconds: float = 30) -> None:
    """Wait for something; fail if it does not come."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "this did not happen in time"
        time.sleep(0.01)


@pytest.fixture
def opened(chromium: Any, client: httpx.Client) -> Iterator[Open]:
    """Open an address; at the end no console message may be left, and nothing may have been asked of another host."""
    contexts: list[Any] = []
    messages: list[str] = []
    host = f"http://127.0.0.1:{client.base_url.port}"

    def open_page(
        hash_: str = "", *, scheme: str = "light", width: int = 1280, path: str = "/", base: str = host
    ) -> Any:
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on(
            "request",
            lambda request: (
                messages.append(request.url) if not request.url.startswith((base, "data:", "blob:")) else None
            ),
        )
        page.goto(f"{base}{path}{hash_}")
        if path == "/":
            page.wait_for_selector("#live[data-state=ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    # A refused question is an answer with a 4xx status, which Chromium mentions; a failed connection too.
    expected = re.compile("the server responded with a status of 4|net::ERR_FAILED")
    assert [message for message in messages if not expected.search(message)] == []


def answered(page: Any) -> None:
    page.wait_for_selector("#live[data-state=ready] .viewer[data-painted=all]")
    painted(page)
