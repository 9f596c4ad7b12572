"""How far a run is: rows, rows per second, and how long it will still take."""

from __future__ import annotations

import sys
import time
from typing import Any

from attnflow.batch._work import Finished

EVERY = 15.0  # seconds between two lines, where nobody sees a bar


class Progress:
    """Said on stderr: as a bar in a terminal, else as a line now and then. False says nothing; None only where somebody looks."""

    def __init__(self, wanted: bool | None, total: int | None, before: int) -> None:
        self._looks = sys.stderr.isatty()
        self._wanted = self._looks if wanted is None else wanted
        self._total, self.before = total, before
        self.inputs = self.rows = self.errors = 0
        self._first: tuple[float, int] | None = (
            None  # when the first part came, and its size: loading a model is no rate
        )
        self._bar: Any = None
        self._said = time.monotonic()

    def __enter__(self) -> Progress:
        if self._wanted and self._looks:
            from tqdm import tqdm

            self._bar = tqdm(total=self._total, initial=self.before, unit="row", dynamic_ncols=True, file=sys.stderr)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def add(self, done: Finished) -> None:
        """One part more."""
        self.inputs, self.rows, self.errors = (
            self.inputs + done.inputs, self.rows + done.rows, self.errors + done.errors
        )  # fmt: skip
        now = time.monotonic()
        self._first = self._first or (now, done.inputs)
        if self._bar is not None:
            self._bar.update(done.inputs)
            if self.errors:
                self._bar.set_postfix_str(f"{self.errors:,} errors")
        elif self._wanted and now - self._said > EVERY:
            self._said = now
            sys.stderr.write(f"{self.line(now)}\n")
            sys.stderr.flush()

    def line(self, now: float) -> str:
        """All of it in one line."""
        count = self.before + self.inputs
        since, first = self._first or (now, 0)
        rate = (self.inputs - first) / (now - since) if now > since else 0.0
        said = [
            f"{count:,} rows"
            if self._total is None
            else f"{count:,} of {self._total:,} rows ({count / max(1, self._total):.0%})"
        ]
        if rate:
            said.append(f"{rate:,.1f} rows/s")
        if rate and self._total is not None:
            said.append(f"{duration((self._total - count) / rate)} left")
        if self.errors:
            said.append(f"{self.errors:,} errors")
        return ", ".join(said)


def duration(seconds: float) -> str:
    """For people to read."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
