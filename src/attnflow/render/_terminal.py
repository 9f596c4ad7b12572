"""The terminal: a text coloured by one row, or tokens by levels, with a legend and, where needed, a line of advice.

Without colour (NO_COLOR, a pipe, a plain console) small bars and shades stand for the values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnflow.errors import InvalidArgument, suggest
from attnflow.render._shown import Shown, as_view
from attnflow.render._terminal_brush import Brush
from attnflow.render._terminal_flow import flow
from attnflow.render._terminal_levels import levels
from attnflow.render._terminal_row import strip
from attnflow.render._view import FlowView, counted

if TYPE_CHECKING:
    from rich.console import Console

KINDS = {"strip": strip, "levels": levels}


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

    `kind="strip"` colours the text (and maps the patches of an image) by what one query draws from it at one level and
    lists the `top` inputs;
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
    brush = Brush(out, theme, width or out.width)
    found = as_view(shown, query=query, words=words)
    if isinstance(found, FlowView):
        flow(brush, found, top)
        return
    asked, at = found.query, found.level(level)
    chosen = counted(found, asked, special)
    if special == "hidden":
        kept = ~np.isin(found.inputs, found.special)
        found, chosen = (found.only(kept), chosen[kept]) if kept.any() else (found, chosen)
    KINDS[kind](brush, found, asked, at, chosen, top)
    if found.notes[at]:
        brush.line("")
        brush.line(f"⚠ {found.notes[at]}", style="yellow")
