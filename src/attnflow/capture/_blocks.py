"""Levels of any model as one square graph: encoder and decoder on one axis, sinks as a last token.

Design: source and target positions share an axis of S + T. Encoder levels act on the first block, decoder levels on the
second, cross-attention goes from the second to the first; rows that a level does not act on are identity rows, marked
as passive. A sink takes a share of each row and says nothing: one more token, behind all others, that keeps to itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnflow.capture._levels import Level
from attnflow.errors import CaptureError
from attnflow.tokens import Tokens, Word

SINK = "[sink]"

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Axis:
    """The positions of one input's graph: real source positions, real target positions, perhaps the sink."""

    source: Mask
    target: Mask | None
    sink: bool
    tokens: Tokens
    model: str  # its name, for errors

    @property
    def target_start(self) -> int:
        """Where the decoder's block starts."""
        return int(self.source.sum())

    def rows(self, level: Level) -> tuple[slice, Mask]:
        """Where the queries of a level go, and which of the model's queries are real."""
        return self._second() if level.side == "decoder" else self._first()

    def columns(self, level: Level) -> tuple[slice, Mask]:
        """The same for its keys."""
        return self._second() if level.side == "decoder" and not level.cross else self._first()

    def _first(self) -> tuple[slice, Mask]:
        return slice(0, self.target_start), self.source

    def _second(self) -> tuple[slice, Mask]:
        assert self.target is not None
        return slice(self.target_start, self.target_start + int(self.target.sum())), self.target


def axis_of(
    source: Mask, source_tokens: Tokens, target: Mask | None, target_tokens: Tokens | None, *, sink: bool, model: str
) -> Axis:
    """One axis, its tokens joined: source, target, sink."""
    parts = [source_tokens]
    if target_tokens is not None:
        parts.append(target_tokens)
    if sink:
        parts.append(Tokens([SINK], [True]))
    return Axis(source, target, sink, parts[0] if len(parts) == 1 else joined(parts), model)


def joined(parts: Sequence[Tokens]) -> Tokens:
    """Tokens one after the other."""
    labels = [label for part in parts for label in part.labels]
    special = np.concatenate([part.special for part in parts])
    words, grids, start = [], [], 0
    for part in parts:
        words += [Word(word.start + start, word.stop + start, word.label) for word in part.words]
        grids += [replace(grid, offset=grid.offset + start) for grid in part.grids]
        start += len(part)
    return Tokens(labels, special, words=words, grids=grids)


def place(level: Level, body: NDArray[Any] | None, axis: Axis, passive: float = 1) -> tuple[NDArray[Any], Mask]:
    """A level's matrix at its place on the axis, cropped, and which rows are passive. Those have `passive` on the diagonal.

    `body` holds the model's own queries and keys, padding included; None is a layer that moves nothing.
    """
    count = len(axis.tokens)
    idle = np.ones(count, dtype=np.bool_)
    if body is None:
        return np.eye(count, dtype=np.float32), idle
    (rows, real_rows), (columns, real_columns) = axis.rows(level), axis.columns(level)
    width = len(real_columns)
    sink = level.seen is not None and level.seen.sink
    _check_shape(axis.model, level, (body.shape[0], body.shape[1] - sink), (len(real_rows), width))
    idle[rows] = False
    block = body[:, :width]
    if not (real_rows.all() and real_columns.all()):
        block = block[np.ix_(real_rows, real_columns)]
    if block.shape == (count, count):
        return block, idle
    matrix = np.zeros((count, count), dtype=body.dtype)
    matrix[rows, columns] = block
    if sink:
        matrix[rows, -1] = body[real_rows, width]
    matrix[idle, idle] = passive
    return matrix, idle


def _check_shape(model: str, level: Level, came: tuple[int, int], wanted: tuple[int, int]) -> None:
    if came != wanted:
        raise CaptureError(
            f"{model} cannot be captured: {level.name} attends from {came[0]} positions to {came[1]}, but the input has {wanted[0]} by {wanted[1]}: "
            "its attention is not a matrix over the input's positions (windows, merged or pooled positions, or a cached prefix)."
        )
