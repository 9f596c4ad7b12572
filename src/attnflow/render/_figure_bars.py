"""Figure 4 of Abnar & Zuidema (2020): a few candidates, level by level."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from attnflow.errors import InvalidArgument
from attnflow.render._figure_sheet import Choice, Drawing, Panel, panel, titles
from attnflow.render._view import View

# Okabe & Ito (2008), in the order in which they tell apart best on white and on dark.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")


def bars(views: Sequence[View], choice: Choice) -> Figure:
    """The scores of the candidates for one query, a group of bars for each level."""
    panels = [panel(view, choice, "levels") for view in views]
    width = choice.width or min(6.5, max(2.4, 0.42 * len(views[0].levels) + 1))
    figure = Drawing(figsize=(min(width * len(panels) + 0.4, 14), 2.9), layout="constrained")
    grid = figure.subplots(1, len(panels), squeeze=False, sharey=choice.scale == "shared")
    for axes, p in zip(grid.flat, panels, strict=True):
        chosen = _candidates(p, choice)
        each = 0.8 / len(chosen)
        for number, place in enumerate(chosen):
            position = p.view.inputs[place]
            at = np.arange(len(p.values)) - 0.4 + each * (number + 0.5)
            drawn = axes.bar(at, p.values[:, place], each * 0.92, color=PALETTE[number % len(PALETTE)], linewidth=0)
            drawn.set_label(p.view.label(position))
            for level, patch in enumerate(drawn):
                patch.set_gid(f"bar-{level}-{position}")
        axes.set_xticks(range(len(p.values)), labels=[_level_name(name) for name in p.view.levels], fontsize=7.5)
        if len(p.values) > 8:
            axes.tick_params(axis="x", rotation=90)
        axes.tick_params(axis="y", labelsize=7.5)
        axes.set_xlabel("level", color=choice.soft, fontsize=8)
        axes.axhline(0, color=choice.soft, linewidth=0.6)
        for side in ("top", "right", "bottom"):
            axes.spines[side].set_visible(False)
        axes.tick_params(axis="x", length=0)
    titles(figure, grid.flat, panels, choice)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), frameon=False, fontsize=8)
    return figure


def _candidates(p: Panel, choice: Choice) -> list[int]:
    """The places of the inputs to compare: those asked for, or those that count and reach highest."""
    if not choice.candidates:
        reach = np.where(p.chosen, np.abs(p.values).max(axis=0), -1.0)
        return sorted(np.argsort(-reach, kind="stable")[: min(choice.top or 4, int(p.chosen.sum()))].tolist())
    return [_place(p.view, candidate) for candidate in choice.candidates]


def _place(view: View, candidate: int | str) -> int:
    found = [
        place
        for place, position in enumerate(view.inputs)
        if candidate in (position, position - len(view.labels), view.labels[position])
    ]
    if len(found) != 1:
        raise InvalidArgument(f"{len(found)} inputs of this view are {candidate!r}; give the position of one.")
    return found[0]


def _level_name(name: str) -> str:
    """“layer 5” is 5 under an axis that says level."""
    return name.rpartition(" ")[2] if name.startswith(("layer ", "level ")) else name
