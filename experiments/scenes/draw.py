"""Scenes: one digit among letters and shapes, on a grid of cells. The class is the digit; the truth is its cell.

Every object lies wholly inside its cell. Where the digit is, and everything about the other cells, is drawn independently
of which digit it is: nothing outside the deciding cell says anything about the class.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

CELLS = 4  # a side
CELL = 16  # pixels a side
SIDE = CELLS * CELL
PATCH = 8  # of the model
DIGITS = "0123456789"
LETTERS = "ACEFHKLMNPRTUVWXY"  # those that no digit looks like
SHAPES = ("disc", "ring", "square", "frame", "triangle", "cross", "bar", "diamond")
KINDS = (*DIGITS, *LETTERS, *SHAPES)
VARIANTS = 48  # of size, slant, weight and place, of each kind
FEWEST, MOST = 4, 9  # distractors

Pixels = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Scenes:
    """`images` [n, row, column, RGB], the digit in each, and its cell counted row by row; `kinds` of all cells, -1 empty."""

    images: Pixels
    labels: NDArray[np.int64]
    cells: NDArray[np.int64]
    kinds: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.images)

    def box(self, number: int) -> tuple[int, int, int, int]:
        """The deciding cell in pixels: left, top, right, bottom."""
        row, column = divmod(int(self.cells[number]), CELLS)
        return column * CELL, row * CELL, (column + 1) * CELL, (row + 1) * CELL

    def truth(self, number: int) -> NDArray[np.bool_]:
        """Which patches [row, column] lie in the deciding cell."""
        left, top, right, bottom = (edge // PATCH for edge in self.box(number))
        mask = np.zeros((SIDE // PATCH, SIDE // PATCH), dtype=np.bool_)
        mask[top:bottom, left:right] = True
        return mask


def scenes(count: int, seed: int, *, fewest: int = FEWEST, most: int = MOST) -> Scenes:
    """`count` scenes; the same seed draws the same ones."""
    rng = np.random.default_rng(seed)
    places = CELLS * CELLS
    order = rng.random((count, places)).argsort(axis=1)
    objects = rng.integers(fewest, most + 1, count)
    rank = order.argsort(axis=1)  # of each cell: 0 is the digit's, 1 … objects are distractors
    labels = rng.integers(0, len(DIGITS), count)
    others = rng.integers(len(DIGITS), len(KINDS), (count, places))
    kinds = np.where(rank == 0, labels[:, None], np.where(rank <= objects[:, None], others, -1))
    alpha = sprites()[kinds, rng.integers(0, VARIANTS, (count, places))]  # the last kind of the bank is empty
    colours = _colours(rng, count, places)
    images = _painted(rng, alpha.reshape(count, CELLS, CELLS, CELL, CELL), colours)
    return Scenes(images, labels, order[:, 0], kinds)


def enlarged(drawn: Scenes, number: int, times: int = 6) -> Image.Image:
    """One scene for people to look at. A processor makes it small again, so a model sees nearly the same."""
    size = (times * SIDE, times * SIDE)
    return Image.fromarray(drawn.images[number]).resize(size, Image.Resampling.BICUBIC)


def _colours(rng: np.random.Generator, count: int, places: int) -> NDArray[np.float32]:
    """The background's colour [n, 1, RGB] and the objects', which stand off from it: [n, 1 + places, RGB]."""
    dark = rng.random((count, 1, 1)) < 0.5
    ground = rng.uniform(0.05, 0.4, (count, 1, 3))
    ink = rng.uniform(0.6, 1.0, (count, places, 3))
    colours = np.concatenate([ground, ink], axis=1)
    return np.where(dark, colours, 1 - colours).astype(np.float32)


def _painted(rng: np.random.Generator, alpha: NDArray[np.float32], colours: NDArray[np.float32]) -> Pixels:
    count = len(alpha)
    ground = colours[:, :1, None, None].reshape(count, 1, 1, 1, 1, 3)
    ink = colours[:, 1:].reshape(count, CELLS, CELLS, 1, 1, 3)
    cells = ground + alpha[..., None] * (ink - ground)
    whole = cells.transpose(0, 1, 3, 2, 4, 5).reshape(count, SIDE, SIDE, 3)
    slope = rng.uniform(-0.1, 0.1, (count, 2, 1, 1, 3)).astype(np.float32)
    ramp = np.linspace(-1, 1, SIDE, dtype=np.float32)
    whole = whole + slope[:, 0] * ramp[None, :, None, None] + slope[:, 1] * ramp[None, None, :, None]
    whole += 0.03 * rng.standard_normal(whole.shape, dtype=np.float32)
    found: Pixels = np.rint(np.clip(whole, 0, 1) * 255).astype(np.uint8)
    return found


@cache
def sprites() -> NDArray[np.float32]:
    """How much of each pixel of a cell an object covers: [kind, variant, row, column]; the last kind is nothing."""
    rng = np.random.default_rng(1)
    bank = np.zeros((len(KINDS) + 1, VARIANTS, CELL, CELL), dtype=np.float32)
    for number, kind in enumerate(KINDS):
        for variant in range(VARIANTS):
            bank[number, variant] = _sprite(kind, rng)
    bank.flags.writeable = False
    return bank


def _sprite(kind: str, rng: np.random.Generator) -> NDArray[np.float32]:
    """Drawn at eight times the size, turned a little, moved a little, and made small."""
    fine = 8 * CELL
    canvas = Image.new("L", (fine, fine))
    size = rng.uniform(0.68, 0.86) * fine
    if len(kind) == 1:
        _letter(canvas, kind, size)
    else:
        _shape(canvas, kind, size * 0.8, rng.uniform(0.1, 0.16) * fine)
    canvas = canvas.rotate(rng.uniform(-12, 12), resample=Image.Resampling.BICUBIC)
    inside = canvas.getbbox()
    assert inside is not None
    room = [(-inside[0], fine - inside[2]), (-inside[1], fine - inside[3])]
    move = [int(rng.uniform(max(low, -fine / 8), min(high, fine / 8))) for low, high in room]
    canvas = canvas.transform(canvas.size, Image.Transform.AFFINE, (1, 0, -move[0], 0, 1, -move[1]))
    return (np.asarray(canvas.resize((CELL, CELL), Image.Resampling.BOX)) / 255).astype(np.float32)


def _letter(canvas: Image.Image, letter: str, height: float) -> None:
    """The letter's ink in the middle, this high."""
    font = ImageFont.load_default(height / 0.72)
    left, top, right, bottom = font.getbbox(letter)
    middle = canvas.width / 2
    at = (middle - (left + right) / 2, middle - (top + bottom) / 2)
    ImageDraw.Draw(canvas).text(at, letter, fill=255, font=font, stroke_width=2)


