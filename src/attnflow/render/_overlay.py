"""The image with its map laid over it, at the image's own resolution: pixels, without axes or words."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnflow.artifacts import write_atomically
from attnflow.errors import InvalidArgument
from attnflow.images import Pixels, saved
from attnflow.render._colour import GROUND, parsed, ramp
from attnflow.render._shown import Shown, as_view
from attnflow.render._view import FlowView, Values, limit

VEIL = 0.35  # of the image fades into the ground, so that the only strong colour is the map's
COVER = 0.9  # of the image is covered where the map is highest, and nothing where it is zero
_BAND = 256  # rows at a time, so that a large photograph needs little memory beside itself


def overlay(
    shown: Shown,
    path: str | os.PathLike[str] | None = None,
    *,
    query: int | str | None = None,
    level: int = -1,
    grid: int = 0,
    image: Any = None,
    smooth: bool = True,
    theme: str = "light",
) -> Pixels:
    """RGB bytes [row, column] of the image and the map of one query over it; written to `path` (.png, .jpg) if given.

    The map goes from nothing to the highest patch (the query's own left out), over the part of the image that the patches
    cover. `smooth` patches blend, others are blocks. `grid` is which one, where there are several images.
    """
    view = as_view(shown, query=query, image=image)
    if isinstance(view, FlowView):
        raise InvalidArgument("the flow of a pair is no map of patches: give an attribution.")
    if theme not in GROUND:
        raise InvalidArgument(f"unknown theme {theme!r}: it is light or dark.")
    if not 0 <= grid < len(view.grids):
        raise InvalidArgument(f"there is no patch grid {grid}: these tokens have {len(view.grids)}.")
    patches = view.grids[grid]
    if patches.picture is None:
        raise InvalidArgument(
            "the image that these patches were cut from is not known. Pass image=…: a path, a PIL image or an array."
        )
    row = np.zeros(len(view.labels))
    row[list(view.inputs)] = view.row(view.query, view.level(level))
    own = np.arange(patches.offset, patches.stop) == view.query
    values = row[patches.offset : patches.stop]
    shares = np.clip(values / limit(values, ~own if not own.all() else None), -1, 1)
    left, top, right, bottom = patches.picture.box
    size = patches.picture.height, patches.picture.width
    down, across = (
        _weights(start, stop, count, length, smooth=smooth)
        for start, stop, count, length in (
            (top, bottom, patches.rows, size[0]),
            (left, right, patches.columns, size[1]),
        )
    )
    drawn = _blended(
        patches.picture.pixels, shares.reshape(patches.rows, patches.columns), down, across, theme, view.signed
    )
    if path is not None:
        content = saved(drawn, Path(path))
        write_atomically(path, lambda file: file.write(content))
    return drawn


def _weights(start: float, stop: float, count: int, size: int, *, smooth: bool) -> Values:
    """How much of each of `count` patches is at each of `size` pixels [pixel, patch]; nothing outside of start to stop."""
    place = (np.arange(size) + 0.5 - start) / (stop - start) * count  # in patches
    inside = (place >= 0) & (place < count)
    found = np.zeros((size, count))
    if not smooth:
        found[inside, place[inside].astype(int)] = 1
        return found
    centre = np.clip(place[inside] - 0.5, 0, count - 1)
    lower = np.minimum(centre.astype(int), max(count - 2, 0))
    rows = np.flatnonzero(inside)
    found[rows, lower] = 1 - (centre - lower)
    found[rows, np.minimum(lower + 1, count - 1)] += centre - lower
    return found


def _blended(
    pixels: Pixels, shares: Values, down: Values, across: Values, theme: str, signed: bool
) -> NDArray[np.uint8]:
    colours = ramp(theme, "diverging" if signed else "sequential")
    result = np.empty_like(pixels)
    for start in range(0, len(pixels), _BAND):
        band = pixels[start : start + _BAND] / 255
        pale = 0.2 * band + 0.8 * band.mean(axis=2, keepdims=True)
        ground = (1 - VEIL) * pale + VEIL * parsed(GROUND[theme])
        share = down[start : start + _BAND] @ shares @ across.T
        place = (share + 1) / 2 if signed else np.maximum(share, 0)
        paint = colours[np.rint(np.clip(place, 0, 1) * (len(colours) - 1)).astype(int)]
        cover = COVER * np.abs(share)[..., None] ** 0.7
        result[start : start + _BAND] = np.rint(255 * ((1 - cover) * ground + cover * paint))
    return result
