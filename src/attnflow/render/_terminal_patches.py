"""Patch grids in a terminal: each patch two characters wide, which makes it about square."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnflow.render._terminal_brush import Brush
from attnflow.render._view import Values, View
from attnflow.tokens import PatchGrid

if TYPE_CHECKING:
    from rich.text import Text


def whole_grids(view: View) -> dict[int, PatchGrid]:
    """The grids all of whose patches are inputs, by the position of their first one."""
    inputs = set(view.inputs)
    return {grid.offset: grid for grid in view.grids if inputs.issuperset(range(grid.offset, grid.stop))}


def patch_lines(
    shares: Values, chosen: NDArray[np.bool_], grid: PatchGrid, brush: Brush, *, signed: bool
) -> Iterator[Text]:
    """One line for each row of patches; where they do not fit the width, for several, which share their mean.

    `chosen` are the patches that make the scale: where there are some, the mean is of them.
    """
    from rich.text import Text

    table, counts = shares.reshape(grid.rows, grid.columns), chosen.reshape(grid.rows, grid.columns)
    step = max(1, -(-2 * grid.columns // brush.width))
    for top in range(0, grid.rows, step):
        line = Text()
        for left in range(0, grid.columns, step):
            part = np.s_[top : top + step, left : left + step]
            apart = not counts[part].any()
            share = float(table[part].mean() if apart else table[part][counts[part]].mean())
            line.append(brush.patch(share), style=brush.style(share, signed=signed, apart=apart))
        yield line
