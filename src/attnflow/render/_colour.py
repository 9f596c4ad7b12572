"""Colours of values: perceptually uniform, safe for colour-blind eyes, one family on light and on dark ground.

Each ramp goes through a few anchors in OKLab (Ottosson 2020), where equal distances look equal, and is sampled at equal
distances. Lightness only rises or only falls along it, so it survives any colour blindness and a black and white printer.
Zero has the colour of the ground, so that nothing looks like nothing. Signed values diverge into blue and orange. What
stands outside a scale ("apart") is grey: its size shows, and it takes the eye from nothing.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from attnflow.errors import InvalidArgument, suggest

Triples = NDArray[np.float64]

GROUND = {"light": "#ffffff", "dark": "#16181d"}
SOFT = {"light": "#636b76", "dark": "#9aa2ad"}  # for what is said beside a picture: above 5 to 1 on its ground
KINDS = ("sequential", "diverging", "apart")

_ANCHORS = {
    ("light", "sequential"): ("#ffffff", "#b7d3ee", "#5d9bd8", "#2f62b0", "#1c2c6b"),
    ("dark", "sequential"): ("#16181d", "#1f3b73", "#2f77c4", "#63b8e6", "#def4f6"),
    ("light", "diverging"): ("#7a3300", "#cf6a14", "#f3b67c", "#ffffff", "#a9c8ea", "#3f7fc6", "#1d3a80"),
    ("dark", "diverging"): ("#ffd9a8", "#f0923a", "#8a4a16", "#16181d", "#1f4a86", "#4a9be0", "#cfeaff"),
    ("light", "apart"): ("#ffffff", "#a3aab4"),
    ("dark", "apart"): ("#16181d", "#757d89"),
}

# linear sRGB → cone response → OKLab
_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def oklab(rgb: Triples) -> Triples:
    """sRGB from 0 to 1 as OKLab."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    lab: Triples = np.cbrt(linear @ _TO_LMS.T) @ _TO_LAB.T
    return lab


def _srgb(lab: Triples) -> Triples:
    linear = np.clip((lab @ np.linalg.inv(_TO_LAB).T) ** 3 @ np.linalg.inv(_TO_LMS).T, 0, 1)
    rgb: Triples = np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
    return rgb


def parsed(colour: str) -> Triples:
    """#rrggbb as numbers from 0 to 1."""
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255


@cache
def ramp(theme: str, kind: str = "sequential", steps: int = 256) -> Triples:
    """RGB [step, 3] of a ramp. A diverging ramp has zero in its middle."""
    if theme not in GROUND:
        raise InvalidArgument(f"unknown theme {theme!r}." + suggest(theme, GROUND))
    anchors = oklab(np.stack([parsed(colour) for colour in _ANCHORS[theme, kind]]))
    arms = (anchors[: len(anchors) // 2 + 1], anchors[len(anchors) // 2 :]) if kind == "diverging" else (anchors,)
    if len(arms) == 1:
        colours = _evenly(anchors, steps)
    else:
        half = steps // 2 + 1
        colours = np.vstack([_evenly(arms[0], half)[:-1], _evenly(arms[1], half)])
    colours.flags.writeable = False
    return colours


def _evenly(anchors: Triples, steps: int) -> Triples:
    """`steps` colours along the anchors, at equal distances from one another."""
    fine = np.linspace(0, len(anchors) - 1, 2000)
    axis = np.arange(len(anchors))
    line = np.stack([np.interp(fine, axis, column) for column in anchors.T], axis=1)
    along = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    places = np.linspace(0, along[-1], steps)
    return _srgb(np.stack([np.interp(places, along, column) for column in line.T], axis=1))


def colour(share: float, theme: str, *, signed: bool = False, apart: bool = False) -> tuple[int, int, int]:
    """The colour of a share of the scale, from 0 to 1, or from −1 if signed. What lies beyond ends at the end."""
    table = ramp(theme, "apart" if apart else "diverging" if signed else "sequential")
    place = abs(share) if apart else (share + 1) / 2 if signed else share
    red, green, blue = np.rint(table[round(min(max(place, 0.0), 1.0) * (len(table) - 1))] * 255)
    return int(red), int(green), int(blue)


def ink(ground: tuple[int, int, int]) -> str:
    """Black or white, whichever reads better on this ground: never below a contrast of 4.5 to 1."""
    channels = np.array(ground) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return "#000000" if float(linear @ (0.2126, 0.7152, 0.0722)) > 0.179 else "#ffffff"


def hexes(theme: str, kind: str, steps: int) -> list[str]:
    """A ramp as #rrggbb, for style sheets and scripts."""
    return list(_hexes(theme, kind, steps))


@cache
def _hexes(theme: str, kind: str, steps: int) -> tuple[str, ...]:
    return tuple("#" + "".join(f"{int(c):02x}" for c in np.rint(rgb * 255)) for rgb in ramp(theme, kind, steps))
