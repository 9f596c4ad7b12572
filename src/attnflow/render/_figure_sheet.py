"""What all kinds of figure share: the choices, scales, colour bars, titles and tick labels."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from attnflow.render._colour import SOFT, ramp
from attnflow.render._view import FlowView, Values, View, counted, limit


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

    @property
    def soft(self) -> str:
        """The colour of what is said beside a picture."""
        return SOFT[self.theme]


@dataclass(frozen=True, eq=False)
class Panel:
    """One view's numbers in a figure, and which of them make the scale."""

    view: View
    values: Values  # the last axis is the inputs
    chosen: NDArray[np.bool_]  # of the inputs, or of all values
    text: str  # what is drawn: query, level

    @property
    def apart(self) -> NDArray[np.bool_]:
        """The values that stand outside the scale."""
        return ~np.broadcast_to(self.chosen, self.values.shape)

    @property
    def said(self) -> str:
        """What is drawn, and how it was made."""
        return " · ".join(part for part in (self.text, self.view.caption) if part)

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
            view, view.values[level], counted_rows(view, choice.special), f"every query · {view.levels[level]}"
        )
    chosen = counted(view, view.query, choice.special)
    if kind == "row":
        return Panel(
            view, view.row(view.query, level), chosen, f"query {view.label(view.query)} · {view.levels[level]}"
        )
    return Panel(view, view.by_level(view.query), chosen, f"query {view.label(view.query)} · every level")


def counted_rows(view: View, special: str) -> NDArray[np.bool_]:
    """Which entries make the scale of a matrix [query, input]."""
    return np.stack([counted(view, query, special) for query in view.queries])


def scales(panels: Sequence[Panel], choice: Choice) -> list[Normalize]:
    """A scale for each panel, from zero, or balanced about zero for signed values; the same one if shared."""
    ends = [limit(p.values, p.chosen) for p in panels]
    mixed = any(p.signed for p in panels) and not all(p.signed for p in panels)
    if choice.scale == "shared" and not mixed:  # a difference and its parts do not share a scale
        ends = [max(ends)] * len(ends)
    return [Normalize(-end if p.signed else 0.0, end) for p, end in zip(panels, ends, strict=True)]


def colours(choice: Choice, *, signed: bool = False, apart: bool = False) -> ListedColormap:
    """The ramp of a theme as a colour map."""
    return ListedColormap(ramp(choice.theme, "apart" if apart else "diverging" if signed else "sequential"))


def all_alike(said: Sequence[str]) -> bool:
    """Whether several panels say the same, so that once is enough."""
    return len(said) > 1 and len(set(said)) == 1


def titles(figure: Figure, spots: Iterable[Axes], panels: Sequence[Panel], choice: Choice) -> None:
    """Over each panel its method, and in smaller letters what is drawn and how it was made; once, where that is the same."""
    said = [p.said for p in panels]
    once = all_alike(said)
    for axes, p, words in zip(spots, panels, said, strict=True):
        title(axes, p.view.method, "" if once else words, choice)
    if once:
        lines = textwrap.fill(said[0], max(24, int(figure.get_figwidth() * 14)))
        figure.suptitle(lines, x=0.01, ha="left", fontsize=8, color=choice.soft)


def title(axes: Axes, name: str, said: str, choice: Choice) -> None:
    """A panel's name, and under it in smaller letters what else there is to say."""
    spec, figure = axes.get_subplotspec(), axes.get_figure()
    room = figure.get_figwidth() / (spec.get_gridspec().ncols if spec else 1) if isinstance(figure, Figure) else 6.5
    lines = textwrap.wrap(said, max(24, int(room * 14)))
    axes.set_title(name, fontweight="bold", pad=6 + 10 * len(lines))
    axes.annotate(
        "\n".join(lines), (0, 1), xytext=(0, 4), xycoords="axes fraction", textcoords="offset points",
        fontsize=7.5, color=choice.soft, annotation_clip=False, va="bottom",
    ).set_in_layout(False)  # fmt: skip


def bar(figure: Figure, axes: Any, norm: Normalize, choice: Choice, panels: Sequence[Panel], **place: Any) -> None:
    """The colour bar of one scale, and what grey means."""
    drawn = figure.colorbar(ScalarMappable(norm, colours(choice, signed=panels[0].signed)), ax=axes, **place)
    drawn.outline.set_linewidth(0.4)
    drawn.ax.tick_params(labelsize=7.5, width=0.5, length=2)
    grey = _apart_in_words(panels)
    if grey:
        drawn.set_label(f"grey: {grey}", fontsize=7, color=choice.soft)


def _apart_in_words(panels: Sequence[Panel]) -> str:
    """What of these panels stands outside the scale."""
    if not any(p.apart.any() for p in panels):
        return ""
    special = any(set(p.view.special) & set(p.view.inputs) for p in panels)
    return "special, own" if special else "own"


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


def frame(axes: Axes, view: View | FlowView, positions: list[int], names: Sequence[str], choice: Choice) -> None:
    """Nodes, level names and labels; row 0 is the input."""
    rows = len(names) + 1
    x, y = np.meshgrid(np.arange(len(positions)), np.arange(rows))
    axes.scatter(x.ravel(), y.ravel(), s=9 if len(positions) <= 40 else 2, color=choice.soft, linewidths=0, zorder=3)
    axes.set_yticks(range(rows), labels=["input", *names], fontsize=7.5)
    step = max(1, -(-len(positions) // 60))
    labels = [view.labels[p] for p in positions[::step]]
    axes.set_xticks(range(0, len(positions), step), labels=labels, fontsize=8, rotation=90)
    axes.set(xlim=(-0.7, len(positions) - 0.3), ylim=(-0.35, rows - 0.6))
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
