"""Watch: what connects a run in its thread with the request that asked for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from attnflow.web._refused import Gone, Refused

Tell = Callable[[str, dict[str, Any]], None]  # an event by name, with its data


class Watch:
    """The run calls `check` often; it raises once nobody waits any more, or the time is up.

    `tell` hears what a client that listens may want to know; it is called from the run's thread.
    """

    def __init__(self, seconds: float, tell: Tell | None = None) -> None:
        self._seconds, self._tell = seconds, tell
        self._deadline = float("inf")
        self._reason: Exception | None = None

    def start(self) -> None:
        """The time runs from here: waiting for a turn does not count."""
        self._deadline = time.monotonic() + self._seconds

    def stop(self, reason: Exception | None = None) -> None:
        """Raise this at the next check; without a reason, nobody waits any more."""
        self._reason = self._reason or reason or Gone()

    def check(self) -> None:
        """Go on, or raise."""
        if self._reason is not None:
            raise self._reason
        if time.monotonic() > self._deadline:
            raise too_long(self._seconds)

    def report(self, what: str, done: int, total: int) -> None:
        """How far the run is; and a check."""
        self.check()
        self.tell("progress", {"what": what, "done": done, "total": total})

    def tell(self, event: str, data: dict[str, Any]) -> None:
        """An event, if somebody listens."""
        if self._tell is not None:
            self._tell(event, data)


def too_long(seconds: float) -> Refused:
    """What is said of a run that was stopped."""
    return Refused(
        "too_long",
        f"this took longer than the {seconds:g} seconds that the server gives to one question, and was stopped. Ask with a shorter "
        'input, or for one row only (rows="query").',
    )
