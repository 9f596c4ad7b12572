"""Curves and what is read off them: by hand, against a loop, against Quantus, and by ferret's definition."""

from __future__ import annotations

import math
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnflow import evaluate
from attnflow.errors import InvalidArgument

WEIGHTS = np.array([0.4, 0.1, 0.3, 0.0])


def additive(kept: np.ndarray) -> np.ndarray:
    """0.1 for nothing, and each feature's weight for itself."""
    return np.asarray(0.1 + kept @ WEIGHTS)


def test_curves_by_hand() -> None:
    [found] = evaluate.curves([np.array([9.0, 1.0, 5.0, 0.5])], additive, steps=None)
    assert found.shares.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert found.deletion.tolist() == pytest.approx([0.9, 0.5, 0.2, 0.1, 0.1])
    assert found.insertion.tolist() == pytest.approx([0.1, 0.5, 0.8, 0.9, 0.9])
    read = {name: evaluate.measured(found, name, share=0.5) for name in evaluate.MEASURES}
    assert read == pytest.approx(
        {
            "comprehensiveness": 0.9 - 0.2,
            "sufficiency": 0.9 - 0.8,
            "AOPC comprehensiveness": 0.9 - (0.5 + 0.2 + 0.1 + 0.1) / 4,
            "AOPC sufficiency": 0.9 - (0.5 + 0.8 + 0.9 + 0.9) / 4,
            "deletion area": ((0.9 + 0.5) + (0.5 + 0.2) + (0.2 + 0.1) + (0.1 + 0.1)) / 8,
            "insertion area": ((0.1 + 0.5) + (0.5 + 0.8) + (0.8 + 0.9) + (0.9 + 0.9)) / 8,
            "log-odds": math.log(0.2) - math.log(0.9),
        }
    )


def test_cuts_take_at_least_their_share() -> None:
    """⌈q · n⌉ features, as ERASER has it: of 4, a fifth is one, and a half is two."""
    asked: list[np.ndarray] = []

    def predict(kept: np.ndarray) -> np.ndarray:
        asked.append(kept)
        return additive(kept)

    [found] = evaluate.curves([np.array([4.0, 3, 2, 1])], predict, steps=10)
    counts = [math.ceil(round(q * 4, 9)) for q in found.shares]
    assert counts == [0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4]
    assert found.deletion.tolist() == pytest.approx([additive(np.arange(4) >= k).item() for k in counts])
    assert len(asked) == 1
    assert len(np.unique(asked[0], axis=0)) == len(asked[0])  # no variant twice


def test_a_variant_that_several_maps_ask_for_is_asked_for_once() -> None:
    sizes = []

    def predict(kept: np.ndarray) -> np.ndarray:
        sizes.append(len(kept))
        return additive(kept)

    row = np.array([4.0, 3, 2, 1])
    one, other = evaluate.curves([row, 2 * row], predict, steps=None)
    assert sizes == [8]  # whole and empty are shared by deletion and insertion
    np.testing.assert_array_equal(one.deletion, other.deletion)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9), st.integers(1, 12), st.integers(0, 5))
def test_curves_are_a_loop(scores: list[int], steps: int, seed: int) -> None:
    """The slow obvious twin, ties included."""
    weights = np.linspace(-1, 1, len(scores)) ** 3

    def predict(kept: np.ndarray) -> np.ndarray:
        return np.tanh(kept @ weights)

    row = np.array(scores, dtype=float)
    [found] = evaluate.curves([row], predict, steps=steps, seed=seed)
    order = evaluate.ranking(row, seed).tolist()
    assert sorted(order) == list(range(len(scores)))
    assert all(row[a] >= row[b] for a, b in pairwise(order))
    for place, share in enumerate(np.linspace(0, 1, steps + 1)):
        first = order[: math.ceil(round(share * len(scores), 9))]
        kept = np.array([i not in first for i in range(len(scores))])
        assert found.deletion[place] == pytest.approx(predict(kept[None])[0])
        assert found.insertion[place] == pytest.approx(predict(~kept[None])[0])


def test_ties_are_broken_by_chance_and_not_by_place() -> None:
    first = [int(evaluate.ranking(np.ones(4), seed)[0]) for seed in range(400)]
    counts = np.bincount(first, minlength=4)
    assert counts.min() > 60  # 100 expected of each
    assert evaluate.ranking(np.array([1.0, 3.0, 2.0])).tolist() == [1, 2, 0]


@pytest.mark.parametrize("seed", range(5))
def test_no_order_beats_the_true_one_where_effects_add_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    best, other = evaluate.curves([WEIGHTS, rng.random(4)], additive, steps=None)
    for name, measure in evaluate.MEASURES.items():
        sign = 1 if measure.higher_is_better else -1
        assert sign * evaluate.measured(best, name) >= sign * evaluate.measured(other, name) - 1e-12


