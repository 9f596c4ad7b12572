"""Edge rules and ways to fuse heads: what an entry of a level is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnflow.errors import InvalidArgument

Matrix = NDArray[Any]
Fuse = Callable[[Matrix], Matrix]  # (heads, n, n) → (n, n)


class EdgeRule(NamedTuple):
    """What counts as the strength of an edge: a value per head, and what is done after the heads are fused."""

    per_head: Callable[[Matrix, Matrix | None], Matrix]
    fused: Callable[[Matrix], Matrix]
    needs_gradients: bool


def _positive(matrix: Matrix) -> Matrix:
    return np.maximum(matrix, 0)


def _weighted(weights: Matrix, gradients: Matrix | None) -> Matrix:
    if gradients is None:
        raise InvalidArgument("this edge rule needs gradients, which were not recorded.")
    return weights * gradients


EDGES: dict[str, EdgeRule] = {
    # A (Abnar & Zuidema 2020)
    "attention": EdgeRule(lambda weights, _: weights, lambda matrix: matrix, False),
    # (mean over heads of ∇A ⊙ A)⁺: gradient rollout (Gildenblat 2020)
    "gradient": EdgeRule(_weighted, _positive, True),
    # mean over heads of (∇A ⊙ A)⁺ (Chefer, Gur & Wolf 2021, eq. 5)
    "chefer": EdgeRule(
        lambda weights, gradients: _positive(_weighted(weights, gradients)), lambda matrix: matrix, True
    ),
}

FUSIONS: dict[str, Fuse] = {
    "max": lambda matrices: matrices.max(axis=0),
    "min": lambda matrices: matrices.min(axis=0),
}
