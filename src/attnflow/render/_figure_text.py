"""The text itself, each token on the colour of its value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyBboxPatch

from attnflow.render._colour import colour, ink
from attnflow.render._figure_sheet import Choice, Drawing, Panel, all_alike, panel, scales
from attnflow.render._view import View, number

SIZE = 10  # points
LINE = 0.27  # inches from line to line
GAP = 0.045
EDGE = 0.12


class Placed(NamedTuple):
    """A token, its line and where on it."""

    place: int
    line: int
    left: float
    width: float


def strip(views: Sequence[View], choice: Choice) -> Figure:
    """The text of each view, coloured by what its query draws from it at one level."""
    panels = [panel(view, choice, "row") for view in views]
    width = choice.width or 6.5
    figure = Drawing(figsize=(width, 1))
    placed = [_wrapped(figure, p, width - 2 * EDGE) for p in panels]
    once = all_alike([p.said for p in panels])  # then it stands above all of them
    head = 0.3 if once else 0.5
    heights = [head + LINE * (tokens[-1].line + 1) + 0.16 for tokens in placed]
    total = sum(heights) + EDGE + (0.3 if once else 0)
    figure.set_size_inches(width, total)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(0, width), ylim=(total, 0))
    top = EDGE
    said: dict[str, Any] = {"va": "center", "fontsize": 7.5, "color": choice.soft}
    if once:
        axes.text(EDGE, top + 0.06, panels[0].said, **said)
        top += 0.3
    for p, norm, tokens, height in zip(panels, scales(panels, choice), placed, heights, strict=True):
        end = float(norm.vmax or 1)
        axes.text(EDGE, top + 0.1, p.view.method, fontweight="bold", va="center", fontsize=10)
        if not once:
            axes.text(EDGE, top + 0.29, p.said, **said)
        _legend(axes, p, norm, choice, width - EDGE, top + 0.08)
        for token in tokens:
            _token(axes, p, token, end, choice, top + head)
        top += height
    return figure


def _token(axes: Axes, p: Panel, token: Placed, end: float, choice: Choice, top: float) -> None:
    share = float(p.values[token.place] / end)
    ground = colour(share, choice.theme, signed=p.signed, apart=bool(p.apart[token.place]))
    position = p.view.inputs[token.place]
    x, y = EDGE + token.left, top + token.line * LINE
    asked = position == p.view.query
    box = FancyBboxPatch(
        (x + 0.02, y), max(token.width - 0.04, 0.02), LINE - 0.06, boxstyle="round,pad=0.02,rounding_size=0.03", linewidth=0.9 if asked else 0,
        facecolor=np.array(ground) / 255, edgecolor="#c4650c" if asked else "none", gid=f"token-{position}",
    )  # fmt: skip
    axes.add_patch(box)
    axes.text(
        x + token.width / 2, y + (LINE - 0.06) / 2, p.view.labels[position], ha="center", va="center_baseline", fontsize=SIZE,
        color=ink(ground),
    )  # fmt: skip


def _legend(axes: Axes, p: Panel, norm: Normalize, choice: Choice, right: float, top: float) -> None:
    """A small scale at the right of the title."""
    steps, cell = 24, 0.04
    left = right - steps * cell - 0.42
    for step in range(steps):
        share = step / (steps - 1)
        ground = colour(2 * share - 1 if p.signed else share, choice.theme, signed=p.signed)
        axes.add_patch(
            FancyBboxPatch(
                (left + step * cell, top),
                cell,
                0.09,
                boxstyle="square,pad=0",
                linewidth=0,
                facecolor=np.array(ground) / 255,
            )
        )
    if p.apart.any():
        patch = np.array(colour(1.0, choice.theme, apart=True)) / 255
        axes.add_patch(
            FancyBboxPatch((left - 1.3, top), 0.09, 0.09, boxstyle="square,pad=0", linewidth=0, facecolor=patch)
        )
        axes.text(left - 1.17, top + 0.045, "not in the scale", va="center", fontsize=7, color=choice.soft)
    for x, value, side in ((left - 0.04, norm.vmin, "right"), (left + steps * cell + 0.04, norm.vmax, "left")):
        axes.text(x, top + 0.045, number(value), ha=side, va="center", fontsize=7, color=choice.soft)


def _wrapped(figure: Figure, p: Panel, room: float) -> list[Placed]:
    """Tokens on lines no wider than `room`; a word is not broken unless it is wider than a line."""
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    font = FontProperties(size=SIZE)
    widths: dict[str, float] = {}
    for position in p.view.inputs:
        label = p.view.labels[position]
        if label not in widths:
            pixels, _, _ = renderer.get_text_width_height_descent(label, font, ismath=False)
            widths[label] = max(pixels / figure.dpi, 0.05) + 0.08
    groups: list[list[int]] = []
    for place, position in enumerate(p.view.inputs):
        if groups and position in p.view.joined and position - 1 == p.view.inputs[place - 1]:
            groups[-1].append(place)
        else:
            groups.append([place])
    placed: list[Placed] = []
    line, left = 0, 0.0
    for group in groups:
        needed = sum(widths[p.view.labels[p.view.inputs[place]]] for place in group)
        if left > 0 and left + needed > room:
            line, left = line + 1, 0.0
        for place in group:
            width = widths[p.view.labels[p.view.inputs[place]]]
            if left > 0 and left + width > room:
                line, left = line + 1, 0.0
            placed.append(Placed(place, line, left, width))
            left += width
        left += GAP
    return placed
