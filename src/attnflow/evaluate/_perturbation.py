"""Faithfulness by perturbation: what becomes of the model's answer as the features a map ranks highest are taken away.

A model comes in as a callable only: from which features are kept [variant, feature] to the target's value [variant],
usually a probability. All measures are read off two curves over the share of features, so one call answers for many
maps at once, and a variant that several maps ask for is asked for once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnflow.errors import InvalidArgument, suggest
from attnflow.evaluate._rows import Floats

Predict = Callable[[NDArray[np.bool_]], Floats]

SHARE = 0.2  # of the features, where a measure looks at one place of a curve
TINY = 1e-12  # the smallest probability whose logarithm is taken


@dataclass(frozen=True, eq=False)
class Curves:
    """The target's value by share of features: `deletion` with the highest ranked taken away, `insertion` with only them.

    `shares` rise from 0 to 1. The value of the whole input is `deletion[0]`, that of the empty one `insertion[0]`.
    """

    shares: Floats
    deletion: Floats
    insertion: Floats

    @property
    def whole(self) -> float:
        """The value with nothing taken away."""
        return float(self.deletion[0])

    def at(self, share: float) -> int:
        """The place of the first cut that takes at least this share."""
        return int(np.searchsorted(self.shares, share - 1e-9))


def ranking(scores: Floats, seed: int = 0) -> NDArray[np.intp]:
    """Features from the highest score to the lowest. Ties are broken by chance, not by place: flows tie, and places bias."""
    chance = np.random.default_rng(seed).permutation(len(scores))
    return np.lexsort((chance, -np.asarray(scores, dtype=np.float64)))


def curves(scores: Sequence[Floats], predict: Predict, *, steps: int | None = 10, seed: int = 0) -> list[Curves]:
    """The deletion and insertion curves of several maps of the same features.

    At each of `steps` equal shares q, ⌈q · n⌉ features are taken (DeYoung et al. 2020); `steps=None` cuts after every feature.
    """
    rows = [_checked(row) for row in scores]
    counts = {len(row) for row in rows}
    if len(counts) != 1:
        raise InvalidArgument(f"maps of one input rank the same features; got maps of {sorted(counts)} features.")
    [count] = counts
    if steps is not None and steps < 1:
        raise InvalidArgument(f"curves need at least one step, got {steps!r}.")
    shares = np.linspace(0, 1, (count if steps is None else steps) + 1)
    taken = np.ceil(shares * count - 1e-9).astype(int)
    masks = np.stack([_masks(ranking(row, seed), taken) for row in rows])  # [map, deletion and insertion, cut, feature]
    distinct, place = np.unique(masks.reshape(-1, count), axis=0, return_inverse=True)
    values = np.asarray(predict(distinct), dtype=np.float64)
    if values.shape != (len(distinct),):
        raise InvalidArgument(
            f"the model must give one value for each of {len(distinct)} variants, got {values.shape}."
        )
    found = values[place.reshape(masks.shape[:-1])]
    return [Curves(shares, deletion, insertion) for deletion, insertion in found]


def _masks(order: NDArray[np.intp], taken: NDArray[np.int_]) -> NDArray[np.bool_]:
    """Which features are kept at each cut: without the first ones, and with only these."""
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    first = place[None, :] < taken[:, None]
    return np.stack([~first, first])


def _checked(row: Floats) -> Floats:
    scores = np.asarray(row, dtype=np.float64)
    if scores.ndim != 1 or not len(scores):
        raise InvalidArgument(f"a map is a row of scores, one for each feature; got shape {scores.shape}.")
    if not np.isfinite(scores).all():
        raise InvalidArgument("a map holds NaN or infinity, which has no rank.")
    return scores


def comprehensiveness(found: Curves, share: float = SHARE) -> float:
    """p(whole) − p(without the highest ranked share) (DeYoung et al. 2020, eq. 1). High: these features were needed."""
    return found.whole - float(found.deletion[found.at(share)])


def sufficiency(found: Curves, share: float = SHARE) -> float:
    """p(whole) − p(only the highest ranked share) (DeYoung et al. 2020, eq. 2). Low: these features were enough."""
    return found.whole - float(found.insertion[found.at(share)])


def aopc_comprehensiveness(found: Curves) -> float:
    """The mean of p(whole) − p(without the first k) over the cuts (Samek et al. 2017; as ferret has it with every k)."""
    return found.whole - float(found.deletion[1:].mean())


def aopc_sufficiency(found: Curves) -> float:
    """The mean of p(whole) − p(only the first k) over the cuts."""
    return found.whole - float(found.insertion[1:].mean())


def deletion_area(found: Curves) -> float:
    """∫ p(without the first share q) dq by trapezoids (Petsiuk et al. 2018). Low: the value falls at once."""
    return float(np.trapezoid(found.deletion, found.shares))


def insertion_area(found: Curves) -> float:
    """∫ p(only the first share q) dq by trapezoids (Petsiuk et al. 2018). High: the value is there at once."""
    return float(np.trapezoid(found.insertion, found.shares))


def log_odds(found: Curves, share: float = SHARE) -> float:
    """log p(without the highest ranked share) − log p(whole) (Shrikumar et al. 2017; Chen et al. 2019). Low: needed.

    Only where values are probabilities; NaN where one is negative.
    """
    values = found.deletion[[found.at(share), 0]]
    if (values < 0).any():
        return math.nan
    without, whole = np.log(np.maximum(values, TINY))
    return float(without - whole)


class Measure(NamedTuple):
    """A number read off curves, and whether a higher one speaks for the map."""

    of: Callable[[Curves], float]
    higher_is_better: bool
    needs_share: bool


MEASURES: dict[str, Measure] = {
    "comprehensiveness": Measure(comprehensiveness, True, True),
    "sufficiency": Measure(sufficiency, False, True),
    "AOPC comprehensiveness": Measure(aopc_comprehensiveness, True, False),
    "AOPC sufficiency": Measure(aopc_sufficiency, False, False),
    "deletion area": Measure(deletion_area, False, False),
    "insertion area": Measure(insertion_area, True, False),
    "log-odds": Measure(log_odds, False, True),
}


def measured(found: Curves, measure: str, share: float = SHARE) -> float:
    """One measure by its name."""
    if measure not in MEASURES:
        raise InvalidArgument(f"unknown measure {measure!r}." + suggest(measure, MEASURES))
    if not 0 < share <= 1:
        raise InvalidArgument(f"share is a share of the features above 0, got {share!r}.")
    function, _, needs_share = MEASURES[measure]
    return function(found, share) if needs_share else function(found)  # type: ignore[call-arg]
