"""Products with min in place of times, on all cores."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from attnflow.kernels import ready
from attnflow.methods._capacities import Matrix
from attnflow.methods._threads import Counter, Progress, Work, run_together

# Multiplications (here: minima) below which starting threads costs more than it saves, and those that one call does
# at most, so that Ctrl-C is answered soon. Both are estimates.
WORTH_THREADS = 1 << 24
AT_ONCE = 1 << 26


class Products:
    """Calls with (left, left_joint, right, right_joint) give two products at once: Σ_u min(left[s, u], right[u, t])."""

    def __init__(self, threads: int, progress: Progress = None) -> None:
        self._threads, self._progress = threads, progress

    def __call__(self, left: Matrix, left_joint: Matrix, right: Matrix, right_joint: Matrix) -> tuple[Matrix, Matrix]:
        rows, n = len(left), len(right)
        out, out_joint = np.empty((rows, n)), np.empty((rows, n))
        arrays = [np.ascontiguousarray(array) for array in (left, right, left_joint, right_joint)]
        multiply = partial(ready().min_products, *arrays)
        if rows * n * n < WORTH_THREADS:
            multiply(0, rows, out, out_joint)
        else:
            block = max(1, AT_ONCE // (n * n))
            works: list[Work] = [
                partial(_rows_of, multiply, out, out_joint, first * block, self._threads * block, block)
                for first in range(self._threads)
            ]
            run_together(works, rows, "flow bounds", self._progress)
        return out, out_joint


def _rows_of(
    multiply: Callable[..., None],
    out: Matrix,
    out_joint: Matrix,
    first: int,
    step: int,
    block: int,
    done: Counter,
    cancelled: Counter,
) -> None:
    """Every step-th block of rows."""
    for start in range(first, len(out), step):
        if cancelled[0]:
            return
        last = min(start + block, len(out))
        multiply(start, last, out, out_joint)
        done[0] += last - start
