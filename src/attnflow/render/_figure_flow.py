"""The flow of a pair: ribbons as wide as what passes, stacked where they meet, and the minimum cut among them."""

from __future__ import annotations

import textwrap
from collections import defaultdict

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Curve

from attnflow.render._figure_sheet import Choice, frame
from attnflow.render._view import Edge, FlowView, number

CUT = {"light": "#c4560a", "dark": "#ff9a3c"}  # apart from every blue, for every eye
FLOWING = {"light": "#4a86cc", "dark": "#4f9be0"}
WIDEST = 40.0  # points


def flow(figure: Figure, axes: Axes, view: FlowView, choice: Choice) -> None:
    """Draw the flow of a pair, levels up, the positions that it passes through across."""
    positions = view.used
    column = {position: place for place, position in enumerate(positions)}
    frame(axes, view, positions, view.levels, choice)
    _title(axes, view, figure.get_figwidth() / axes.get_gridspec().ncols, choice)  # type: ignore[union-attr]
    figure.draw_without_rendering()  # which lays everything out: only now a column has its width
    points = axes.get_window_extent().width * 72 / figure.dpi / (len(positions) + 0.4)
    unit = min(0.8 * points, WIDEST) / (view.value or 1.0)  # points for one unit of flow
    above, below = _stacked(view.edges, "query"), _stacked(view.edges, "key")
    for edge in sorted(view.edges, key=lambda edge: edge.cut):
        x0 = column[edge.query] + above[edge] * unit / points
        x1 = column[edge.key] + below[edge] * unit / points
        y0, y1 = edge.level + 1, edge.level
        bend = Curve([(x0, y0), (x0, y0 - 0.5), (x1, y1 + 0.5), (x1, y1)], [Curve.MOVETO, *[Curve.CURVE4] * 3])
        axes.add_patch(
            PathPatch(
                bend, fill=False, edgecolor=(CUT if edge.cut else FLOWING)[choice.theme], alpha=0.85 if edge.cut else 0.5,
                linewidth=max(0.3, edge.flow * unit), capstyle="butt",
                gid=f"{'cut' if edge.cut else 'edge'}-{edge.level}-{edge.query}-{edge.key}",
            )
        )  # fmt: skip
    ends = ([column[view.query], column[view.input]], [len(view.levels), 0])
    axes.scatter(ends[0], ends[1], s=36, color=CUT[choice.theme], zorder=4, linewidths=0)


def _title(axes: Axes, view: FlowView, room: float, choice: Choice) -> None:
    """The value, and in smaller letters what limits it, on lines of `room` inches."""
    cut = f"orange: the minimum cut, {number(sum(e.flow for e in view.edges if e.cut))} in all"
    lines = [*textwrap.wrap(view.limit, max(24, int(room * 14))), cut]
    axes.set_title(view.sentence, fontweight="bold", pad=6 + 10 * len(lines), fontsize=9.5)
    axes.annotate(
        "\n".join(lines), (0, 1), xytext=(0, 2), xycoords="axes fraction", textcoords="offset points", fontsize=7.5, color=choice.soft,
        va="bottom",
    ).set_in_layout(False)  # fmt: skip


def _stacked(edges: tuple[Edge, ...], end: str) -> dict[Edge, float]:
    """How far the middle of each edge lies from the middle of its node at one end, in units of flow: side by side."""
    other = "key" if end == "query" else "query"
    nodes: dict[tuple[int, int], list[Edge]] = defaultdict(list)
    for edge in sorted(edges, key=lambda edge: getattr(edge, other)):
        nodes[edge.level, getattr(edge, end)].append(edge)
    middles = {}
    for together in nodes.values():
        left = -sum(edge.flow for edge in together) / 2
        for edge in together:
            middles[edge] = left + edge.flow / 2
            left += edge.flow
    return middles
