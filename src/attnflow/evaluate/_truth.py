"""Maps against the truth, where it is known: which features the output depends on, as a mask.

All are NaN where the mask tells nothing apart (no feature, or every one, is true).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from attnflow.errors import InvalidArgument
from attnflow.evaluate._rows import Floats, Rows, average_ranks

Mask = NDArray[np.bool_]


def hit(scores: Floats, truth: Mask) -> float:
    """Whether the highest score lies on a true feature (the pointing game, Zhang et al. 2018); ties count by their share."""
    best = scores == scores.max()
    return float(truth[best].mean())


def separation(scores: Floats, truth: Mask) -> float:
    """How often a true feature scores higher than another one, ties half: the area under the ROC curve."""
    ranks = average_ranks(Rows.of([scores]))
    count = int(truth.sum())
    above = ranks[truth].sum() - count * (count + 1) / 2
    return float(above / (count * (len(scores) - count)))


def mass(scores: Floats, truth: Mask) -> float:
    """The share of the positive scores that lies on true features; NaN where no score is positive."""
    positive = np.maximum(scores, 0)
    total = positive.sum()
    return float(positive[truth].sum() / total) if total > 0 else math.nan


AGAINST_TRUTH: dict[str, Callable[[Floats, Mask], float]] = {"hit": hit, "separation": separation, "mass": mass}


def against_truth(scores: Floats, truth: Mask) -> dict[str, float]:
    """Every one of these by name. For all of them, higher is better."""
    scores, truth = np.asarray(scores, dtype=np.float64), np.asarray(truth)
    if truth.dtype != np.bool_ or truth.shape != scores.shape or scores.ndim != 1:
        raise InvalidArgument(
            f"the truth is one boolean for each of {scores.shape} scores; got {truth.dtype} of shape {truth.shape}."
        )
    if not truth.any() or truth.all():
        return dict.fromkeys(AGAINST_TRUTH, math.nan)
    return {name: function(scores, truth) for name, function in AGAINST_TRUTH.items()}
