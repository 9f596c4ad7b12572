"""What one query draws on, level by level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnflow.render._terminal_brush import Brush, column, more
from attnflow.render._terminal_row import legend, title
from attnflow.render._view import Values, View, limit, number

if TYPE_CHECKING:
    from numpy.typing import NDArray


def levels(brush: Brush, view: View, query: int, level: int, chosen: NDArray[np.bool_], top: int | None) -> None:
    """Inputs down, levels across: any number of inputs fits a narrow terminal, and their labels stay whole."""
    from rich.cells import cell_len
    from rich.text import Text

    rows = view.by_level(query)
    end = limit(rows, chosen)
    title(brush, view, f"{view.label(query)} draws on, level by level")
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
        text.append(column(name, room), style="not dim")
        text.append(" ")
        for value in rows[first:, i]:
            share = float(value / end)
            if brush.coloured:
                text.append("   ", style=brush.style(share, signed=view.signed, apart=not chosen[i]))
            else:
                text.append((" -" if share < 0 else "  ") + brush.shade(share))
        text.append(f"  {number(rows[level, i])}", style="not dim")
        brush.line(text)
    if first:
        brush.line(Text(f"     levels 0 to {first - 1} do not fit this width", style="dim"))
    left = len(view.inputs) - len(best)
    if left:
        brush.line(Text(f"     {more(left, 'input')} (a larger top shows them)", style="dim"))
    legend(brush, end, view, query, chosen)


def _largest(sizes: Values, top: int | None) -> list[int]:
    """The places of the largest, in order; all of them where leaving some out, and marking the gaps, saves no line."""
    best = sorted(np.argsort(-sizes, kind="stable")[:top].tolist())
    gaps = sum(place - before > 1 for before, place in zip([-1, *best], best, strict=False))
    return best if len(best) + gaps + 1 < len(sizes) else list(range(len(sizes)))
