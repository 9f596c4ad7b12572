"""Values for a page: fewer bits, an error below 1 % of the scale, and small enough to mail.

Each row (a query at a level) has a scale of its own: its largest magnitude, special tokens and the query's own entry
left out, since these are often so large that nothing else would keep a digit. They are stored apart, as they are.
Everything else becomes a whole number of steps of that scale. A viewer never draws on a finer scale than a row's own.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnflow.render._view import Values, View

# Steps of a scale, the finest first; the error is at most half a step. Two bytes a value only where values are few.
_STEPS = (65_535, 255, 63)
_FEW = 700_000


def steps_for(count: int) -> tuple[int, ...]:
    """How finely each scale may be divided when a page holds this many values, the finest first."""
    return _STEPS if count <= _FEW else _STEPS[1:]


def size_of(encoded: dict[str, Any]) -> int:
    """How many letters the codes of a cube take."""
    return sum(len(level["codes"]) for level in encoded["levels"])


def cube(view: View, steps: int) -> dict[str, Any]:
    """A view's values as JSON, level by level, so that a page decodes only what it draws."""
    apart = _apart(view)
    wide = steps > 255
    size = min(steps, 32_767 if wide else 127) if view.signed else steps  # each way from zero
    offset = size if view.signed else 0  # a signed code is moved up, so that all codes are positive
    kind = "<u2" if wide else "u1"
    levels = [_level(values, apart, size, offset, kind) for values in view.values]
    return {"steps": size, "offset": offset, "bytes": 2 if wide else 1, "error": 0.5 / size, "levels": levels}


def _apart(view: View) -> NDArray[np.bool_]:
    """The entries stored as they are [query, input]: special inputs and each query's own."""
    inputs = np.asarray(view.inputs)
    apart: NDArray[np.bool_] = np.isin(inputs, view.special)[None, :] | np.equal.outer(view.queries, inputs)
    return apart


def _level(values: Values, apart: NDArray[np.bool_], size: int, offset: int, kind: str) -> dict[str, Any]:
    scale = np.where(apart, 0.0, np.abs(values)).max(axis=1).astype(np.float32)
    divisor = np.where(scale > 0, scale, 1).astype(np.float64)[:, None]
    codes = np.rint(np.where(apart, 0.0, values) / divisor * size).astype(np.int64) + offset
    packed, above = _packed(np.clip(codes, 0, size + offset).astype(kind))
    return {
        "codes": packed,
        "above": above,
        "scale": _base64(scale.astype("<f4").tobytes()),
        "apart": _base64(values[apart].astype("<f4").tobytes()),
    }


def _packed(codes: NDArray[Any]) -> tuple[str, bool]:
    """Deflated codes, as they are or as what changes from the row above; whichever is smaller.

    High in a model the rows of all queries look alike, and their differences are mostly zeros.
    """
    changes = codes.copy()
    changes[1:] -= codes[:-1]  # modulo 256 or 65,536, as the reader adds them up again
    packed = [_deflated(kind) for kind in (codes, changes)]
    above = len(packed[1]) < len(packed[0])
    return _base64(packed[above]), above


def _deflated(codes: NDArray[Any]) -> bytes:
    planes = codes.reshape(-1, 1).view(np.uint8).T  # low bytes, then high bytes
    squeeze = zlib.compressobj(6, zlib.DEFLATED, -15)  # raw deflate, which browsers undo by themselves
    return squeeze.compress(np.ascontiguousarray(planes).tobytes()) + squeeze.flush()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
