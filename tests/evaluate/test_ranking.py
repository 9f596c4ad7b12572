"""Places, effects and pairs: by hand, against scipy, and on simulated data whose truth is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from attnflow import evaluate
from attnflow.errors import InvalidArgument

EXPERIMENTS = 200


def test_places_by_hand() -> None:
    values = np.array([[3.0, 1.0, 3.0], [5.0, 1.0, 5.0], [4.0, 2.0, 4.0]])
    assert [one.place for one in evaluate.places(values)] == [1.5, 3, 1.5]
    assert [one.place for one in evaluate.places(values, higher_is_better=False)] == [2.5, 1, 2.5]
    with_gap = np.vstack([values, [np.nan, 9.0, 9.0]])  # an input that not all columns have says nothing of their order
    assert [one.place for one in evaluate.places(with_gap)] == [1.5, 3, 1.5]
    assert all(math.isnan(one.place) for one in evaluate.places(values[:1]))


def test_intervals_of_places_hold_the_true_place_where_means_differ_and_span_where_they_do_not() -> None:
    rng = np.random.default_rng(5)
    truth = np.array([0.0, 0.5, 0.5, 2.0])
    held, spans = 0, 0
    for _ in range(EXPERIMENTS):
        values = truth + rng.normal(size=(40, 4)) + rng.normal(size=(40, 1))
        found = evaluate.places(values, resamples=300)
        held += found[3].low <= 1 <= found[3].high and found[0].low <= 4 <= found[0].high
        spans += found[1].low <= 2.5 <= found[1].high
    assert held / EXPERIMENTS >= 0.93
    assert spans / EXPERIMENTS >= 0.93


def test_effect_size_is_the_t_statistic_made_small() -> None:
    row = np.random.default_rng(1).normal(0.4, 1, size=30)
    t = float(stats.ttest_1samp(row, 0).statistic)
    bias = 1 - 3 / (4 * 29 - 1)
    assert evaluate.effect_size(row).size == pytest.approx(t / math.sqrt(30) * bias)
    assert evaluate.effect_size(np.r_[row, np.nan]).size == pytest.approx(t / math.sqrt(30) * bias)
    assert evaluate.effect_size(np.zeros(5)).size == 0
    assert math.isnan(evaluate.effect_size(np.ones(2)).size)


def test_effect_sizes_are_unbiased_and_their_intervals_cover() -> None:
    rng = np.random.default_rng(2)
    found = [evaluate.effect_size(rng.normal(0.5, 1, size=25), resamples=400) for _ in range(EXPERIMENTS)]
    assert np.mean([one.size for one in found]) == pytest.approx(0.5, abs=0.05)
    assert 0.9 <= np.mean([one.low <= 0.5 <= one.high for one in found]) <= 0.99


def test_all_pairs_are_paid_for() -> None:
    """Picking the best afterwards and testing it against the others finds something in nothing at most at the nominal rate."""
    rng = np.random.default_rng(3)
    found = 0
    for seed in range(EXPERIMENTS):
        values = rng.normal(size=(20, 5))
        best = int(values.mean(axis=0).argmax())
        pairs = evaluate.all_pairs(values, seed=seed)
        found += any(pair.p_corrected <= 0.05 for key, pair in pairs.items() if best in key)
    assert found / EXPERIMENTS <= 0.08


def test_a_true_difference_is_found_and_has_its_sign() -> None:
    rng = np.random.default_rng(4)
    values = rng.normal(size=(60, 1)) + rng.normal(0, 0.5, size=(60, 3)) + [0.0, 0.6, 0.6]
    pairs = evaluate.all_pairs(values)
    assert set(pairs) == {(0, 1), (0, 2), (1, 2)}
    assert pairs[0, 1].difference < 0
    assert pairs[0, 1].p_corrected < 0.01
    assert pairs[0, 1].low < -0.6 < pairs[0, 1].high
    assert pairs[0, 1].effect == pytest.approx(
        float(stats.ttest_rel(values[:, 0], values[:, 1]).statistic) / math.sqrt(60)
    )
    assert pairs[1, 2].p_corrected > 0.05
    assert pairs[1, 2].detectable > 0


def test_many_pairs_can_still_reach_the_level() -> None:
    """With too few resamples the smallest p would not survive the correction, however large the effect."""
    values = np.random.default_rng(6).normal(size=(40, 40)) + np.arange(40)
    assert evaluate.all_pairs(values)[0, 39].p_corrected < 0.05


def test_two_samples_are_scipys_permutation_test() -> None:
    rng = np.random.default_rng(7)
    one, other = rng.normal(0.6, 1, size=25), rng.normal(0, 1, size=40)
    scipys: Any = stats.permutation_test(
        (one, other),
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        vectorized=True,
        n_resamples=9_999,
        rng=1,
    )
    assert evaluate.two_sample_test(one, other) == pytest.approx(float(scipys.pvalue), abs=0.015)
    low, high = evaluate.difference_interval(one, other)
    welch = stats.ttest_ind(one, other, equal_var=False).confidence_interval()
    assert (low, high) == pytest.approx((welch.low, welch.high), abs=0.1)
    assert math.isnan(evaluate.two_sample_test(one[:1], other))


def test_two_samples_of_the_same_kind_differ_at_the_nominal_rate() -> None:
    rng = np.random.default_rng(8)
    p = [evaluate.two_sample_test(rng.normal(size=15), rng.normal(size=30), resamples=499) for _ in range(EXPERIMENTS)]
    assert np.mean(np.array(p) <= 0.05) <= 0.1
    assert 0.42 <= np.mean(p) <= 0.58


def test_correlation_of_two_rows_is_scipys() -> None:
    rng = np.random.default_rng(9)
    one, other = rng.normal(size=12), rng.normal(size=12)
    assert evaluate.correlation(one, other) == pytest.approx(float(stats.spearmanr(one, other).statistic))
    assert math.isnan(evaluate.correlation(np.ones(4), np.arange(4.0)))


def test_bad_input_is_named() -> None:
    with pytest.raises(InvalidArgument, match="places need values"):
        evaluate.places(np.ones(3))
