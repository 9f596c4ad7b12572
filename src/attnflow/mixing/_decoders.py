"""What decoders need: keys that few queries see, keys that lie far back, keys that everybody looks at. Before composing.

In a causal graph the first token is seen by every query and the last by one, so products of levels pile up on the first
ones whatever the model does. Each of these steps weights the keys of one level and gives each row the sum that it had.
(Multiplying row i by i + 1, the number of keys it sees, and making rows proportions again would do nothing.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnflow.arrays import row_sums
from attnflow.errors import InvalidArgument
from attnflow.mixing._edges import Matrix
from attnflow.tokens import Tokens

SINKS = "sinks"
SINK_SHARE = 0.3  # of the attention of those that see it, on average: a sink (Gu et al. 2025)

Positions = NDArray[np.bool_]


def by_receptive_field(matrix: Matrix) -> Matrix:
    """Column j divided by the number of queries that see j, those with an entry above 0: n − j in a causal level."""
    seen_by = np.count_nonzero(matrix > 0, axis=0)
    return _same_sums(matrix, matrix / np.maximum(seen_by, 1).astype(matrix.dtype))


def by_distance(matrix: Matrix) -> Matrix:
    """Entry (i, j) divided by its distance |i − j| + 1."""
    position = np.arange(len(matrix), dtype=matrix.dtype)
    return _same_sums(matrix, matrix / (np.abs(position[:, None] - position) + 1))


def set_aside(matrix: Matrix, aside: Positions) -> Matrix:
    """Nobody takes from these positions but themselves; what they had goes to the others in a row, in proportion."""
    kept = ~aside | np.eye(len(matrix), dtype=np.bool_)
    return _same_sums(matrix, matrix * kept)


def sinks_in(matrix: Matrix) -> Positions:
    """The positions that those who see them give more than SINK_SHARE of their attention, on average."""
    others = (matrix > 0) & ~np.eye(len(matrix), dtype=np.bool_)
    received = np.where(others, matrix, 0).sum(axis=0) / np.maximum(others.sum(axis=0), 1)
    found: Positions = received > SINK_SHARE * np.median(row_sums(matrix))
    return found


def positions_aside(given: Any, tokens: Tokens) -> Positions | str | None:
    """`set_aside` as a mask; "sinks" is decided level by level."""
    if given is None or (isinstance(given, str) and given == SINKS and SINKS not in tokens.labels):
        return given
    chosen = tokens.positions(given, "set_aside")
    mask = np.zeros(len(tokens), dtype=np.bool_)
    mask[list(chosen)] = True
    if mask.all():
        raise InvalidArgument("set_aside names every token: nothing would be left to attend to.")
    return mask


def _same_sums(before: Matrix, after: Matrix) -> Matrix:
    """Each row with the sum that it had; a row that lost everything stays empty."""
    was, now = row_sums(before), row_sums(after)
    scaled: Matrix = after * np.divide(was, now, out=np.zeros_like(was), where=now > 0).astype(after.dtype)[:, None]
    return scaled
