"""The steps of a mix, on one level's matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnflow.arrays import row_sums
from attnflow.errors import InvalidAttention
from attnflow.mixing._edges import Matrix


def average(shares: NDArray[np.float64], matrices: Matrix) -> Matrix:
    used = np.flatnonzero(shares)
    if len(used) == 1:
        alone: Matrix = matrices[used[0]]
        return alone
    # one pass over the heads: np.average would copy them all, and BLAS loses time in threads on a busy machine
    averaged: Matrix = np.einsum("h,hij->ij", shares.astype(matrices.dtype), matrices)
    return averaged


def checked_fusion(fused: Any, shape: tuple[int, ...]) -> Matrix:
    matrix = np.asarray(fused)
    if matrix.shape != shape or matrix.dtype.kind not in "fiub" or not np.isfinite(matrix).all():
        raise InvalidAttention(
            f"a function given as heads must return finite numbers of shape {shape}; got {matrix.dtype} of shape {matrix.shape}."
        )
    return matrix if matrix.dtype.kind == "f" else matrix.astype(np.float64)


def without_smallest(matrix: Matrix, share: float, protected: NDArray[np.bool_]) -> Matrix:
    """The smallest `share` of all entries becomes 0; ties stay, and so does what goes to protected (special) tokens.

    The quantile is over the whole matrix, as in vit-explain (Gildenblat 2020), which means to protect the class token
    and protects the first entry alone.
    """
    count = int(matrix.size * share)
    smallest_kept = np.partition(matrix.ravel(), count)[count]
    thinned: Matrix = matrix * ((matrix >= smallest_kept) | protected)
    return thinned


def kept_entries(level: Matrix, top_k: int | None, threshold: float | None) -> NDArray[np.bool_]:
    """Which entries stay: each row's `top_k` largest, ties included, and of those what lies above the threshold."""
    kept: NDArray[np.bool_] = np.ones(level.shape, dtype=np.bool_)
    if top_k is not None and top_k < level.shape[1]:
        kept &= level >= np.partition(level, -top_k, axis=1)[:, -top_k, None]
    if threshold is not None:
        kept &= level > threshold
    return kept


def to_proportions(level: Matrix) -> None:
    """Divide each row by its sum, in place; an empty row keeps its own token."""
    sums = row_sums(level)
    empty = sums <= 0
    level /= np.where(empty, 1, sums).astype(level.dtype)[:, None]  # not times 1 / sum, which may overflow
    np.einsum("ii->i", level)[empty] = 1


def at_least_float32(array: Matrix) -> Matrix:
    wide: Matrix = array if array.dtype.itemsize >= 4 else array.astype(np.float32)
    return wide
