"""Patch grids in a terminal: each patch two characters wide, which makes it about square."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from rich.text import Text

from attnflow.render._view import Values, View
from attnflow.tokens import PatchGrid

Paint = Callable[[float], tuple[str, str]]  # a share of the scale → what a patch is written as, and its style


def whole_grids(view: View) -> dict[int, PatchGrid]:
    """The grids all of whose patches are inputs, by the position of their first one."""
    inputs = set(view.inputs)
    return {grid.offset: grid for grid in view.grids if inputs.issuperset(range(grid.offset, grid.stop))}


def patch_lines(shares: Values, grid: PatchGrid, width: int, paint: Paint) -> Iterator[Text]:
    """One line for each row of patches; where they do not fit the width, for several, which share their mean."""
    table = shares.reshape(grid.rows, grid.columns)
    step = max(1, -(-2 * grid.columns // width))
    for top in range(0, grid.rows, step):
        line = Text()
        for left in range(0, grid.columns, step):
            line.append(*paint(float(np.mean(table[top : top + step, left : left + step]))))
        yield line
