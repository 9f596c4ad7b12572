"""Figures 2 and 3 of Abnar & Zuidema (2020): level × token, and query × input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from attnflow.render._figure_sheet import Choice, Drawing, Panel, bar, colours, name_ticks, panel, scales, titles
from attnflow.render._view import View

CELL = 0.2  # inches, while that keeps a panel narrower than MOST
MOST = 7.0


def levels(views: Sequence[View], choice: Choice) -> Figure:
    """What one query draws on: levels up, inputs across."""
    return _sheet([panel(view, choice, "levels") for view in views], choice)


def matrix(views: Sequence[View], choice: Choice) -> Figure:
    """What every query draws on at one level: queries down, inputs across."""
    return _sheet([panel(view, choice, "matrix") for view in views], choice)


def _sheet(panels: list[Panel], choice: Choice) -> Figure:
    by_query = "every query" in panels[0].text
    wide = max(p.values.shape[1] for p in panels)
    across = min(MOST, max(1.6, CELL * wide)) if choice.width is None else choice.width
    rows = max(p.values.shape[0] for p in panels)
    down = across * min(rows / wide, 1.6) if by_query else min(4.0, max(0.5, CELL * rows))
    columns = len(panels) if (across + 0.9) * len(panels) <= 11 else 1  # side by side while a page holds them
    lines = -(-len(panels) // columns)
    figure = Drawing(figsize=(columns * (across + 1.0) + 0.7, lines * (down + 1.5)), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False)
    norms = scales(panels, choice)
    for axes, p, norm in zip(grid.flat, panels, norms, strict=True):
        _image(axes, p, norm, choice, by_query=by_query)
        _name(axes, p, choice, by_query=by_query, across=across, down=down)
    titles(figure, grid.flat, panels, choice)
    if len({(norm.vmin, norm.vmax) for norm in norms}) == 1:
        bar(figure, grid, norms[0], choice, panels, shrink=0.8 if lines == 1 else 0.5, aspect=18, pad=0.02)
    else:
        for axes, p, norm in zip(grid.flat, panels, norms, strict=True):
            bar(figure, axes, norm, choice, [p], shrink=0.8, aspect=18, pad=0.02)
    return figure


def _image(axes: Axes, p: Panel, norm: Normalize, choice: Choice, *, by_query: bool) -> None:
    """The values of the scale in its colours, those outside it in grey."""
    how: dict[str, Any] = {
        "aspect": "auto",
        "interpolation": "nearest",
        "origin": "upper" if by_query else "lower",
    }
    axes.imshow(np.ma.masked_array(p.values, p.apart), norm=norm, cmap=colours(choice, signed=p.signed), **how)
    if p.apart.any():
        grey = np.ma.masked_array(np.abs(p.values), ~p.apart)
        axes.imshow(grey, norm=Normalize(0, norm.vmax), cmap=colours(choice, apart=True), **how)
    axes.set_gid("matrix" if by_query else "levels")


def _name(axes: Axes, p: Panel, choice: Choice, *, by_query: bool, across: float, down: float) -> None:
    view = p.view
    name_ticks(axes.xaxis, [view.labels[i] for i in view.inputs], across, upright=True)
    rows = [view.labels[q] for q in view.queries] if by_query else list(view.levels)
    name_ticks(axes.yaxis, rows, down)
    axes.set_xlabel("input", color=choice.soft, fontsize=8)
    axes.set_ylabel("query" if by_query else "level", color=choice.soft, fontsize=8)
    for spine in axes.spines.values():
        spine.set_visible(False)
