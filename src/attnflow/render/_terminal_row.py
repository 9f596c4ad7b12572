"""What one query draws on at one level: the text in colour, the patches of an image as a map, and the largest inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnflow.render._colour import colour
from attnflow.render._terminal_brush import Brush, column
from attnflow.render._terminal_patches import patch_lines, whole_grids
from attnflow.render._view import Values, View, limit, number

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.text import Text


def strip(brush: Brush, view: View, query: int, level: int, chosen: NDArray[np.bool_], top: int | None) -> None:
    """The text, coloured by a row; where it holds an image, its patches as a map."""
    from rich.text import Text

    row = view.row(query, level)
    end = limit(row, chosen)
    title(brush, view, f"{view.label(query)} draws on, at {view.levels[level]}")
    text, grids, patches = Text(), whole_grids(view), -1
    brush.line("")
    for place, position in enumerate(view.inputs):
        if position in grids:
            grid = grids[position]
            patches = grid.stop
            text = _ended(brush, text)
            part = slice(place, place + patches - position)
            for line in patch_lines(row[part] / end, chosen[part], grid, brush, signed=view.signed):
                brush.line(line)
        if position < patches:
            continue
        if text and position not in view.joined:
            text.append(" ")
        share = float(row[place] / end)
        style = brush.style(share, signed=view.signed, apart=not chosen[place])
        asked = position == query and brush.coloured
        text.append(view.labels[position], style=f"{style} underline".strip() if asked else style)
        if not brush.coloured:
            text.append(brush.mark(share))
    _ended(brush, text)
    legend(brush, end, view, query, chosen)
    if top:
        _list(brush, view, row, end, chosen, top)


def _ended(brush: Brush, text: Text) -> Text:
    """Print a line that is not empty; the next one."""
    if text:
        brush.line(text)
    return type(text)()


def title(brush: Brush, view: View, what: str) -> None:
    """The method, what is drawn of it, and how it was made."""
    from rich.text import Text

    text = Text(f"{view.method}: ", style="bold")
    text.append(f"what {what}", style="not bold")
    if view.caption:
        fits = text.cell_len + len(view.caption) + 4 <= brush.width
        text.append(f"  ({view.caption})" if fits else f"\n{view.caption}", style="dim not bold")
    brush.line(text)


def legend(brush: Brush, end: float, view: View, query: int, chosen: NDArray[np.bool_]) -> None:
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


def _list(brush: Brush, view: View, row: Values, end: float, chosen: NDArray[np.bool_], top: int) -> None:
    """The largest entries, with bars."""
    from rich.cells import cell_len
    from rich.text import Text

    best = np.argsort(-np.abs(row), kind="stable")[:top]
    names = [view.labels[view.inputs[i]] for i in best]
    room = max(8, min(max(cell_len(name) for name in names), brush.width // 3))
    bar = max(4, min(40, brush.width - room - 34))
    brush.line("")
    for place, name in zip(best, names, strict=True):
        share = float(row[place] / end)
        text = Text(f"{view.inputs[place]:>4} ", style="dim")
        text.append(f"{column(name, room)} {number(row[place]):>9} ", style="not dim")
        seen = share if view.signed else max(share, 0.35)  # a short bar must show, too
        ground = colour(seen, brush.theme, signed=view.signed, apart=not chosen[place])
        text.append_text(brush.bar(abs(share), bar, ground))
        if abs(share) > 1.0005:
            text.append("  beyond the scale", style="dim")
        brush.line(text)
