from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from attnflow.errors import InvalidArgument
from attnflow.evaluate import (
    bootstrap_interval,
    holm,
    paired_tests,
    permutation_test,
    smallest_detectable,
    summarise,
    wilcoxon_test,
)

# Simulated data: a column is one experiment, so one call makes many experiments.
EXPERIMENTS = 400


def covered(low: np.ndarray, high: np.ndarray, truth: float) -> float:
    return float(((low <= truth) & (truth <= high)).mean())


@pytest.mark.parametrize("count", [15, 60])
def test_intervals_cover_the_mean_as_often_as_they_say(rng: np.random.Generator, count: int) -> None:
    values = rng.normal(0.3, 0.4, size=(count, EXPERIMENTS))
    # 95 % ± 3 standard errors of a share of 400
    assert 0.917 <= covered(*bootstrap_interval(values, resamples=1_000), 0.3) <= 0.983


def test_intervals_of_skewed_correlations_cover_too(rng: np.random.Generator) -> None:
    values = np.tanh(rng.normal(0.9, 0.7, size=(60, EXPERIMENTS)))
    truth = float(np.tanh(np.random.default_rng(1).normal(0.9, 0.7, size=400_000)).mean())
    assert covered(*bootstrap_interval(values, resamples=1_000), truth) >= 0.91


def test_plain_percentiles_would_be_too_narrow_for_few_sentences(rng: np.random.Generator) -> None:
    values = rng.normal(size=(8, EXPERIMENTS))
    low, high = bootstrap_interval(values, resamples=1_000)
    t_width = 2 * stats.t.ppf(0.975, 7) * values.std(axis=0, ddof=1) / math.sqrt(8)
    assert np.median((high - low) / t_width) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("test", ["permutation", "wilcoxon"])
def test_tests_find_nothing_in_nothing_at_the_nominal_rate(rng: np.random.Generator, test: str) -> None:
    shared = rng.normal(size=(40, EXPERIMENTS))  # sentences differ from each other, methods do not
    first, second = (shared + 0.3 * rng.normal(size=shared.shape) for _ in range(2))
    p = np.array([found.p for found in paired_tests(first, second, test=test, resamples=1_000)])
    assert 0.02 <= (p <= 0.05).mean() <= 0.083
    assert 0.4 <= p.mean() <= 0.6


def test_holm_keeps_the_family_wise_rate(rng: np.random.Generator) -> None:
    differences = rng.normal(size=(30, 10 * EXPERIMENTS))
    p = permutation_test(differences, resamples=1_000).reshape(EXPERIMENTS, 10)
    assert np.mean([holm(family).min() <= 0.05 for family in p]) <= 0.083
    assert np.mean([family.min() <= 0.05 for family in p]) > 0.3  # without it, this often


def test_an_effect_of_the_detectable_size_is_detected_as_often_as_promised(rng: np.random.Generator) -> None:
    size = smallest_detectable(0.5, 50)
    p = permutation_test(rng.normal(size, 0.5, size=(50, EXPERIMENTS)), resamples=1_000)
    assert 0.72 <= (p <= 0.05).mean() <= 0.88
    assert smallest_detectable(0.5, 50, tests=36) > size
    assert math.isnan(smallest_detectable(0.5, 1))


def test_exact_permutation_by_hand_and_by_scipy(rng: np.random.Generator) -> None:
    assert permutation_test(np.array([1.0, 2.0, 3.0]))[0] == pytest.approx(2 / 8)  # only +++ and −−− are as extreme
    assert permutation_test(np.array([1.0, 1.0, -1.0]))[0] == 1.0
    differences = rng.normal(0.3, 1, size=9)
    scipys: Any = stats.permutation_test(
        (differences, np.zeros(9)), lambda a, b, axis: (a - b).mean(axis=axis),
        permutation_type="samples", vectorized=True, n_resamples=9_999,  # more than 2⁹: exact
    )  # fmt: skip
    assert permutation_test(differences)[0] == pytest.approx(scipys.pvalue)


def test_drawn_permutations_are_near_the_normal_limit_and_never_zero(rng: np.random.Generator) -> None:
    differences = rng.normal(0.15, 1, size=300)
    expected = stats.ttest_1samp(differences, 0).pvalue
    assert permutation_test(differences)[0] == pytest.approx(expected, abs=0.015)
    assert permutation_test(differences + 5, resamples=999)[0] == 1 / 1000


def test_wilcoxon_is_scipys_and_leaves_missing_sentences_out(rng: np.random.Generator) -> None:
    differences = rng.normal(0.2, 1, size=30)
    expected = stats.wilcoxon(differences).pvalue
    assert wilcoxon_test(differences)[0] == pytest.approx(expected)
    assert wilcoxon_test(np.r_[differences, np.nan, 0.0])[0] == pytest.approx(expected)
    assert wilcoxon_test(np.zeros(5))[0] == 1.0


def test_holm_by_hand() -> None:
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm(np.array([0.5, 0.9])).tolist() == [1.0, 1.0]
    with_gap = holm(np.array([0.02, np.nan, 0.03]))
    assert with_gap[[0, 2]].tolist() == pytest.approx([0.04, 0.04])
    assert np.isnan(with_gap[1])
    assert len(holm(np.array([]))) == 0


def test_summaries_by_hand_with_missing_values() -> None:
    table = np.array([[1.0, np.nan, np.nan], [2.0, 4.0, np.nan], [3.0, np.nan, np.nan]])
    full, single, none = summarise(table)
    assert (full.n, full.undefined, full.mean, full.sd) == (3, 0, 2.0, 1.0)
    assert full.low < 2 < full.high
    assert (single.n, single.undefined, single.mean) == (1, 2, 4.0)
    assert np.isnan([single.sd, single.low, single.high]).all()
    assert (none.n, none.undefined) == (0, 3)
    assert np.isnan(none.mean)


def test_the_same_seed_gives_the_same_numbers(rng: np.random.Generator) -> None:
    values = rng.normal(size=(50, 3))
    assert summarise(values, seed=3) == summarise(values, seed=3)
    assert summarise(values, seed=3) != summarise(values, seed=4)


def test_blocks_change_nothing_but_the_memory(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    values = rng.normal(size=(64, 2))
    whole = permutation_test(values, resamples=500), bootstrap_interval(values, resamples=500)
    monkeypatch.setattr("attnflow.evaluate._inference._BLOCK", 64 * 8)
    np.testing.assert_array_equal(permutation_test(values, resamples=500), whole[0])
    np.testing.assert_array_equal(bootstrap_interval(values, resamples=500), whole[1])


def test_bad_input_is_named() -> None:
    with pytest.raises(InvalidArgument, match="confidence is a share"):
        bootstrap_interval(np.ones(3), confidence=95)
    with pytest.raises(InvalidArgument, match="shape"):
        summarise(np.ones((2, 2, 2)))
    with pytest.raises(InvalidArgument, match="unknown test 't'"):
        paired_tests(np.ones(3), np.ones(3), test="t")
