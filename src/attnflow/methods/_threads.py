"""Work on all cores that can be watched and stopped: kernels run without the GIL, the main thread waits."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
from numpy.typing import NDArray

from attnflow.errors import InvalidArgument

Counter = NDArray[np.int64]
Work = Callable[[Counter, Counter], None]  # given (done, cancelled): counts what it did, looks whether to stop
Report = Callable[[str, int, int], None]  # told what runs, how much of it is done, of how many; what it raises stops it
Progress = bool | Report | None

PATIENCE = 2.0  # seconds after which a progress bar appears
TICK = 0.1  # seconds between two looks: how late a key press may be seen


def thread_count(threads: int | None) -> int:
    """How many threads to use; None means one for each core this process may run on."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise InvalidArgument(f"threads must be a whole number from 1, or None for all cores; got {threads!r}.")
    return int(threads)


def run_here(work: Work, total: int, title: str, progress: Progress) -> None:
    """Run what is over before a thread would have started."""
    if callable(progress):
        progress(title, 0, total)
    work(np.zeros(1, np.int64), np.zeros(1, np.int64))


def run_together(works: Sequence[Work], total: int, title: str, progress: Progress) -> None:
    """Run each in a thread of its own until all are done.

    Ctrl-C, and whatever a `progress` function raises, stops them within a pair's time and is passed on.
    """
    cancelled = np.zeros(1, np.int64)
    done = [np.zeros(1, np.int64) for _ in works]
    with ThreadPoolExecutor(len(works)) as pool:
        futures = [pool.submit(work, count, cancelled) for work, count in zip(works, done, strict=True)]
        bar = _Told(total, title, progress) if callable(progress) else _Bar(total, title, progress)
        try:
            bar.show(0)
            waiting = wait(futures, timeout=TICK).not_done
            while waiting:
                bar.show(sum(int(count[0]) for count in done))
                waiting = wait(waiting, timeout=TICK).not_done
        finally:
            cancelled[0] = 1
            bar.close()
    for future in futures:
        future.result()


class _Told:
    """A function in place of a bar: told at every look."""

    def __init__(self, total: int, title: str, report: Report) -> None:
        self._total, self._title, self._report = total, title, report

    def show(self, done: int) -> None:
        self._report(self._title, done, self._total)

    def close(self) -> None:
        pass


class _Bar:
    """A progress bar that waits before it appears; None asks whether somebody is looking."""

    def __init__(self, total: int, title: str, wanted: bool | None) -> None:
        self._total, self._title = total, title
        self._wanted = _somebody_looks() if wanted is None else wanted
        self._start = time.monotonic()
        self._bar: object | None = None

    def show(self, done: int) -> None:
        if not self._wanted or time.monotonic() - self._start < PATIENCE:
            return
        if self._bar is None:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=self._total, desc=self._title, unit="pair", unit_scale=True, leave=False)
        bar: object = self._bar
        bar.update(done - bar.n)  # type: ignore[attr-defined]

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()  # type: ignore[attr-defined]


def _somebody_looks() -> bool:
    """Whether this is a terminal or a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return sys.stderr.isatty() or type(shell).__name__ == "ZMQInteractiveShell"
