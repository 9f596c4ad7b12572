"""Statistics over sentences: intervals, paired tests, corrections. Columns are quantities, rows are sentences.

NaN marks a sentence without a value in that column; it is left out of that column only. All draws come from one seed,
and a resample takes the same sentences in every column, so differences between columns stay paired.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnflow.errors import InvalidArgument, suggest
from attnflow.evaluate._rows import Floats

_BLOCK = 4_000_000  # weights drawn at once
_EXACT_UP_TO = 12  # sentences for which all 2ⁿ signs are tried


class Summary(NamedTuple):
    """A mean over sentences, with its interval. `undefined` counts the sentences that had no value."""

    n: int
    undefined: int
    mean: float
    sd: float
    low: float
    high: float


class PairedTest(NamedTuple):
    """A test of the mean difference between two columns; `p` is two-sided and not corrected."""

    n: int
    difference: float
    sd: float
    low: float
    high: float
    p: float


def summarise(values: Floats, *, confidence: float = 0.95, resamples: int = 2_000, seed: int = 0) -> list[Summary]:
    """Mean, standard deviation (n − 1) and bootstrap interval of each column of [sentence, column]."""
    table = _table(values)
    low, high = bootstrap_interval(table, confidence=confidence, resamples=resamples, seed=seed)
    counts, means, deviations = _moments(table)
    return [
        Summary(int(n), len(table) - int(n), float(mean), float(sd), float(lowest), float(highest))
        for n, mean, sd, lowest, highest in zip(counts, means, deviations, low, high, strict=True)
    ]


def bootstrap_interval(
    values: Floats, *, confidence: float = 0.95, resamples: int = 2_000, seed: int = 0
) -> tuple[Floats, Floats]:
    """Interval of each column's mean: the expanded percentile bootstrap (Hesterberg 2015, section 4).

    Percentiles of the resampled means, taken at Φ(−t_{n−1} √(n/(n−1))) instead of α/2, because plain percentiles are too
    narrow for few sentences. NaN with fewer than two values.
    """
    from scipy import stats

    _check_share(confidence, "confidence")
    table = _table(values)
    present = ~np.isnan(table)
    counts = present.sum(axis=0)
    filled = np.where(present, table, 0.0)
    means = np.full((resamples, table.shape[1]), np.nan)
    rng = np.random.default_rng(seed)
    for start, stop in _blocks(resamples, len(table)):
        weights = _drawn_weights(rng, stop - start, len(table))
        with np.errstate(invalid="ignore", divide="ignore"):  # a resample may miss every value of a sparse column
            means[start:stop] = (weights @ filled) / (weights @ present)
    degrees = np.maximum(counts - 1, 1)
    tails = stats.norm.cdf(stats.t.ppf((1 - confidence) / 2, degrees) * np.sqrt((degrees + 1) / degrees))
    low, high = np.full(table.shape[1], np.nan), np.full(table.shape[1], np.nan)
    for column in np.flatnonzero(counts > 1):
        drawn = means[~np.isnan(means[:, column]), column]
        low[column], high[column] = np.quantile(drawn, [tails[column], 1 - tails[column]])
    return low, high


def _drawn_weights(rng: np.random.Generator, resamples: int, count: int) -> Floats:
    """How often each of `count` sentences is drawn [resample, sentence]; one count over all resamples is the fastest."""
    drawn = rng.integers(0, count, size=(resamples, count)) + count * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=resamples * count).reshape(resamples, count).astype(np.float64)


def permutation_test(differences: Floats, *, resamples: int = 10_000, seed: int = 0) -> Floats:
    """Two-sided p of each column under random signs of the sentences' differences (Fisher 1935; Pitman 1937).

    All signs are tried for up to 12 sentences; otherwise p = (1 + as extreme) / (1 + drawn), which is never 0.
    """
    table = np.nan_to_num(_table(differences))  # a missing sentence adds 0 whatever its sign
    count = len(table)
    observed = np.abs(table.sum(axis=0))
    slack = 1e-12 * np.abs(table).sum(axis=0)  # sums of the same numbers in another order are as extreme
    extreme = np.zeros(table.shape[1])
    if count <= _EXACT_UP_TO:
        signs = 1.0 - 2.0 * ((np.arange(2**count)[:, None] >> np.arange(count)) & 1)
        extreme = (np.abs(signs @ table) >= observed - slack).sum(axis=0).astype(np.float64)
        return np.asarray(extreme / 2**count)
    rng = np.random.default_rng(seed)
    for start, stop in _blocks(resamples, count):
        bits = np.unpackbits(np.frombuffer(rng.bytes((stop - start) * -(-count // 8)), np.uint8))
        signs = 1.0 - 2.0 * bits.reshape(stop - start, -1)[:, :count]
        extreme += (np.abs(signs @ table) >= observed - slack).sum(axis=0)
    return np.asarray((1 + extreme) / (1 + resamples))


def wilcoxon_test(differences: Floats) -> Floats:
    """Two-sided p of each column by Wilcoxon's signed-rank test (1945), which leaves differences of zero out."""
    from scipy import stats

    found = []
    for column in _table(differences).T:
        present = column[~np.isnan(column)]
        moved = present[present != 0]
        found.append(float(stats.wilcoxon(moved).pvalue) if len(moved) else 1.0)
    return np.array(found)


