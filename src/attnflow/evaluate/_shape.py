"""What a map looks like, without any reference: how spread it is, how much stays at home, how alike two maps are.

Each measure gives one number for each sentence and level [sentence, level]; `summarise` averages them over sentences.
Scores are made shares of their row first, so that flows, whose rows do not sum to 1, can be set beside proportions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnflow.attribution import Attribution
from attnflow.errors import InvalidArgument
from attnflow.evaluate._correlations import RowStatistic, statistic_called
from attnflow.evaluate._rows import Floats
from attnflow.evaluate._select import Choice, by_method, score_rows


def entropy(attributions: Sequence[Attribution], query: int | str | None = None, over: str | None = None) -> Floats:
    """−Σ p log p / log n of the compared row: 1 is uniform, 0 is one input alone; NaN for a single input."""
    choice = Choice(query, over)
    return np.array([[_entropy(row) for row in _shares(choice.scores(item))] for item in attributions])


def top_mass(
    attributions: Sequence[Attribution], k: int = 3, query: int | str | None = None, over: str | None = None
) -> Floats:
    """The share of the row that its k largest inputs hold; uniform rows give k / n."""
    if k < 1:
        raise InvalidArgument(f"top_mass needs a k of at least 1, got {k}.")
    choice = Choice(query, over)
    return np.array([np.sort(_shares(choice.scores(item)))[:, -k:].sum(axis=1) for item in attributions])


def diagonal_mass(attributions: Sequence[Attribution]) -> Floats:
    """The share that a position takes from its own input, averaged over the queries asked for; uniform gives 1 / n."""
    found = []
    for item in attributions:
        own = [(row, item.inputs.index(query)) for row, query in enumerate(item.queries) if query in item.inputs]
        if not own:
            raise InvalidArgument(f"no query of {item!r} is among its inputs, so there is no diagonal.")
        queries, inputs = (list(places) for places in zip(*own, strict=True))
        found.append(_shares(item.scores)[:, queries, inputs].mean(axis=1))
    return np.array(found)


def agreement(
    first: Sequence[Attribution],
    second: Sequence[Attribution],
    *,
    statistic: str | RowStatistic = "kendall",
    query: int | str | None = None,
    over: str | None = None,
    count_own: bool = True,
    count_special: bool = True,
    ties: float = 1e-9,
) -> Floats:
    """The rank correlation of two methods' rows, level by level; NaN where one of them has no order."""
    choice = Choice(query, over, count_own, count_special)
    pair = by_method({"first": first, "second": second})
    levels = zip(score_rows(pair["first"], choice), score_rows(pair["second"], choice), strict=True)
    correlate = statistic_called(statistic)
    return np.stack([correlate(one, other, ties) for one, other in levels], axis=1)


def _shares(scores: Floats) -> Floats:
    if scores.min() < 0:
        raise InvalidArgument("shares need scores that are not negative; these are signed.")
    totals = scores.sum(axis=-1, keepdims=True)
    return np.asarray(np.where(totals > 0, scores / np.where(totals > 0, totals, 1), 1 / scores.shape[-1]))


def _entropy(shares: Floats) -> float:
    if len(shares) < 2:
        return float("nan")
    held = shares[shares > 0]
    return float(-(held * np.log(held)).sum() / np.log(len(shares)))
