"""A sheet of maps: scenes down, methods across, the deciding cell framed."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .draw import SIDE, Scenes
from .maps import WAYS
from .train import pixels

SHOWN = (
    "raw attention", "rollout", "flow", "rollout of gradient-weighted edges", "rollout of ALTI", "Grad-CAM, second block",
    "gradient", "integrated gradients",
)  # fmt: skip
COUNT = 6


def sheet(model: Any, drawn: Scenes, path: Path) -> None:
    """Each map from nothing (white) to its own highest patch."""
    values = pixels(drawn)
    lines = min(COUNT, len(drawn))
    figure = Figure(figsize=(1.35 * (1 + len(SHOWN)), 1.35 * lines + 0.5), layout="constrained")
    axes = figure.subplots(lines, 1 + len(SHOWN), squeeze=False)
    for number, line in enumerate(axes):
        left, top, right, bottom = drawn.box(number)
        line[0].imshow(drawn.images[number], extent=(0, SIDE, SIDE, 0))
        for spot, way in zip(line[1:], SHOWN, strict=True):
            found = WAYS[way](model, values[number : number + 1], int(drawn.labels[number]))
            spot.imshow(np.maximum(found, 0), cmap="Blues", vmin=0, extent=(0, SIDE, SIDE, 0))
        for spot in line:
            frame = Rectangle((left, top), right - left, bottom - top, fill=False, edgecolor="#c8501e", linewidth=1.2)
            spot.add_patch(frame)
            spot.set(xticks=[], yticks=[], xlim=(-0.5, SIDE + 0.5), ylim=(SIDE + 0.5, -0.5))
            spot.spines[:].set_linewidth(0.3)
    for spot, name in zip(axes[0], ("scene", *SHOWN), strict=True):
        spot.set_title(textwrap.fill(name, 18), fontsize=7.5)
    figure.savefig(path, dpi=110)
