from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnflow import evaluate
from attnflow.errors import InvalidArgument


def test_by_hand() -> None:
    truth = np.array([True, False, False, True])
    assert evaluate.against_truth(np.array([3.0, 1.0, 2.0, 2.0]), truth) == pytest.approx(
        {"hit": 1, "separation": (2 + 1.5) / 4, "mass": 5 / 8}
    )
    assert evaluate.against_truth(np.array([1.0, 5.0, 5.0, 5.0]), truth)["hit"] == pytest.approx(1 / 3)
    signed = evaluate.against_truth(np.array([2.0, -7.0, 2.0, -1.0]), truth)
    assert signed["mass"] == 0.5
    assert math.isnan(evaluate.against_truth(-np.ones(4), truth)["mass"])


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=12))
def test_separation_is_sklearns_area_under_the_curve(pairs: list[tuple[int, bool]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    scores, truth = np.array([p[0] for p in pairs], float), np.array([p[1] for p in pairs])
    found = evaluate.against_truth(scores, truth)["separation"]
    if truth.all() or not truth.any():
        assert math.isnan(found)
    else:
        assert found == pytest.approx(metrics.roc_auc_score(truth, scores))


def test_chance_scores_half(rng: np.random.Generator) -> None:
    truth = np.arange(10) < 3
    found = [evaluate.against_truth(rng.random(10), truth) for _ in range(2_000)]
    assert np.mean([one["separation"] for one in found]) == pytest.approx(0.5, abs=0.02)
    assert np.mean([one["hit"] for one in found]) == pytest.approx(0.3, abs=0.04)


def test_a_truth_that_does_not_fit() -> None:
    with pytest.raises(InvalidArgument, match="one boolean for each"):
        evaluate.against_truth(np.ones(3), np.array([0, 1, 1]))
