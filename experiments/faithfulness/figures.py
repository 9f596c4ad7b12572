"""Figures of the results: means or differences with their intervals, one row each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Bar(NamedTuple):
    """A row of a figure: its interval, and the group that gives it its colour."""

    label: str
    mean: float
    low: float
    high: float
    group: str = ""


def intervals(bars: Sequence[Bar], title: str, axis: str, path: Path, *, zero: bool = False) -> str:
    """Points with intervals, as a PNG file; what to put into the page."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    groups = list(dict.fromkeys(bar.group for bar in bars))
    colours = dict(
        zip(
            groups,
            ("#0b62c4", "#c55a11", "#2e7d32", "#7b4bb3", "#8d6e00", "#00798c", "#b0305c", "#555555"),
            strict=False,
        )
    )
    figure, axes = pyplot.subplots(figsize=(8, 1.6 + 0.24 * len(bars)), layout="constrained")
    for place, bar in enumerate(bars):
        colour = colours.get(bar.group, "#555555")
        axes.plot([bar.low, bar.high], [place, place], color=colour, linewidth=2, solid_capstyle="round")
        axes.plot([bar.mean], [place], "o", color=colour, markersize=5)
    for group in groups:
        if group:
            axes.plot([], [], "o-", color=colours.get(group, "#555555"), label=group)
    if zero:
        axes.axvline(0, color="#888888", linewidth=1)
    axes.set_yticks(range(len(bars)), [bar.label for bar in bars], fontsize=8)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.set_xlabel(axis, fontsize=9)
    figure.suptitle(title, fontsize=10)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    if any(groups):
        figure.legend(fontsize=8, loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path.with_suffix(".png"), dpi=130)
    pyplot.close(figure)
    return f"![{title}]({path.name}.png)"


def lines(series: Mapping[str, Sequence[float]], title: str, axis: str, path: Path) -> str:
    """One line for each series over the layers."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.4), layout="constrained")
    for (name, values), colour in zip(series.items(), ("#0b62c4", "#c55a11", "#777777", "#2e7d32"), strict=False):
        axes.plot(range(1, len(values) + 1), values, "o-", color=colour, label=name)
    axes.set_xticks(range(1, len(next(iter(series.values()))) + 1))
    axes.set_xlabel("layer", fontsize=9)
    axes.set_ylabel(axis, fontsize=9)
    axes.set_title(title, fontsize=10)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.legend(fontsize=8)
    figure.savefig(path.with_suffix(".png"), dpi=130)
    pyplot.close(figure)
    return f"![{title}]({path.name}.png)"
