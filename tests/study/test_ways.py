from __future__ import annotations

import numpy as np
import pytest

import attnflow as af
from attnflow import study
from attnflow.errors import InvalidArgument
from attnflow.study._ways import named, without_special


def graph(special: tuple[int, ...] = (0, 4)) -> af.AttentionGraph:
    rng = np.random.default_rng(3)
    tokens = af.Tokens(list("abcde"), [i in special for i in range(5)])
    levels = 0.5 * rng.dirichlet(np.ones(5), size=(3, 5)) + 0.5 * np.eye(5)
    return af.AttentionGraph(levels, tokens, options={"query": 0})


def test_every_combination_once_and_raw_without_a_residual() -> None:
    found = study.ways(edges=["attention", "gradient"], residual=[0.5, 0.3], special=["keep", "drop"])
    assert len(found) == len(set(found)) == 2 * 2 + 2 * (2 * 2 * 2)
    assert all(way.residual is None for way in found if way.method == "raw")
    assert study.ways("rollout", top_k=[2, 3])[1].mixing["top_k"] == 3


def test_a_name_says_what_differs_and_the_flags_make_it_again() -> None:
    way = study.Way("flow", edges="gradient", residual=None, level=2, special="drop")
    assert way.name == "flow, edges gradient, residual none, level 2, special drop"
    assert way.flags == "--method flow --edges gradient --residual none --level 2 --special drop"
    assert study.Way().name == "rollout"
    assert study.Way(heads=np.array([1.0, 2.0])).name == "rollout, heads 1.0,2.0"
    assert study.Way(heads=np.ones((2, 2)), label="learnt heads").name == "learnt heads"
    assert study.Way(heads=np.ones((2, 2))).mixing["heads"] == [[1, 1], [1, 1]]


def test_the_row_of_the_query_at_the_level() -> None:
    one = graph()
    np.testing.assert_allclose(study.Way("rollout").scores(one, 5), af.rollout(one).of(0))
    np.testing.assert_allclose(study.Way("raw", residual=None, level=1).scores(one, 5), af.raw(one).of(0, level=1))
    np.testing.assert_allclose(study.Way("flow", level=0).scores(one, 5), af.flow(one).of(0, level=0))
    assert len(study.Way().scores(one, 3)) == 3  # an encoder's tokens alone


def test_dropping_special_tokens_keeps_the_query_and_the_shares() -> None:
    thinned, kept = without_special(graph(), 0)
    assert kept.tolist() == [0, 1, 2, 3]
    whole = graph().levels[:, :4, :4]
    np.testing.assert_allclose(thinned.levels, whole / whole.sum(axis=2, keepdims=True))
    scores = study.Way(special="drop").scores(graph(), 5)
    assert scores[4] == 0
    np.testing.assert_allclose(scores[:4], af.rollout(thinned).of(0))


def test_a_row_that_gave_everything_to_special_tokens_keeps_its_own() -> None:
    levels = np.array([[[0.5, 0.0, 0.5], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]])
    one = af.AttentionGraph(levels, af.Tokens(list("abc"), [False, False, True]), options={"query": 0})
    thinned, _ = without_special(one, 0)
    assert thinned.levels[0].tolist() == [[1, 0], [0, 1]]


def test_rows_that_are_no_proportions_stay_as_they_are() -> None:
    one = af.AttentionGraph(2 * graph().levels, graph().tokens, options={"query": 0})
    thinned, kept = without_special(one, 0)
    np.testing.assert_allclose(thinned.levels, one.levels[:, kept][:, :, kept])


def test_bad_ways_are_named() -> None:
    with pytest.raises(InvalidArgument, match="unknown policy for special tokens 'ignore'"):
        study.Way(special="ignore")
    with pytest.raises(InvalidArgument, match="two different ways are called 'mine'"):
        named([study.Way(label="mine"), study.Way("flow", label="mine")])
    with pytest.raises(InvalidArgument, match=r"a way is a study\.Way"):
        named([3])