class Classifier:
    """softmax(W x): small, and the same for torch and numpy."""

    def __init__(self, features: int) -> None:
        self.weights = np.random.default_rng(3).normal(size=(3, features))

    def probability(self, x: np.ndarray, target: int) -> np.ndarray:
        logits = x @ self.weights.T
        exp = np.exp(logits - logits.max(-1, keepdims=True))
        return np.asarray((exp / exp.sum(-1, keepdims=True))[..., target])

    def torch(self) -> Any:
        torch = pytest.importorskip("torch")
        linear = torch.nn.Linear(self.weights.shape[1], 3, bias=False)
        linear.weight.data = torch.tensor(self.weights, dtype=torch.float32)
        return torch.nn.Sequential(torch.nn.Flatten(), linear).eval()


def test_the_deletion_curve_is_quantus_pixel_flipping() -> None:
    """Quantus flips features of an image to black, the highest first, and records the softmax of the target."""
    quantus = pytest.importorskip("quantus", reason="quantus is not installed")
    rng = np.random.default_rng(1)
    model, x, scores = Classifier(16), rng.random((5, 16)), rng.random((5, 16))
    targets = rng.integers(0, 3, size=5)
    options = {"features_in_step": 1, "normalise": False, "disable_warnings": True, "perturb_baseline": "black"}
    shape = (5, 1, 4, 4)
    asked = {"model": model.torch(), "x_batch": x.reshape(shape).astype(np.float32), "y_batch": targets,
             "a_batch": scores.reshape(shape), "device": "cpu", "channel_first": True}  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = quantus.PixelFlipping(**options)(**asked)
    for number in range(5):
        black = x[number].min()  # what Quantus calls black: the lowest value

        def predict(kept: np.ndarray, number: int = number, black: float = float(black)) -> np.ndarray:
            return model.probability(np.where(kept, x[number], black), int(targets[number]))

        [found] = evaluate.curves([scores[number]], predict, steps=None)
        np.testing.assert_allclose(found.deletion[1:], np.ravel(theirs[number]), atol=1e-5)


def ferret_aopc(scores: np.ndarray, predict: Any, *, keep: bool) -> float:
    """ferret's `AOPC_Comprehensiveness_Evaluation` and `AOPC_Sufficiency_Evaluation`, with its default thresholds 1 … n.

    For each k the k highest tokens are deleted (or are all that is kept), and the falls of the probability are averaged.
    """
    n = len(scores)
    whole = predict(np.ones((1, n), dtype=bool))[0]
    falls = []
    for k in range(1, n + 1):
        top = np.argsort(-scores)[:k]
        kept = np.full(n, not keep)
        kept[top] = keep
        falls.append(whole - predict(kept[None])[0])
    return float(np.mean(falls))


def test_aopc_is_ferrets() -> None:
    rng = np.random.default_rng(2)
    model = Classifier(7)
    for _ in range(5):
        x, scores = rng.normal(size=7), rng.random(7)

        def predict(kept: np.ndarray, x: np.ndarray = x) -> np.ndarray:
            return model.probability(kept * x, 1)

        [found] = evaluate.curves([scores], predict, steps=None)
        assert evaluate.measured(found, "AOPC comprehensiveness") == pytest.approx(
            ferret_aopc(scores, predict, keep=False)
        )
        assert evaluate.measured(found, "AOPC sufficiency") == pytest.approx(ferret_aopc(scores, predict, keep=True))


def test_log_odds_need_probabilities() -> None:
    [found] = evaluate.curves([np.array([1.0, 0.5])], lambda kept: kept @ np.array([2.0, -1.0]), steps=None)
    assert math.isnan(evaluate.measured(found, "log-odds", share=0.5))


def test_bad_input_is_named() -> None:
    row = np.array([1.0, 2.0])
    with pytest.raises(InvalidArgument, match=r"maps of \[2, 3\] features"):
        evaluate.curves([row, np.ones(3)], additive)
    with pytest.raises(InvalidArgument, match="NaN or infinity"):
        evaluate.curves([np.array([1.0, np.nan])], additive)
    with pytest.raises(InvalidArgument, match="at least one step"):
        evaluate.curves([row], additive, steps=0)
    with pytest.raises(InvalidArgument, match="one value for each of"):
        evaluate.curves([row], lambda kept: kept)  # type: ignore[arg-type, return-value]
    [found] = evaluate.curves([WEIGHTS], additive)
    with pytest.raises(InvalidArgument, match="unknown measure 'sufficency'. Did you mean 'sufficiency'"):
        evaluate.measured(found, "sufficency")
    with pytest.raises(InvalidArgument, match="share is a share"):
        evaluate.measured(found, "sufficiency", share=0)
