"""Waiting for a run while the client is there: its result at once, or as a stream of events (server-sent events)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from attnflow.web._gate import as_refused
from attnflow.web._log import frames
from attnflow.web._refused import Gone
from attnflow.web._watch import Tell

T = TypeVar("T")

PING = 15.0  # seconds of silence after which a comment shows proxies that somebody is there


async def while_connected(receive: Receive, work: Awaitable[T]) -> T:
    """What the work returns; cancelled, if the client leaves first."""
    task = asyncio.ensure_future(work)
    left = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Gone
        return task.result()
    finally:
        left.cancel()
        task.cancel()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def wants_events(request: Request) -> bool:
    """Whether the client asked for a stream."""
    return "text/event-stream" in request.headers.get("accept", "").lower()


class Events:
    """A response that tells what a run tells, and ends with its `answer` or an `error`."""

    def __init__(self, run: Callable[[Tell], Awaitable[bytes]], said: dict[str, Any]) -> None:
        self._run, self._said = run, said
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI calls it."""
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await while_connected(receive, self._stream(send))

    async def _stream(self, send: Send) -> None:
        worker = asyncio.ensure_future(self._work())
        try:
            while (chunk := await self._next()) is not None:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            worker.cancel()

    async def _next(self) -> bytes | None:
        try:
            async with asyncio.timeout(PING):
                return await self._queue.get()
        except TimeoutError:
            return b": still here\n\n"

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()

        def tell(event: str, data: dict[str, Any]) -> None:
            loop.call_soon_threadsafe(self._queue.put_nowait, _event(event, json.dumps(data).encode()))

        try:
            last = _event("answer", await self._run(tell))
        except Exception as error:
            refused = as_refused(error)
            self._said["error"] = refused.code
            if refused.code == "failed":
                self._said["exception"] = frames(error)
            last = _event("error", json.dumps({**refused.body, "status": refused.status}).encode())
        # By the same way as what the run's thread told before it, so after it.
        loop.call_soon_threadsafe(self._queue.put_nowait, last)
        loop.call_soon_threadsafe(self._queue.put_nowait, None)


def _event(name: str, data: bytes) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"
