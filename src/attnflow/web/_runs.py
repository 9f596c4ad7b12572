"""Runs: a few at the same time in threads, some more wait their turn, the rest is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from attnflow.web._limits import Limits
from attnflow.web._refused import Refused
from attnflow.web._watch import Watch, too_long

T = TypeVar("T")

GRACE = 2.0  # seconds beyond its limit, after which a run that does not listen is no longer waited for


class Runs:
    """Where work is done. A slot is free again when its thread is done, not when the client has left."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._count = int(limits.runs or 1)
        self._slots = asyncio.Semaphore(self._count)
        self._pool = ThreadPoolExecutor(self._count, "attnflow-run")
        self._watches: set[Watch] = set()
        self.waiting = 0
        self.stopping = False

    @property
    def running(self) -> int:
        """How many run now."""
        return len(self._watches)

    async def run(self, work: Callable[[Watch], T], watch: Watch) -> T:
        """What `work` returns, once it has had its turn. Cancelling this stops the work."""
        await self._turn(watch)
        watch.start()
        self._watches.add(watch)
        future = asyncio.get_running_loop().run_in_executor(self._pool, work, watch)
        future.add_done_callback(lambda done: self._done(watch, done))
        try:
            return await asyncio.wait_for(asyncio.shield(future), self._limits.seconds + GRACE)
        except TimeoutError:
            if future.done():
                raise  # the work's own
            raise too_long(self._limits.seconds) from None
        finally:
            watch.stop()

    async def _turn(self, watch: Watch) -> None:
        """Wait for a slot."""
        if self.stopping:
            raise stopping()
        if self._slots.locked():
            if self.waiting >= self._limits.waiting:
                raise self._busy(f"{self._count} runs are under way and {self.waiting} wait already")
            watch.tell("waiting", {"before_you": self.waiting})
        self.waiting += 1
        try:
            async with asyncio.timeout(self._limits.seconds):
                await self._slots.acquire()
        except TimeoutError:
            raise self._busy(f"no turn came within {self._limits.seconds:g} seconds") from None
        finally:
            self.waiting -= 1
        if self.stopping:
            self._slots.release()
            raise stopping()

    def _busy(self, why: str) -> Refused:
        return Refused("busy", f"the server is busy: {why}. Try again in some seconds.", {"Retry-After": "5"})

    def _done(self, watch: Watch, future: asyncio.Future[T]) -> None:
        self._watches.discard(watch)
        self._slots.release()
        if not future.cancelled():
            future.exception()  # looked at, so that nobody complains of one that no client waits for

    def stop(self) -> None:
        """No new runs; those under way end at their next check."""
        self.stopping = True
        for watch in list(self._watches):
            watch.stop(stopping())
        self._pool.shutdown(wait=False, cancel_futures=True)


def stopping() -> Refused:
    """What is said while the server stops."""
    return Refused("stopping", "the server is being stopped. Try again when it is back.", {"Retry-After": "30"})
