"""Which part of an image a processor shows to the model, measured instead of read from its settings.

Resizing, cropping and padding, in whatever order and by whatever options, are one straight map from pixels of the model's
input to pixels of the image. So an image whose brightness is its column number goes through the processor, and another
whose brightness is its row number; a line fitted to what comes out is that map. What a black and a white image have in common
afterwards is padding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnflow.images import Box

# From PIL images to [image, channel, row, column].
Process = Callable[[Sequence[Any]], NDArray[Any]]

_MOST_ERROR = 0.02  # of the image's side, between the line and what came out; a straight map is within rounding


def crop(process: Process, width: int, height: int) -> Box | None:
    """The part of an image of this size that becomes the model's input: left, top, right, bottom; beyond it where it is
    padded. None if the processor does something else than resize, crop and pad.
    """
    out = process([*_ramps(width, height), _even(0, width, height), _even(255, width, height)])
    if out.ndim != 4 or len(out) != 4:
        return None
    columns, rows, black, white = out.astype(np.float64).mean(axis=1)
    contrast = white - black
    inside = np.abs(contrast) > 0.5 * np.abs(contrast).max()
    if not inside.any():
        return None
    shares = [np.where(inside, (one - black) / np.where(inside, contrast, 1), np.nan) for one in (columns, rows)]
    across, down = _line(shares[0], width), _line(shares[1].T, height)
    if across is None or down is None:
        return None
    return across[0], down[0], across[1], down[1]


def _ramps(width: int, height: int) -> tuple[Any, Any]:
    across = np.rint(np.linspace(0, 255, width)).astype(np.uint8)
    down = np.rint(np.linspace(0, 255, height)).astype(np.uint8)
    shape = (height, width)
    return _grey(np.broadcast_to(across, shape)), _grey(np.broadcast_to(down[:, None], shape))


def _grey(pixels: NDArray[np.uint8]) -> Any:
    from PIL import Image

    return Image.fromarray(np.ascontiguousarray(pixels)).convert("RGB")


def _even(value: int, width: int, height: int) -> Any:
    return _grey(np.full((height, width), value, dtype=np.uint8))


def _line(shares: NDArray[np.float64], size: int) -> tuple[float, float] | None:
    """Where the first and the last edge of the input lie along one side of the image, from the ramp that came out.

    The ramp's value at the centre of pixel i is i / (size - 1), so a share s is the place s · (size - 1) + ½.
    """
    count = shares.shape[1]
    seen = np.flatnonzero(np.isfinite(shares).any(axis=0))
    if size == 1:
        return 0.0, 1.0
    places = np.nanmean(shares[:, seen], axis=0) * (size - 1) + 0.5
    centres = seen + 0.5
    edge = len(seen) // 8  # where an image ends, resizing has no neighbours to look at
    middle = slice(edge, len(seen) - edge)
    if len(seen) < 2:
        return None
    slope, start = np.polyfit(centres[middle], places[middle], 1)
    if slope <= 0 or np.abs(start + slope * centres[middle] - places[middle]).max() > max(1.0, _MOST_ERROR * size):
        return None
    rounding = size / 255  # a step of the ramp
    first, last = (_snapped(end, size, rounding) for end in (start, start + slope * count))
    return first, last


def _snapped(place: float, size: int, rounding: float) -> float:
    """An edge that lies on the image's own edge as far as can be told is that edge."""
    for edge in (0.0, float(size)):
        if abs(place - edge) <= rounding:
            return edge
    return float(place)
