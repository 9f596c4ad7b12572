"""The terminal: a text coloured by one row, or tokens by levels, with a legend and, where needed, a line of advice.

Without colour (NO_COLOR, a pipe, a plain console) small bars and shades stand for the values.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from attnflow.errors import InvalidArgument, suggest
from attnflow.render._colour import colour, ink
from attnflow.render._shown import Shown, as_view
from attnflow.render._view import FlowView, Values, View, counted, limit, number, path_in_words

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.console import Console
    from rich.text import Text

KINDS = ("strip", "levels")
FAINT = 0.02  # of the scale: below, a token keeps the terminal's own colours
_BARS = " ▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉"
_SHADES = " ·░▒▓█"


def terminal(
    shown: Shown,
    *,
    kind: str = "strip",
    query: int | str | None = None,
    level: int = -1,
    special: str = "unscaled",
    words: bool = False,
    top: int | None = 10,
    console: Console | None = None,
    width: int | None = None,
    theme: str | None = None,
) -> None:
    """Print an attribution, a view or the bottleneck of a pair.

    `kind="strip"` colours the text by what one query draws from it at one level and lists the `top` inputs;
    `kind="levels"` shows these inputs (None: all) at every level. `special` tokens, and the query's own entry, are
    "shown" in the scale, left out of it ("unscaled") or "hidden". `theme` is the ground, "dark" or "light"; without it
    the terminal's COLORFGBG, else dark.
    """
    from rich.console import Console

    if kind not in KINDS:
        raise InvalidArgument(f"unknown kind of picture for a terminal {kind!r}." + suggest(kind, KINDS))
    if top is not None and top < 0:
        raise InvalidArgument(f"top is how many inputs to list, from 0, or None for all; got {top}.")
    out = console or Console(width=width, highlight=False)
    brush = _Brush(out, theme, width or out.width)
    found = as_view(shown, query=query, words=words)
    if isinstance(found, FlowView):
        _flow(brush, found, top)
        return
    asked, at = found.query, found.level(level)
    chosen = counted(found, asked, special)
    if special == "hidden":
        kept = ~np.isin(found.inputs, found.special)
        found, chosen = (found.only(kept), chosen[kept]) if kept.any() else (found, chosen)
    (_strip if kind == "strip" else _levels)(brush, found, asked, at, chosen, top)
    if found.notes[at]:
        brush.line("")
        brush.line(f"⚠ {found.notes[at]}", style="yellow")


class _Brush:
    """A console, whether it has colours, and its ground."""

    def __init__(self, console: Console, theme: str | None, width: int) -> None:
        self.console, self.width = console, width
        self.coloured = console.color_system is not None and not console.no_color
        ground = os.environ.get("COLORFGBG", "").rpartition(";")[2]
        self.theme = theme or ("light" if ground in ("7", "15") else "dark")

    def line(self, text: Text | str, style: str = "") -> None:
        from rich.text import Text

        content = Text(text, style=style) if isinstance(text, str) else text
        self.console.print(content, width=self.width, highlight=False, overflow="fold", no_wrap=False)

    def style(self, share: float, *, signed: bool, apart: bool = False) -> str:
        if not self.coloured or abs(share) < FAINT:
            return ""
        ground = colour(share, self.theme, signed=signed, apart=apart)
        return f"{ink(ground)} on #{ground[0]:02x}{ground[1]:02x}{ground[2]:02x}"

    def bar(self, share: float, width: int, rgb: tuple[int, int, int]) -> Text:
        """A bar as long as its share of the width, to the eighth of a letter."""
        from rich.text import Text

        full, eighths = divmod(round(min(share, 1.0) * width * 8), 8)
        if not self.coloured:
            return Text("█" * full + _EIGHTHS[eighths].strip(), style="not dim")
        hue = f"#{rgb[0]:02x}{rgb[1]:02x}{rgb[2]:02x}"
        drawn = Text(" " * full, style=f"not dim on {hue}")  # a ground leaves no seams, as block letters do
        return drawn.append(_EIGHTHS[eighths].strip(), style=f"not dim {hue}")

    def mark(self, share: float) -> str:
        """A bar instead of a colour, with its sign."""
        height = round(min(abs(share), 1.0) * (len(_BARS) - 1))
        return ("-" if share < 0 and height else "") + _BARS[height].strip()

    def patch(self, *, signed: bool) -> Callable[[float], tuple[str, str]]:
        """How a patch of an image is written: as colour, or as a shade."""

        def paint(share: float) -> tuple[str, str]:
            if self.coloured:
                return "  ", self.style(share, signed=signed)
            shade = _SHADES[round(min(abs(share), 1.0) * (len(_SHADES) - 1))]
            return ("-" if share < 0 and shade != " " else shade) + shade, ""

        return paint


def _strip(brush: _Brush, view: View, query: int, level: int, chosen: NDArray[np.bool_], top: int | None) -> None:
    from rich.text import Text

    from attnflow.render._terminal_patches import patch_lines, whole_grids

    row = view.row(query, level)
    end = limit(row, chosen)
    _title(brush, view, f"{view.label(query)} draws on, at {view.levels[level]}")
    brush.line("")
    text, grids, patches = Text(), whole_grids(view), -1
    for place, position in enumerate(view.inputs):
        if position in grids:
            patches = grids[position].stop
            text = _ended(brush, text)
            shares = row[place : place + patches - position] / end
            for line in patch_lines(shares, grids[position], brush.width, brush.patch(signed=view.signed)):
                brush.line(line)
        if position < patches:
            continue
        if text and position not in view.joined:
            text.append(" ")
        share = float(row[place] / end)
        label = view.labels[position]
        style = brush.style(share, signed=view.signed, apart=not chosen[place])
        text.append(label, style=f"{style} underline".strip() if position == query and brush.coloured else style)
        if not brush.coloured:
            text.append(brush.mark(share))
    _ended(brush, text)
    _legend(brush, end, view, query, chosen)
    if top:
        _list(brush, view, row, end, chosen, top)


def _ended(brush: _Brush, text: Text) -> Text:
    """Print a line that is not empty; the next one."""
    if text:
        brush.line(text)
    return type(text)()


def _title(brush: _Brush, view: View, what: str) -> None:
    from rich.text import Text

    text = Text(f"{view.method}: ", style="bold")
    text.append(f"what {what}", style="not bold")
    if view.caption:
        fits = text.cell_len + len(view.caption) + 4 <= brush.width
        text.append(f"  ({view.caption})" if fits else f"\n{view.caption}", style="dim not bold")
    brush.line(text)


def _legend(brush: _Brush, end: float, view: View, query: int, chosen: NDArray[np.bool_]) -> None:
    """The scale, and what stands outside it."""
    from rich.text import Text

    text = Text("\n" + (f"−{number(end)} " if view.signed else "0 "), style="dim")
    for step in range(17):
        share = step / 8 - 1 if view.signed else step / 16
        if brush.coloured:
            text.append(" ", style=brush.style(share, signed=view.signed) or "default")
        elif step % 2 == 0:
            text.append(brush.mark(share) or "·")
    text.append(f" {number(end)}", style="dim")
    outside = {position for position, is_in in zip(view.inputs, chosen, strict=True) if not is_in}
    if outside:
        names = ["special tokens"] if outside - {query} else []
        names += [f"{view.label(query)} itself"] if query in outside else []
        text.append("   ")
        if brush.coloured:
            text.append("  ", style=brush.style(1.0, signed=False, apart=True))
        text.append(f" not in the scale: {' and '.join(names)}", style="dim")
    brush.line(text)


def _list(brush: _Brush, view: View, row: Values, end: float, chosen: NDArray[np.bool_], top: int) -> None:
    """The largest entries, with bars."""
    from rich.cells import cell_len, set_cell_size
    from rich.text import Text

    best = np.argsort(-np.abs(row), kind="stable")[:top]
    names = [view.labels[view.inputs[i]] for i in best]
    room = max(8, min(max(cell_len(name) for name in names), brush.width // 3))
    bar = max(4, min(40, brush.width - room - 34))
    brush.line("")
    for place, name in zip(best, names, strict=True):
        share = float(row[place] / end)
        cut = set_cell_size(name, room) if cell_len(name) > room else name + " " * (room - cell_len(name))
        text = Text(f"{view.inputs[place]:>4} ", style="dim")
        text.append(f"{cut} {number(row[place]):>9} ", style="not dim")
        seen = share if view.signed else max(share, 0.35)  # a short bar must show, too
        ground = colour(seen, brush.theme, signed=view.signed, apart=not chosen[place])
        text.append_text(brush.bar(abs(share), bar, ground))
        if abs(share) > 1.0005:
            text.append("  beyond the scale", style="dim")
        brush.line(text)


def _levels(brush: _Brush, view: View, query: int, level: int, chosen: NDArray[np.bool_], top: int | None) -> None:
    """Inputs down, levels across: any number of inputs fits a narrow terminal, and their labels stay whole."""
    from rich.cells import cell_len, set_cell_size
    from rich.text import Text

    rows = view.by_level(query)
    end = limit(rows, chosen)
    _title(brush, view, f"{view.label(query)} draws on, level by level")
    best = _largest(np.abs(rows).max(axis=0), top)
    room = max([6, *(min(cell_len(view.labels[view.inputs[i]]), brush.width // 3) for i in best)])
    across = max(1, (brush.width - room - 18) // 3)
    first = max(0, len(rows) - across)  # the upper levels, where not all fit
    head = "".join(f"{n:>3}" for n in range(first, len(rows)))
    brush.line(Text(f"     {'':{room}} {head}  {view.levels[level]}", style="dim"))
    for place, i in enumerate(best):
        if i - (best[place - 1] if place else -1) > 1:
            brush.line(Text(f"     {'⋮':<{room}}", style="dim"))
        name = view.labels[view.inputs[i]]
        text = Text(f"{view.inputs[i]:>4} ", style="dim")
        text.append(set_cell_size(name, room), style="not dim")
        text.append(" ")
        for value in rows[first:, i]:
            share = float(value / end)
            if brush.coloured:
                text.append("   ", style=brush.style(share, signed=view.signed, apart=not chosen[i]))
            else:
                shade = _SHADES[round(min(abs(share), 1.0) * (len(_SHADES) - 1))]
                text.append((" -" if share < 0 else "  ") + shade)
        text.append(f"  {number(rows[level, i])}", style="not dim")
        brush.line(text)
    if first:
        brush.line(Text(f"     levels 0 to {first - 1} do not fit this width", style="dim"))
    left = len(view.inputs) - len(best)
    if left:
        brush.line(Text(f"     {left} more inputs (top=None shows all)", style="dim"))
    _legend(brush, end, view, query, chosen)


def _largest(sizes: Values, top: int | None) -> list[int]:
    """The places of the largest, in order; all of them where leaving some out, and marking the gaps, saves no line."""
    best = sorted(np.argsort(-sizes, kind="stable")[:top].tolist())
    gaps = sum(place - before > 1 for before, place in zip([-1, *best], best, strict=False))
    return best if len(best) + gaps + 1 < len(sizes) else list(range(len(sizes)))


def _flow(brush: _Brush, flow: FlowView, top: int | None) -> None:
    """The value, what limits it, and the largest paths."""
    from rich.text import Text

    brush.line(Text(f"flow: {flow.sentence}", style="bold"))
    brush.line(flow.limit)
    if flow.caption:
        brush.line(Text(flow.caption, style="dim"))
    brush.line("")
    largest = flow.paths[0].amount if flow.paths else 1.0
    if flow.paths:
        brush.line(Text("the largest paths, from the query down (→₃ is a step at level 3)", style="bold"))
    for path in flow.paths[:top]:
        text = Text(f"{number(path.amount):>9} ", style="bold")
        bar = brush.bar(path.amount / largest, 8, colour(0.55, brush.theme))
        text.append_text(bar).append(" " * (9 - bar.cell_len), style="not bold")
        text.append(path_in_words(path, flow.labels), style="not bold")
        brush.line(text)
    rest = len(flow.paths) - len(flow.paths[:top])
    if rest:
        brush.line(Text(f"{rest} more paths, {number(sum(p.amount for p in flow.paths[top:]))} in all", style="dim"))
    cut = sorted((edge for edge in flow.edges if edge.cut), key=lambda edge: -edge.flow)
    if cut:
        brush.line("")
        brush.line(Text("the minimum cut", style="bold"))
        for edge in cut[:top]:
            brush.line(
                f"{number(edge.flow):>9} {flow.levels[edge.level]}: {flow.labels[edge.query]} ← {flow.labels[edge.key]}"
            )
        if len(cut) > len(cut[:top]):
            brush.line(Text(f"{len(cut) - len(cut[:top])} more edges", style="dim"))
