"""Patch maps over their image."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from attnflow.errors import InvalidArgument
from attnflow.render._colour import GROUND, parsed
from attnflow.render._figure_sheet import Choice, Drawing, Panel, bar, colours, panel, scales, titles
from attnflow.render._overlay import COVER, VEIL
from attnflow.render._view import Values, View
from attnflow.tokens import PatchGrid


def patches(views: Sequence[View], choice: Choice) -> Figure:
    """What one query draws from each patch at one level, over the image where it is known."""
    panels = [panel(view, choice, "row") for view in views]
    maps = [(p, grid, patch_values(p, grid)) for p in panels for grid in p.view.grids]
    if not maps:
        raise InvalidArgument(
            "these tokens have no patch grid: give Tokens(labels, grids=[PatchGrid(rows, columns, offset)])."
        )
    side = choice.width or (3.4 if len(maps) > 1 else 4.2)
    tall = max(_height(grid) for _, grid, _ in maps)
    columns = min(len(maps), 4)
    lines = -(-len(maps) // columns)
    figure = Drawing(
        figsize=(columns * (side + 0.15) + 0.8, lines * (side * min(tall, 1.8) + 1.1)), layout="constrained"
    )
    axes = figure.subplots(lines, columns, squeeze=False)
    only = [Panel(p.view, found.ravel(), _counted(p, grid, choice), p.text) for p, grid, found in maps]
    norms = scales(only, choice)
    for spot, (p, grid, found), norm in zip(axes.flat, maps, norms, strict=False):
        _overlay(spot, p, grid, found, norm, choice)
    titles(figure, axes.flat[: len(maps)], [p for p, _, _ in maps], choice)
    for spot in axes.flat[len(maps) :]:
        spot.set_axis_off()
    if len({(norm.vmin, norm.vmax) for norm in norms}) == 1:
        bar(figure, axes, norms[0], choice, only, shrink=0.7, aspect=20, pad=0.02)
    else:
        for spot, one, norm in zip(axes.flat, only, norms, strict=False):
            bar(figure, spot, norm, choice, [one], shrink=0.7, aspect=20, pad=0.02)
    return figure


def patch_values(p: Panel, grid: PatchGrid) -> Values:
    """A row's values in the rows and columns of the image; a patch that was not asked for is 0."""
    table = np.zeros(len(p.view.labels))
    table[list(p.view.inputs)] = p.values
    return table[grid.offset : grid.stop].reshape(grid.rows, grid.columns)


def _counted(p: Panel, grid: PatchGrid, choice: Choice) -> NDArray[np.bool_]:
    """The patches that make the scale: not the query's own, unless everything does."""
    own: NDArray[np.bool_] = np.arange(grid.offset, grid.stop) == p.view.query
    return np.ones(len(own), dtype=np.bool_) if choice.special == "shown" else ~own


def _height(grid: PatchGrid) -> float:
    rows, columns = (grid.rows, grid.columns) if grid.picture is None else grid.picture.pixels.shape[:2]
    return float(rows / columns)


def _overlay(axes: Axes, p: Panel, grid: PatchGrid, found: Values, norm: Normalize, choice: Choice) -> None:
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.set_gid("patches")
    paint = colours(choice, signed=p.signed)
    if grid.picture is None:
        axes.imshow(found, cmap=paint, norm=norm, interpolation="bicubic" if choice.smooth else "nearest")
        return
    height, width = grid.picture.pixels.shape[:2]
    pixels = grid.picture.pixels / 255
    pale = 0.2 * pixels + 0.8 * pixels.mean(axis=2, keepdims=True)
    axes.imshow((1 - VEIL) * pale + VEIL * parsed(GROUND[choice.theme]), extent=(0, width, height, 0))
    left, upper, right, lower = grid.picture.box
    share = np.clip(np.abs(found) / float(norm.vmax or 1), 0, 1)
    axes.imshow(
        found, cmap=paint, norm=norm, alpha=COVER * share**0.7, extent=(left, right, lower, upper),
        interpolation="bilinear" if choice.smooth else "nearest",
    )  # fmt: skip
    axes.set(xlim=(0, width), ylim=(height, 0))
