from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from attnflow.errors import InvalidArgument
from attnflow.evaluate._correlations import kendall, spearman, spearman_dense, statistic_called
from attnflow.evaluate._rows import Floats, Rows, average_ranks, dense_ranks

# Few distinct values, so that ties are common; rows of every length from none to nine.
VALUES = st.lists(st.lists(st.tuples(st.integers(-3, 3), st.integers(-2, 2)), max_size=9), min_size=1, max_size=6)


def rows_of(drawn: list[list[tuple[int, int]]], side: int) -> list[Floats]:
    return [np.array([pair[side] for pair in row], dtype=np.float64) for row in drawn]


def scipys(function: str, one: Floats, other: Floats) -> float:
    """scipy warns and returns NaN where a row has no order; that decision is checked by itself below."""
    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return math.nan
    return float(getattr(stats, function)(one, other).statistic)


@given(VALUES)
def test_ranks_are_scipys(drawn: list[list[tuple[int, int]]]) -> None:
    rows = rows_of(drawn, 0)
    pairs: list[tuple[Any, Any]] = [(average_ranks, "average"), (dense_ranks, "dense")]
    for ranks, method in pairs:
        expected = np.concatenate([np.zeros(0), *(stats.rankdata(row, method) for row in rows)])
        np.testing.assert_array_equal(ranks(Rows.of(rows)), expected)


@given(VALUES)
def test_spearman_and_kendall_are_scipys(drawn: list[list[tuple[int, int]]]) -> None:
    first, second = rows_of(drawn, 0), rows_of(drawn, 1)
    for ours, theirs in ((spearman, "spearmanr"), (kendall, "kendalltau")):
        expected = [scipys(theirs, one, other) for one, other in zip(first, second, strict=True)]
        np.testing.assert_allclose(ours(Rows.of(first), Rows.of(second)), expected, atol=1e-12)


def test_a_row_without_an_order_is_nan_and_not_a_guess() -> None:
    constant, rising, alone, empty = (np.array(v, dtype=float) for v in ([2, 2, 2], [1, 2, 3], [5], []))
    scores, references = Rows.of([constant, rising, alone, empty]), Rows.of([rising, constant, alone, empty])
    for statistic in (spearman, kendall):
        assert np.isnan(statistic(scores, references)).all()


def test_ties_are_wider_than_the_last_digits_of_a_search() -> None:
    flows = Rows.of([np.array([1.0, 1.0 - 1e-13, 0.5, 1.0 + 1e-13])])
    assert average_ranks(flows, 1e-9).tolist() == [3, 3, 1, 3]
    assert average_ranks(flows).tolist() == [3, 2, 1, 4]
    scaled = Rows.of([np.array([1e-20, 2e-20, 3e-20])])  # the tolerance is relative to the row
    assert average_ranks(scaled, 1e-9).tolist() == [1, 2, 3]


def test_the_released_formula_by_hand() -> None:
    # dense ranks of the scores 1 2 2 3, of the references 4 3 2 1: d² = 9 + 1 + 0 + 4
    found = spearman_dense(Rows.of([np.array([0.1, 0.2, 0.2, 0.3])]), Rows.of([np.array([9.0, 8.0, 7.0, 6.0])]))
    assert found[0] == pytest.approx(1 - 6 * 14 / (4 * 15))


def test_the_released_formula_is_spearman_without_ties_and_another_thing_with_them(rng: np.random.Generator) -> None:
    one, other = Rows.of([rng.permutation(9.0 * np.ones(9).cumsum())]), Rows.of([rng.normal(size=9)])
    assert spearman_dense(one, other)[0] == pytest.approx(spearman(one, other)[0])
    tied, rising = Rows.of([np.array([0.0, 0, 0, 0, 1])]), Rows.of([np.array([1.0, 2, 0, 2, 1])])
    assert spearman_dense(tied, rising)[0] > 0.5 > abs(spearman(tied, rising)[0])


def test_a_function_is_called_row_by_row() -> None:
    dot = statistic_called(lambda one, other: float(one @ other))
    found = dot(Rows.of([np.array([1.0, 2.0]), np.array([3.0])]), Rows.of([np.array([1.0, 1.0]), np.array([1.0])]), 0)
    assert found[0] == 3
    assert np.isnan(found[1])


def test_an_unknown_statistic_is_named_with_what_there_is() -> None:
    with pytest.raises(InvalidArgument, match=r"unknown statistic 'pearson'.*Known: kendall, spearman, spearman_dense"):
        statistic_called("pearson")


def test_kendall_in_blocks_is_kendall_at_once(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [rng.normal(size=7) for _ in range(30)]
    other = [rng.normal(size=7) for _ in range(30)]
    whole = kendall(Rows.of(rows), Rows.of(other))
    monkeypatch.setattr("attnflow.evaluate._correlations._BLOCK", 100)
    np.testing.assert_array_equal(kendall(Rows.of(rows), Rows.of(other)), whole)