def _shape(canvas: Image.Image, shape: str, size: float, stroke: float) -> None:
    pen, middle, half, width = ImageDraw.Draw(canvas), canvas.width / 2, size / 2, int(stroke)
    box = (middle - half, middle - half, middle + half, middle + half)
    corners = {
        "triangle": [(middle, middle - half), (middle + half, middle + half), (middle - half, middle + half)],
        "diamond": [(middle, middle - half), (middle + half, middle), (middle, middle + half), (middle - half, middle)],
    }
    if shape in corners:
        pen.polygon(corners[shape], fill=255)
    elif shape == "disc":
        pen.ellipse(box, fill=255)
    elif shape == "ring":  # flat: a round one would be a nought
        pen.ellipse((box[0], middle - half / 2, box[2], middle + half / 2), outline=255, width=width)
    elif shape == "square":
        pen.rectangle(box, fill=255)
    elif shape == "frame":
        pen.rectangle(box, outline=255, width=width)
    elif shape == "cross":
        pen.line((box[0], middle, box[2], middle), fill=255, width=width)
        pen.line((middle, box[1], middle, box[3]), fill=255, width=width)
    else:  # a bar lies; one that stands would be a one
        pen.rectangle((box[0], middle - stroke, box[2], middle + stroke), fill=255)
