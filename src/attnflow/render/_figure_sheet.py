"""What all kinds of figure share: the choices, scales, colour bars, titles and tick labels."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from attnflow.render._colour import ramp
from attnflow.render._view import Values, View, counted, limit

SOFT = "#7b828c"  # secondary text: 4.5 to 1 on white, 4.7 to 1 on the dark ground


@dataclass(frozen=True)
class Choice:
    """How to draw, whatever the kind."""

    level: int
    special: str
    scale: str
    smooth: bool
    candidates: tuple[int | str, ...]
    top: int | None
    theme: str
    width: float | None


@dataclass(frozen=True, eq=False)
class Panel:
    """One view's numbers in a figure, and which of its inputs make the scale."""

    view: View
    values: Values  # the last axis is the inputs
    chosen: NDArray[np.bool_]
    text: str  # what is drawn: query, level

    @property
    def signed(self) -> bool:
        """Whether colours diverge from zero."""
        return self.view.signed


class Drawing(Figure):
    """A figure that a notebook shows by itself, without pyplot."""

    def _repr_png_(self) -> bytes:
        import io

        memory = io.BytesIO()
        self.savefig(memory, format="png", dpi=160)
        return memory.getvalue()


def visible(view: View, choice: Choice) -> View:
    """The view without special tokens, if they are to be hidden."""
    kept = ~np.isin(view.inputs, view.special)
    return view.only(kept) if choice.special == "hidden" and kept.any() else view


def panel(view: View, choice: Choice, kind: str) -> Panel:
    """What a view shows of itself: "row" and "levels" of its query, or the "matrix" of a level."""
    view = visible(view, choice)
    level = view.level(choice.level)
    if kind == "matrix":
        return Panel(
            view, view.values[level], counted(view, None, choice.special), f"every query · {view.levels[level]}"
        )
    chosen = counted(view, view.query, choice.special)
    if kind == "row":
        return Panel(
            view, view.row(view.query, level), chosen, f"query {view.label(view.query)} · {view.levels[level]}"
        )
    return Panel(view, view.by_level(view.query), chosen, f"query {view.label(view.query)} · every level")


def scales(panels: Sequence[Panel], choice: Choice) -> list[Normalize]:
    """A scale for each panel, from zero, or balanced about zero for signed values; the same one if shared."""
    if any(p.signed for p in panels) and not all(p.signed for p in panels):
        ends = [limit(_without_own(p), p.chosen) for p in panels]  # a difference and its parts do not share a scale
        return [Normalize(-end if p.signed else 0.0, end) for p, end in zip(panels, ends, strict=True)]
    ends = [limit(_without_own(p), p.chosen) for p in panels]
    if choice.scale == "shared":
        ends = [max(ends)] * len(ends)
    return [Normalize(-end if p.signed else 0.0, end) for p, end in zip(panels, ends, strict=True)]


def _without_own(p: Panel) -> Values:
    """A matrix without each query's own entry, which fills the diagonal, unless all of it is the diagonal."""
    if p.values.ndim != 2 or len(p.values) != len(p.view.queries) or p.chosen.all() or "every query" not in p.text:
        return p.values
    own = np.equal.outer(p.view.queries, p.view.inputs)
    rest = np.where(own, 0.0, p.values)
    return rest if rest.any() else p.values


def colours(choice: Choice, *, signed: bool) -> ListedColormap:
    """The ramp of a theme as a colour map."""
    return ListedColormap(ramp(choice.theme, "diverging" if signed else "sequential"))


def title(axes: Axes, p: Panel) -> None:
    """The method, and in smaller letters what is drawn and how it was made."""
    spec, figure = axes.get_subplotspec(), axes.get_figure()
    room = figure.get_figwidth() / (spec.get_gridspec().ncols if spec else 1) if isinstance(figure, Figure) else 6.5
    lines = textwrap.wrap(" · ".join(part for part in (p.text, p.view.caption) if part), max(24, int(room * 14)))
    axes.set_title(p.view.method, fontweight="bold", pad=6 + 10 * len(lines))
    axes.annotate(
        "\n".join(lines), (0, 1), xytext=(0, 4), xycoords="axes fraction", textcoords="offset points",
        fontsize=7.5, color=SOFT, annotation_clip=False, va="bottom",
    ).set_in_layout(False)  # fmt: skip


def bar(figure: Figure, axes: Any, norm: Normalize, choice: Choice, panels: Sequence[Panel], **place: Any) -> None:
    """The colour bar of one scale. A pointed end says that some values lie beyond it."""
    beyond = max(float(np.abs(p.values).max()) for p in panels) > float(norm.vmax or 0) * 1.0005
    signed = panels[0].signed
    ends = "neither" if not beyond else "both" if signed else "max"
    drawn = figure.colorbar(ScalarMappable(norm, colours(choice, signed=signed)), ax=axes, extend=ends, **place)
    drawn.outline.set_linewidth(0.4)
    drawn.ax.tick_params(labelsize=7.5, width=0.5, length=2)
    if beyond and choice.special != "shown":
        words = "beyond: special" if choice.special == "hidden" else "beyond: special, own"
        drawn.set_label(words, fontsize=7, color=SOFT)


def name_ticks(axis: Axis, labels: Sequence[str], room: float, *, upright: bool = False) -> None:
    """Labels of the cells along an axis of `room` inches; where they do not all fit, every second, fifth, tenth …"""
    fit = max(1, int(room / 0.135))
    step = next(s for k in range(9) for s in (10**k, 2 * 10**k, 5 * 10**k) if -(-len(labels) // s) <= fit)
    places = range(0, len(labels), step)
    names = [_short(labels[i]) for i in places]
    axis.set_ticks(list(places), labels=names, fontsize=7.5)
    axis.set_tick_params(length=0 if step == 1 else 2, pad=2)
    if upright:
        for text in axis.get_ticklabels():
            text.set(rotation=90 if len(labels) > 12 or max(map(len, names)) > 5 else 0)


def _short(label: str, longest: int = 16) -> str:
    return label if len(label) <= longest else label[: longest - 1] + "…"
