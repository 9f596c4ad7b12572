"""Rows of different lengths as one long array, and their ranks, without a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows laid end to end: `owner[i]` is the row that `values[i]` belongs to; there are `count` rows, some may be empty."""

    values: Floats
    owner: NDArray[np.intp]
    count: int

    @classmethod
    def of(cls, rows: Sequence[Floats]) -> Rows:
        """Several arrays of one dimension as rows."""
        lengths = [len(row) for row in rows]
        values = np.concatenate([np.zeros(0), *rows]).astype(np.float64, copy=False)
        return cls(values, np.repeat(np.arange(len(rows)), lengths), len(rows))

    @property
    def lengths(self) -> NDArray[np.intp]:
        """How long each row is."""
        return np.bincount(self.owner, minlength=self.count)

    def totals(self, values: Floats) -> Floats:
        """Sums over each row of these values, which lie like the rows' own."""
        return np.bincount(self.owner, weights=values, minlength=self.count).astype(np.float64, copy=False)

    def centred(self, values: Floats) -> Floats:
        """The values minus their row's mean."""
        means = self.totals(values) / np.maximum(self.lengths, 1)
        return values - means[self.owner]


def average_ranks(rows: Rows, ties: float = 0.0) -> Floats:
    """Ranks from 1 within each row; tied values share the mean of their places."""
    order, group = _tied_groups(rows, ties)
    sizes = np.bincount(group)
    places = np.cumsum(sizes) - (sizes - 1) / 2  # from 1, over all rows
    before = np.cumsum(rows.lengths) - rows.lengths
    ranks = np.empty(len(rows.values))
    ranks[order] = places[group] - before[rows.owner[order]]
    return ranks


def dense_ranks(rows: Rows, ties: float = 0.0) -> Floats:
    """Ranks from 1 within each row; tied values share a rank and the next value gets the next number."""
    order, group = _tied_groups(rows, ties)
    owner = rows.owner[order]
    first = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]][: len(owner)])  # where a row begins
    start = np.zeros(rows.count)
    start[owner[first]] = group[first]
    ranks = np.empty(len(rows.values))
    ranks[order] = group - start[owner] + 1
    return ranks


def _tied_groups(rows: Rows, ties: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The order that sorts every row in its place, and for each sorted value the number of its group of tied values.

    Neighbours are tied where they differ by at most `ties` times the row's largest absolute value. Equal results of a
    search differ in their last digits, and ranking those digits would rank the search and not the scores.
    """
    scale = np.zeros(rows.count)
    np.maximum.at(scale, rows.owner, np.abs(rows.values))
    order = np.lexsort((rows.values, rows.owner))
    values, owner = rows.values[order], rows.owner[order]
    begins = np.ones(len(values), dtype=np.bool_)
    begins[1:] = (owner[1:] != owner[:-1]) | (np.diff(values) > ties * scale[owner[1:]])
    return order, np.cumsum(begins) - 1
