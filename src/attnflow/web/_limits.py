"""What a server gives at most: to one request, and to all of them together."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields

from attnflow.errors import InvalidArgument


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Limits:
    """A request that asks for more is answered with a 4xx status that says so.

    `tokens` of one text; `pixels` of one image; `body` bytes of one request, which must arrive within `body_seconds`; `seconds` that one run
    may take; `runs` at the same time (None: one for each core), while at most `waiting` others wait their turn;
    `pairs` of a flow up to which all rows are computed unless the question says otherwise; `graphs` megabytes of captured
    attention that are kept for the next question about the same input; `stopping` seconds that runs get to finish when
    the server stops.
    """

    tokens: int = 512
    pixels: int = 40_000_000
    body: int = 8_000_000
    body_seconds: float = 10.0
    seconds: float = 60.0
    runs: int | None = None
    waiting: int = 100
    pairs: int = 50_000
    graphs: int = 64
    stopping: float = 10.0

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name == "runs" and value is None:
                object.__setattr__(self, "runs", _cores())
            elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
                if one.name in ("graphs", "waiting", "stopping") and value == 0:
                    continue
                raise InvalidArgument(f"the limit {one.name} must be a number above 0, got {value!r}.")

    @property
    def letters(self) -> int:
        """A text longer than this is not even cut into tokens."""
        return 40 * self.tokens

    @property
    def threads(self) -> int:
        """What one flow may use, so that all runs together use the cores there are."""
        return max(1, _cores() // (self.runs or 1))