TESTS = ("permutation", "wilcoxon")


def paired_tests(
    first: Floats, second: Floats, *, test: str = "permutation", confidence: float = 0.95,
    resamples: int = 10_000, seed: int = 0,
) -> list[PairedTest]:  # fmt: skip
    """Column by column, whether `first` and `second` differ on the same sentences (those that have both values)."""
    if test not in TESTS:
        raise InvalidArgument(f"unknown test {test!r}." + suggest(test, TESTS))
    differences = _table(first) - _table(second)
    p = permutation_test(differences, resamples=resamples, seed=seed) if test == "permutation" else wilcoxon_test(differences)  # fmt: skip
    low, high = bootstrap_interval(differences, confidence=confidence, resamples=resamples, seed=seed)
    counts, means, deviations = _moments(differences)
    return [
        PairedTest(int(n), float(mean), float(sd), float(lowest), float(highest), float(chance) if n > 1 else math.nan)
        for n, mean, sd, lowest, highest, chance in zip(counts, means, deviations, low, high, p, strict=True)
    ]


def holm(p: Floats) -> Floats:
    """p-values corrected for how many they are (Holm 1979): sorted, times m, m − 1, …, never falling. NaN stays and does not count."""
    p = np.asarray(p, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    corrected = np.full(p.shape, np.nan)
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * factors)) if len(order) else 0.0
    return corrected


def smallest_detectable(sd: float, n: int, *, alpha: float = 0.05, power: float = 0.8, tests: int = 1) -> float:
    """The mean difference that a paired test of n sentences finds with this power: (t_{1−α/2m} + t_{power}) · sd / √n.

    With m tests under Holm's correction the hardest step, the first, is meant. sd is that of the differences.
    """
    from scipy import stats

    if n < 2:
        return math.nan
    steps = stats.t.ppf(1 - alpha / (2 * max(tests, 1)), n - 1) + stats.t.ppf(power, n - 1)
    return float(steps * sd / math.sqrt(n))


def _moments(table: Floats) -> tuple[NDArray[np.intp], Floats, Floats]:
    """Count, mean and standard deviation of each column's values; NaN where there are too few."""
    present = ~np.isnan(table)
    counts = present.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(present, table, 0.0).sum(axis=0) / counts
        squares = np.where(present, table - means, 0.0) ** 2
        deviations = np.sqrt(np.where(counts > 1, squares.sum(axis=0) / (counts - 1), np.nan))
    return counts, means, deviations


def _table(values: Floats) -> Floats:
    table = np.asarray(values, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or not len(table):
        raise InvalidArgument(f"expected values [sentence] or [sentence, column], got an array of shape {table.shape}.")
    return table


def _blocks(total: int, width: int) -> list[tuple[int, int]]:
    step = max(1, _BLOCK // max(width, 1))
    return [(start, min(start + step, total)) for start in range(0, total, step)]


def _check_share(value: float, what: str) -> None:
    if not 0 < value < 1:
        raise InvalidArgument(f"{what} is a share between 0 and 1, got {value!r}.")
