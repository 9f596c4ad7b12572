"""Many methods on the same sentences: places with intervals, sizes of effects, and who is shown to be better than whom."""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnflow.errors import InvalidArgument
from attnflow.evaluate._inference import holm, paired_tests, smallest_detectable
from attnflow.evaluate._rows import Floats

_PAIR_DRAWS = 40  # resamples for each pair: fewer, and Holm's first step could reach no level however large the effect


class Place(NamedTuple):
    """The place of a method's mean among the methods, 1 being the best, and its bootstrap interval."""

    place: float
    low: float
    high: float


class Effect(NamedTuple):
    """A paired difference in standard deviations of the differences, and its bootstrap interval."""

    size: float
    low: float
    high: float


class Pair(NamedTuple):
    """Two columns compared: mean of first − second. `p_corrected` is Holm's over all pairs of the table."""

    first: int
    second: int
    n: int
    difference: float
    low: float
    high: float
    effect: float
    p: float
    p_corrected: float
    detectable: float


def places(
    values: Floats, *, higher_is_better: bool = True, confidence: float = 0.95, resamples: int = 2_000, seed: int = 0
) -> list[Place]:
    """Places of the columns of [sentence, column] by their means, tied means sharing theirs.

    The intervals are percentiles of the places in resamples of sentences (Goldstein & Spiegelhalter 1996); sentences that
    lack any column's value are left out, since places compare columns on the same sentences.
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or not table.size:
        raise InvalidArgument(f"places need values [sentence, column], got shape {table.shape}.")
    table = table[~np.isnan(table).any(axis=1)]
    if len(table) < 2:
        return [Place(math.nan, math.nan, math.nan)] * table.shape[1]
    signed = -table if higher_is_better else table
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(len(table), np.full(len(table), 1 / len(table)), size=resamples)
    drawn = _places_of(weights @ signed / len(table))
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    own = _places_of(signed.mean(axis=0)[None])[0]
    return [Place(float(p), float(a), float(b)) for p, a, b in zip(own, low, high, strict=True)]


def _places_of(means: Floats) -> NDArray[np.float64]:
    """Places within each row, from 1 for the lowest; means that differ by rounding alone share a place."""
    slack = 1e-12 * np.abs(means).max(axis=1, keepdims=True)[:, :, None]
    below = means[:, None, :] < means[:, :, None] - slack
    tied = np.abs(means[:, None, :] - means[:, :, None]) <= slack
    return np.asarray(below.sum(axis=2) + (tied.sum(axis=2) + 1) / 2)


def effect_size(differences: Floats, *, confidence: float = 0.95, resamples: int = 2_000, seed: int = 0) -> Effect:
    """Cohen's d_z, mean / standard deviation of paired differences, times Hedges' J = 1 − 3/(4(n − 1) − 1) against its bias.

    The interval is the bootstrap's, percentiles of d_z in resamples of sentences.
    """
    row = np.asarray(differences, dtype=np.float64)
    row = row[~np.isnan(row)]
    if len(row) < 3:
        return Effect(math.nan, math.nan, math.nan)
    drawn = np.random.default_rng(seed).integers(0, len(row), size=(resamples, len(row)))
    sizes = np.array([_standardised(some) for some in row[drawn]])
    known = sizes[np.isfinite(sizes)]
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    low, high = np.quantile(known, tails) if len(known) else (math.nan, math.nan)
    return Effect(_standardised(row), float(low), float(high))


def _standardised(row: Floats) -> float:
    deviation = float(row.std(ddof=1))
    if deviation == 0:
        return 0.0 if not row.any() else math.nan
    return float(row.mean()) / deviation * (1 - 3 / (4 * (len(row) - 1) - 1))


def all_pairs(
    values: Floats, *, test: str = "permutation", confidence: float = 0.95, seed: int = 0
) -> dict[tuple[int, int], Pair]:
    """Every two columns of [sentence, column] compared on the sentences that have both, Holm-corrected over all pairs.

    Whoever picks out pairs afterwards (the best against the others) is covered, since all of them were paid for.
    """
    table = np.asarray(values, dtype=np.float64)
    pairs = list(combinations(range(table.shape[1]), 2))
    if not pairs or len(table) < 2:
        return {}
    one, other = (table[:, [pair[side] for pair in pairs]] for side in (0, 1))
    tests = paired_tests(one, other, test=test, confidence=confidence, resamples=_draws(len(pairs)), seed=seed)
    p = np.array([found.p for found in tests])
    corrected = holm(p)
    known = int((~np.isnan(corrected)).sum())
    return {
        pair: Pair(
            *pair, found.n, found.difference, found.low, found.high,
            found.difference / found.sd if found.sd > 0 else (0.0 if found.difference == 0 else math.nan),
            found.p, float(right), smallest_detectable(found.sd, found.n, alpha=1 - confidence, tests=known),
        )
        for pair, found, right in zip(pairs, tests, corrected, strict=True)
    }  # fmt: skip


def _draws(pairs: int) -> int:
    return max(10_000, _PAIR_DRAWS * pairs)


def two_sample_test(first: Floats, second: Floats, *, resamples: int = 10_000, seed: int = 0) -> float:
    """Two-sided p of the difference of two means under exchange of the samples' labels (Fisher 1935; Pitman 1937).

    For sentences that are not the same in both samples. p = (1 + as extreme) / (1 + drawn), never 0.
    """
    one, other = (row[~np.isnan(row)] for row in (np.asarray(first, np.float64), np.asarray(second, np.float64)))
    if len(one) < 2 or len(other) < 2:
        return math.nan
    pooled = np.concatenate([one, other])
    observed = abs(one.mean() - other.mean())
    rng = np.random.default_rng(seed)
    extreme = 0
    for start in range(0, resamples, 1_000):
        several = min(1_000, resamples - start)
        shuffled = rng.permuted(np.broadcast_to(pooled, (several, len(pooled))), axis=1)
        differences = shuffled[:, : len(one)].mean(axis=1) - shuffled[:, len(one) :].mean(axis=1)
        extreme += int((np.abs(differences) >= observed - 1e-12 * np.abs(pooled).max()).sum())
    return (1 + extreme) / (1 + resamples)


def difference_interval(
    first: Floats, second: Floats, *, confidence: float = 0.95, resamples: int = 2_000, seed: int = 0
) -> tuple[float, float]:
    """Bootstrap interval of the difference of two means whose samples are drawn apart."""
    rows = [row[~np.isnan(row)] for row in (np.asarray(first, np.float64), np.asarray(second, np.float64))]
    if min(map(len, rows)) < 2:
        return math.nan, math.nan
    rng = np.random.default_rng(seed)
    one, other = (row[rng.integers(0, len(row), size=(resamples, len(row)))].mean(axis=1) for row in rows)
    low, high = np.quantile(one - other, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
