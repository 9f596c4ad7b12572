"""Compiled loops: the only place that knows numba. Plain arrays in, plain arrays out; nothing is checked, nothing raises.

`ready()` gives the kernels of flow and its bounds, `ready_to_split()` those and the one that splits a flow into paths. Each
compiles at the first use on a machine and is found on disk afterwards. What is on disk may be damaged, or the disk full: then
it is compiled anew, and kept again if that can be done.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from types import ModuleType

import numpy as np

PATIENCE = 1.0  # seconds of compiling after which it is said what takes so long


@functools.cache
def ready() -> ModuleType:
    """The kernels of flow and its bounds, compiled."""
    return _prepared(_try_flow)


@functools.cache
def ready_to_split() -> ModuleType:
    """All kernels, compiled."""
    ready()
    return _prepared(_try_paths)


def _prepared(try_out: Callable[[ModuleType], None]) -> ModuleType:
    finished = threading.Event()
    threading.Thread(target=_say_what_takes_so_long, args=(finished,), daemon=True).start()
    try:
        from attnflow.kernels import _flow

        for remedy in (_flow.empty_the_cache, _flow.do_without_cache):
            try:
                try_out(_flow)
                break
            except Exception:  # whatever unpickling half a file or a full disk raises
                remedy()
        else:
            try_out(_flow)
    finally:
        finished.set()
    return _flow


def _say_what_takes_so_long(finished: threading.Event) -> None:
    """Only if it is compiling that takes long: a busy machine may be as slow at importing and loading."""
    if finished.wait(PATIENCE):
        return
    while not _compiling():
        if finished.wait(0.1):
            return
    sys.stderr.write(
        "attnflow: preparing the flow kernels. They are compiled at the first use and kept on disk for the next.\n"
    )


def _compiling() -> bool:
    kernels = sys.modules.get(f"{__name__}._flow")
    return any(sum(kernel.stats.cache_misses.values()) for kernel in getattr(kernels, "entries", ()))


def _try_flow(kernels: ModuleType) -> None:
    """Call each kernel once on the smallest graph, so that it is compiled or loaded."""
    one, square = np.zeros(1, np.int64), np.ones((1, 1))
    kernels.search_pairs(
        np.ones(1),
        1,
        square,
        square,
        one,
        one,
        np.ones(1),
        0.0,
        0.0,
        np.ones(1),
        0,
        1,
        one.copy(),
        one.copy(),
        np.zeros(1),
        np.ones((2, 1)),
    )
    kernels.min_products(square, square, square, square, 0, 1, square.copy(), square.copy())


def _try_paths(kernels: ModuleType) -> None:
    edge, none = np.array([[1, 0, 0]]), np.zeros((1, 2), np.int64)
    kernels.widest_paths(edge, np.ones(1), 0, 0, 0, 0.0, none, np.zeros(1))
