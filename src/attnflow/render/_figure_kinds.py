"""KINDS: the only list of kinds of figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure

from attnflow.render._figure_bars import bars
from attnflow.render._figure_graph import graph
from attnflow.render._figure_maps import levels, matrix
from attnflow.render._figure_patches import patches
from attnflow.render._figure_sheet import Choice
from attnflow.render._figure_text import strip

__all__ = ["KINDS", "Choice"]

KINDS: dict[str, Callable[[Any, Choice], Figure]] = {
    "strip": strip,
    "levels": levels,
    "matrix": matrix,
    "graph": graph,
    "patches": patches,
    "bars": bars,
}
