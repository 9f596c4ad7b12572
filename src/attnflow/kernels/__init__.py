"""Compiled loops: the only place that knows numba. Plain arrays in, plain arrays out; nothing is checked, nothing raises.

`ready()` gives the kernels. It compiles them at the first use on a machine and finds them on disk afterwards.
"""

from __future__ import annotations

import functools
import sys
import threading
from types import ModuleType

import numpy as np

PATIENCE = 1.0  # seconds of compiling after which it is said what takes so long


@functools.cache
def ready() -> ModuleType:
    """The kernels, compiled."""
    notice = threading.Timer(PATIENCE, _say_what_takes_so_long)
    notice.daemon = True
    notice.start()
    try:
        from attnflow.kernels import _flow

        _try_out(_flow)
    finally:
        notice.cancel()
    return _flow


def _say_what_takes_so_long() -> None:
    sys.stderr.write(
        "attnflow: preparing the flow kernels. They are compiled at the first use and kept on disk for the next.\n"
    )


def _try_out(kernels: ModuleType) -> None:
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
