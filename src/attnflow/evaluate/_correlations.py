"""Rank correlations of many rows at once: NaN where one is not defined, never a guess.

A row of fewer than two inputs, or one whose values are all tied, has no order, so Spearman's and Kendall's coefficients
are NaN there. Who averages them says what becomes of those rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnflow.errors import InvalidArgument, suggest
from attnflow.evaluate._rows import Floats, Rows, average_ranks, dense_ranks

Statistic = Callable[[Rows, Rows, float], Floats]
RowStatistic = Callable[[Floats, Floats], float]

_BLOCK = 2_000_000  # pairs of inputs held at once by Kendall's tau


def spearman(scores: Rows, references: Rows, ties: float = 0.0) -> Floats:
    """Spearman's ρ: Pearson's correlation of the ranks, ties by average ranks (Spearman 1904; Kendall 1948 for ties)."""
    first = scores.centred(average_ranks(scores, ties))
    second = references.centred(average_ranks(references, ties))
    product = np.sqrt(scores.totals(first**2) * scores.totals(second**2))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(product > 0, scores.totals(first * second) / product, np.nan))


def kendall(scores: Rows, references: Rows, ties: float = 0.0) -> Floats:
    """Kendall's τ_b = (concordant − discordant) / √((pairs − tied in one) (pairs − tied in the other)) (Kendall 1945)."""
    first, second = dense_ranks(scores, ties), dense_ranks(references, ties)
    found = np.full(scores.count, np.nan)
    lengths = scores.lengths
    begins = np.cumsum(lengths) - lengths
    for length in np.unique(lengths[lengths > 1]):
        rows = np.flatnonzero(lengths == length)
        for chosen in np.array_split(rows, max(1, len(rows) * length**2 // _BLOCK)):
            where = begins[chosen][:, None] + np.arange(length)
            found[chosen] = _tau(first[where], second[where])
    return found


def _tau(first: Floats, second: Floats) -> Floats:
    one = np.sign(first[:, :, None] - first[:, None, :])
    other = np.sign(second[:, :, None] - second[:, None, :])
    untied = np.sqrt(np.count_nonzero(one, axis=(1, 2)) * np.count_nonzero(other, axis=(1, 2)).astype(np.float64))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(untied > 0, np.einsum("rij,rij->r", one, other) / untied, np.nan))


def spearman_dense(scores: Rows, references: Rows, ties: float = 0.0) -> Floats:
    """1 − 6 Σd² / (n (n² − 1)) over *dense* ranks, as the released code of Abnar & Zuidema (2020) computes it.

    Without ties this is Spearman's ρ. With ties it is not: the formula wants average ranks, and dense ranks make d too
    small, so that two rows with many ties seem to agree. A row without any order gets a number here too.
    """
    difference = dense_ranks(scores, ties) - dense_ranks(references, ties)
    lengths = scores.lengths.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = 1 - 6 * scores.totals(difference**2) / (lengths * (lengths**2 - 1))
    return np.asarray(np.where(lengths > 1, found, np.nan))


STATISTICS: dict[str, Statistic] = {"spearman": spearman, "kendall": kendall, "spearman_dense": spearman_dense}


def correlation(
    scores: Floats, reference: Floats, statistic: str | RowStatistic = "spearman", ties: float = 1e-9
) -> float:
    """The rank correlation of two rows; NaN where one of them has no order."""
    one, other = (Rows.of([np.asarray(row, dtype=np.float64)]) for row in (scores, reference))
    return float(statistic_called(statistic)(one, other, ties)[0])


def statistic_called(statistic: str | RowStatistic) -> Statistic:
    """A statistic by its name, or a function of two arrays (scores, references) of one row."""
    if callable(statistic):
        return _row_by_row(statistic)
    if statistic not in STATISTICS:
        raise InvalidArgument(f"unknown statistic {statistic!r}." + suggest(statistic, STATISTICS))
    return STATISTICS[statistic]


def _row_by_row(function: RowStatistic) -> Statistic:
    def statistic(scores: Rows, references: Rows, ties: float) -> Floats:
        ends = np.cumsum(scores.lengths)[:-1]
        pairs = zip(np.split(scores.values, ends), np.split(references.values, ends), strict=True)
        return np.array([float(function(one, other)) if len(one) > 1 else np.nan for one, other in pairs])

    return statistic
