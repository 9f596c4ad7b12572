"""Figure 1 of Abnar & Zuidema (2020): positions in levels, and what passes between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Curve

from attnflow.render._colour import colour
from attnflow.render._figure_sheet import SOFT, Choice, Drawing, Panel, panel, scales, title
from attnflow.render._view import FlowView, View, number

CUT = "#d55e00"  # vermillion: apart from every blue, for every eye
MOST_EDGES = 3000
FAINTEST = 0.04  # of the scale


def graph(views: Sequence[View | FlowView], choice: Choice) -> Figure:
    """Levels up, positions across; an edge is as dark and wide as its weight, or as what flows through it."""
    count = max(len(_positions(view, choice)) for view in views)
    levels = max(len(view.levels) for view in views)
    width = choice.width or min(11.0, max(2.6, 0.32 * count + 0.9))
    side_by_side = len(views) * width <= 12
    shape = (1, len(views)) if side_by_side else (len(views), 1)
    figure = Drawing(figsize=(width * shape[1], (0.55 * levels + 2.0) * shape[0]), layout="constrained")
    grid = figure.subplots(*shape, squeeze=False)
    for axes, view in zip(grid.flat, views, strict=True):
        if isinstance(view, FlowView):
            _flow(axes, view, choice)
        else:
            _weights(axes, view, choice)
    return figure


def _positions(view: View | FlowView, choice: Choice) -> list[int]:
    if isinstance(view, FlowView):
        return view.used
    hidden = set(view.special) if choice.special == "hidden" else set()
    return sorted((set(view.inputs) | set(view.queries)) - hidden)


def _frame(axes: Axes, view: View | FlowView, positions: list[int], names: Sequence[str]) -> None:
    """Nodes, level names and labels; row 0 is the input."""
    rows = len(names) + 1
    x, y = np.meshgrid(np.arange(len(positions)), np.arange(rows))
    axes.scatter(x.ravel(), y.ravel(), s=9 if len(positions) <= 40 else 2, color=SOFT, linewidths=0, zorder=3)
    axes.set_yticks(range(rows), labels=["input", *names], fontsize=7.5)
    step = max(1, -(-len(positions) // 60))
    labels = [view.labels[p] for p in positions[::step]]
    axes.set_xticks(range(0, len(positions), step), labels=labels, fontsize=8, rotation=90)
    axes.set(xlim=(-0.7, len(positions) - 0.3), ylim=(-0.35, rows - 0.6))
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _weights(axes: Axes, view: View, choice: Choice) -> None:
    p: Panel = panel(view, choice, "levels")
    view = p.view
    positions = _positions(view, choice)
    column = {position: place for place, position in enumerate(positions)}
    _frame(axes, view, positions, view.levels)
    title(axes, Panel(view, p.values, p.chosen, "edges: what each position draws on"))
    every = Panel(view, view.values.reshape(-1, len(view.inputs)), p.chosen, "")
    end = float(scales([every], choice)[0].vmax or 1)
    level, query, key = np.indices(view.values.shape)
    value = view.values.ravel()
    order = np.argsort(np.abs(value), kind="stable")[-MOST_EDGES:]
    order = order[np.abs(value[order]) >= FAINTEST * end]
    lines, shades, widths = [], [], []
    for i in order:
        upper, lower = view.queries[query.flat[i]], view.inputs[key.flat[i]]
        if upper not in column or lower not in column:
            continue
        share = float(np.clip(value[i] / end, -1, 1))
        lines.append([(column[upper], level.flat[i] + 1), (column[lower], level.flat[i])])
        shades.append(np.array(colour(share, choice.theme, signed=view.signed)) / 255)
        widths.append(0.3 + 2.2 * abs(share))
    axes.add_collection(LineCollection(lines, colors=shades, linewidths=widths, capstyle="round", gid="edges"))


def _flow(axes: Axes, flow: FlowView, choice: Choice) -> None:
    positions = flow.used
    column = {position: place for place, position in enumerate(positions)}
    _frame(axes, flow, positions, flow.levels)
    strongest = max((edge.flow for edge in flow.edges), default=1.0) or 1.0
    blue = "#2f77c4" if choice.theme == "light" else "#63b8e6"
    for edge in sorted(flow.edges, key=lambda edge: edge.cut):
        share = edge.flow / strongest
        x0, y0, x1, y1 = column[edge.query], edge.level + 1, column[edge.key], edge.level
        bend = Curve([(x0, y0), (x0, y0 - 0.5), (x1, y1 + 0.5), (x1, y1)], [Curve.MOVETO, *[Curve.CURVE4] * 3])
        axes.add_patch(
            PathPatch(
                bend, fill=False, edgecolor=CUT if edge.cut else blue, linewidth=max(0.3, 7 * share), capstyle="butt",
                alpha=0.9 if edge.cut else 0.55, gid=f"{'cut' if edge.cut else 'edge'}-{edge.level}-{edge.query}-{edge.key}",
            )
        )  # fmt: skip
    ends = ([column[flow.query], column[flow.input]], [len(flow.levels), 0])
    axes.scatter(ends[0], ends[1], s=40, color=CUT, zorder=4, linewidths=0)
    axes.set_title(f"{flow.sentence}", fontweight="bold", pad=26, fontsize=9.5)
    below = f"{flow.limit}\norange: the minimum cut, {number(sum(e.flow for e in flow.edges if e.cut))} in all"
    axes.annotate(
        below, (0, 1), xytext=(0, 2), xycoords="axes fraction", textcoords="offset points", fontsize=7.5, color=SOFT, va="bottom",
    ).set_in_layout(False)  # fmt: skip
