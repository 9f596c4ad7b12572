"""Arrays from any framework, importing none of them.

A torch tensor (any device, with gradient, half precision) and a JAX array become numpy arrays by the methods that
they bring along, so that attnflow needs neither library to read their attention.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnflow.errors import InvalidAttention

# bfloat16 keeps 8 bits of a number, so a row of weights may miss 1 by up to 2**-8; float16 misses by far less.
# An array may have been widened since, so its type no longer tells, and one tolerance serves all.
ROW_SUM_TOLERANCE = 5e-3

_STORED = (np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64))


def as_floats(value: Any, what: str) -> NDArray[Any]:
    """`value` as a float16, float32 or float64 numpy array; `what` names it in errors."""
    if isinstance(value, list | tuple) and _holds_arrays(value):
        value = [as_floats(item, what) for item in value]
    try:
        if hasattr(value, "detach"):  # a torch tensor
            value = value.detach().cpu()
            if "bfloat16" in str(value.dtype):  # which numpy does not have
                value = value.float()
            value = value.resolve_neg().numpy()
        array = np.asarray(value)
    except Exception as error:  # whatever a framework raises for an array that has no values to give
        raise InvalidAttention(
            f"{what} must be one rectangular array of numbers, got {_described(value)}: {error}"
        ) from None
    if array.dtype in _STORED:
        return array
    if "bfloat16" in array.dtype.name:  # JAX's, which numpy holds as a foreign type
        return array.astype(np.float32)
    if array.dtype.kind == "f" and array.dtype.itemsize == 4:  # the other byte order
        return array.astype(np.float32)
    if array.dtype.kind in "iubf":
        return array.astype(np.float64)
    raise InvalidAttention(f"{what} must be real numbers, got {_described(value)} of type {array.dtype}.")


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only array of these values. One that nobody can write to is not copied."""
    if not _nobody_writes(array):
        array = array.copy()
        array.flags.writeable = False
    return array


def row_sums(matrices: NDArray[Any]) -> NDArray[np.float64]:
    """Sums over the last axis, added up in float32 or better (numpy adds in pairs, so 1e-6 is the worst of it)."""
    wide = np.promote_types(matrices.dtype, np.float32)
    with np.errstate(invalid="ignore", over="ignore"):  # NaN and infinity are for the caller to find
        sums: NDArray[np.float64] = matrices.sum(axis=-1, dtype=wide).astype(np.float64)
    return sums


class ReadOnly:
    """A frozen dataclass whose arrays stay read-only when it is pickled or copied."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)


def _holds_arrays(value: Any) -> bool:
    """Whether a nested list has arrays at its leaves rather than numbers."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return hasattr(value, "detach") or hasattr(value, "__array__")


def _nobody_writes(array: Any) -> bool:
    """Whether neither the array nor what it is a view of can be written to."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return array is None or isinstance(array, bytes)


def _described(value: Any) -> str:
    return f"a {type(value).__name__}" + (f" of length {len(value)}" if isinstance(value, list | tuple) else "")
