"""What may be chosen: the options of a mix, checked, as arrays that say it for each layer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnflow.arrays import as_floats
from attnflow.errors import InvalidArgument, InvalidAttention, suggest
from attnflow.mixing._edges import FUSIONS
from attnflow.tokens import checked_index, whole_number


def check_sparsity(top_k: Any, threshold: Any, discard: Any, count: int) -> None:
    if top_k is not None and not 1 <= (whole_number(top_k) or 0) <= count:
        raise InvalidArgument(f"top_k must be a whole number from 1 to the number of tokens, {count}; got {top_k!r}.")
    for name, value in (("threshold", threshold), ("discard", discard)):
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if value is not None and not (number and 0 <= value < 1):
            raise InvalidArgument(f"{name} must be a number from 0 to below 1, got {value!r}.")


def residual_shares(residual: Any, layers: int, count: int) -> NDArray[np.float64]:
    """α for each layer and query."""
    shapes = f"a number, {layers} of them (one per layer), or shape ({layers}, {count}) (one per layer and query)"
    try:
        alpha = as_floats(0.0 if residual is None else residual, "residual").astype(np.float64)
    except InvalidAttention:
        where = (
            " Rules that measure it in the model are options of attnflow.capture.graph."
            if isinstance(residual, str)
            else ""
        )
        raise InvalidArgument(f"residual must be None or {shapes}; got {residual!r}.{where}") from None
    if alpha.shape not in ((), (layers,), (layers, count)):
        raise InvalidArgument(f"residual must be None or {shapes}; got shape {alpha.shape}.")
    if not ((alpha >= 0) & (alpha <= 1)).all():
        raise InvalidArgument(f"residual is a share from 0 to 1, got {residual!r}.")
    return np.broadcast_to(alpha[:, None] if alpha.ndim == 1 else alpha, (layers, count))


def head_shares(heads: Any, layers: int, count: int) -> NDArray[np.float64] | None:
    """The heads' shares [layer, head], or None where they are not averaged (maximum, minimum, a function)."""
    if isinstance(heads, str):
        if heads not in ("mean", *FUSIONS):
            raise InvalidArgument(f"unknown way to mix heads {heads!r}." + suggest(heads, ["mean", *FUSIONS]))
        return np.full((layers, count), 1 / count) if heads == "mean" else None
    if callable(heads):
        return None
    if not isinstance(heads, list | tuple) and np.ndim(heads) == 0 and whole_number(heads) is not None:
        return np.tile(np.arange(count) == checked_index(heads, count, "head"), (layers, 1)).astype(np.float64)
    wanted = f"a name, a head's number, a function, {count} weights (one per head) or shape ({layers}, {count}) (one per layer and head)"
    try:
        weights = as_floats(heads, "heads").astype(np.float64)
    except InvalidAttention:
        raise InvalidArgument(f"heads must be {wanted}; got {heads!r}.") from None
    if weights.shape not in ((count,), (layers, count)):
        raise InvalidArgument(f"heads must be {wanted}; got shape {weights.shape}.")
    table = np.broadcast_to(weights, (layers, count))
    if not np.isfinite(table).all() or (table < 0).any() or not (table.sum(axis=1) > 0).all():
        raise InvalidArgument("head weights must be finite, not negative, and not all zero in a layer.")
    shares: NDArray[np.float64] = table / table.sum(axis=1, keepdims=True)
    return shares
