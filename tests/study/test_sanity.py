from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attnflow import capture, evaluate, study
from attnflow.errors import InvalidArgument
from attnflow.study._head_weights import _Example, _objective
from attnflow.study._subject import Features
from tests.study.conftest import TEXTS


def test_what_cannot_depend_on_the_class_fails_that_check(folder: Path) -> None:
    checks = study.sanity(str(folder), TEXTS, ["rollout", study.Way(edges="gradient")], baselines=["gradient x input"])
    found = {(one.check, one.way): one for one in checks}
    assert len(found) == 9
    assert found["other class", "rollout"].mean == pytest.approx(1)
    assert found["other class", "rollout"].passed is False  # attention alone knows no class
    assert found["other class", "gradient x input"].mean < 0.9
    assert found["randomised weights", "gradient x input"].mean < 0.9


def test_the_other_model_and_the_other_input_are_what_they_are_called(folder: Path) -> None:
    [check] = [one for one in study.sanity(str(folder), TEXTS, ["rollout"]) if one.check == "randomised weights"]
    model = capture.load(str(folder))
    tokenizer = capture.tokenizer_for(model, None, str(folder))
    way = study.Way()
    twin = capture.randomised(model, 0)
    expected = []
    for text in TEXTS:
        one, other = (capture.graph(each, text, tokenizer) for each in (model, twin))
        kept = ~one.tokens.special
        rows = [way.scores(graph, len(graph.tokens))[kept] for graph in (one, other)]
        expected.append(evaluate.correlation(*rows))
    assert check.mean == pytest.approx(np.nanmean(expected))


def test_a_map_of_places_fails_the_permutation(folder: Path) -> None:
    """The random baseline draws the same numbers for the same lengths: it depends on nothing but places."""
    found = {one.check: one for one in study.sanity(str(folder), TEXTS, [], baselines=["random"])}
    assert found["permuted words"].mean == pytest.approx(1)
    assert found["permuted words"].passed is False
    with pytest.raises(InvalidArgument, match="single texts"):
        study.sanity(str(folder), [("the key", "to the")], ["rollout"])


def example(rng: np.random.Generator, n: int = 5) -> _Example:
    weights = rng.dirichlet(np.ones(n), size=(3, 2, n))
    groups = tuple((i,) for i in range(1, n))
    return _Example(weights, 0, Features(groups, n, tuple("abcd")), rng.random(n - 1))


def test_the_slope_of_the_objective_is_its_difference_quotient(rng: np.random.Generator) -> None:
    examples = [example(rng) for _ in range(3)]
    shares = rng.dirichlet(np.ones(2), size=3)
    value, slope = _objective(examples, shares, 0.5)
    for place in np.ndindex(shares.shape):
        step = np.zeros(shares.shape)
        step[place] = 1e-6
        up, down = (_objective(examples, shares + sign * step, 0.5)[0] for sign in (1, -1))
        assert slope[place] == pytest.approx((up - down) / 2e-6, abs=1e-6)
    assert -1 <= value <= 1


def test_learnt_weights_are_shares_and_agree_better_on_what_they_were_learnt_from(folder: Path) -> None:
    weights = study.learn_heads(str(folder), TEXTS)
    assert weights.shape == (4, 4)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    learnt = study.Way(heads=weights, label="learnt heads")
    found = study.faithfulness(
        str(folder), TEXTS, ["rollout", learnt], baselines=(), references=["occlusion"], replace="unk"
    )
    table = found.values["correlation with occlusion", "unk"]
    assert np.nanmean(table[:, 1]) > np.nanmean(table[:, 0])
    with pytest.raises(InvalidArgument, match="unknown reference 'shape'"):
        study.learn_heads(str(folder), TEXTS, reference="shape")
