"""Figure 1 of Abnar & Zuidema (2020): positions in levels, and what passes between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from attnflow.render._colour import colour
from attnflow.render._figure_flow import flow
from attnflow.render._figure_sheet import Choice, Drawing, Panel, counted_rows, frame, panel, scales, titles
from attnflow.render._view import FlowView, View

MOST_EDGES = 3000
FAINTEST = 0.04  # of the scale


def graph(views: Sequence[View | FlowView], choice: Choice) -> Figure:
    """Levels up, positions across; an edge is as dark and wide as its weight, or as what flows through it."""
    count = max(len(_positions(view, choice)) for view in views)
    levels = max(len(view.levels) for view in views)
    width = choice.width or min(11.0, max(2.6, 0.32 * count + 0.9))
    side_by_side = len(views) * width <= 12
    shape = (1, len(views)) if side_by_side else (len(views), 1)
    figure = Drawing(figsize=(width * shape[1], (0.6 * levels + 1.9) * shape[0]), layout="constrained")
    grid = figure.subplots(*shape, squeeze=False)
    for axes, view in zip(grid.flat, views, strict=True):
        if isinstance(view, FlowView):
            flow(figure, axes, view, choice)
    panels = {i: _edges(view, choice) for i, view in enumerate(views) if isinstance(view, View)}
    if panels:
        spots = [grid.flat[i] for i in panels]
        for axes, p, norm in zip(spots, panels.values(), scales([*panels.values()], choice), strict=True):
            _weights(axes, p, float(norm.vmax or 1), choice)
        titles(figure, spots, [*panels.values()], choice)
    return figure


def _edges(view: View, choice: Choice) -> Panel:
    """Every entry of a view [level, query, input] as an edge."""
    view = panel(view, choice, "levels").view
    return Panel(view, view.values, counted_rows(view, choice.special), "edges: what each position draws on")


def _positions(view: View | FlowView, choice: Choice) -> list[int]:
    if isinstance(view, FlowView):
        return view.used
    hidden = set(view.special) if choice.special == "hidden" else set()
    return sorted((set(view.inputs) | set(view.queries)) - hidden)


def _weights(axes: Axes, p: Panel, end: float, choice: Choice) -> None:
    view = p.view
    positions = _positions(view, choice)
    column = {position: place for place, position in enumerate(positions)}
    frame(axes, view, positions, view.levels, choice)
    apart = p.apart.ravel()
    level, query, key = np.indices(view.values.shape)
    value = view.values.ravel()
    order = np.lexsort((np.abs(value), ~apart))  # the grey ones below all others
    order = np.concatenate([order[apart[order]][-MOST_EDGES // 3 :], order[~apart[order]][-MOST_EDGES:]])
    order = order[np.abs(value[order]) >= FAINTEST * end]
    lines, shades, widths = [], [], []
    for i in order:
        upper, lower = view.queries[query.flat[i]], view.inputs[key.flat[i]]
        if upper not in column or lower not in column:
            continue
        share = float(np.clip(value[i] / end, -1, 1))
        lines.append([(column[upper], level.flat[i] + 1), (column[lower], level.flat[i])])
        shades.append(np.array(colour(share, choice.theme, signed=view.signed, apart=bool(apart[i]))) / 255)
        widths.append(0.3 + (0.9 if apart[i] else 2.2) * abs(share))
    axes.add_collection(LineCollection(lines, colors=shades, linewidths=widths, capstyle="round", gid="edges"))
