from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidArgument
from tests import naive
from tests.strategies import attention


@pytest.fixture
def weights(rng: np.random.Generator) -> np.ndarray:
    return attention(rng, (6, 4, 9, 9), "sharp", causal=False)


def test_equals_the_papers_reference_formula(weights: np.ndarray) -> None:
    scores = af.rollout(af.mix(af.AttentionStack(weights))).scores
    np.testing.assert_allclose(scores, naive.paper_rollout(weights), atol=1e-14)


def test_equals_vit_explain_with_mean_heads_and_nothing_discarded(weights: np.ndarray) -> None:
    stack = af.AttentionStack(weights)
    row = af.attribute(stack, "rollout", discard=0, queries=[0], levels=[-1]).of(0)
    np.testing.assert_allclose(row, naive.vit_explain_rollout(weights)[0], atol=1e-14)


def test_one_token_one_level() -> None:
    assert af.rollout(af.AttentionGraph([[[1.0]]])).scores.tolist() == [[[1.0]]]


def test_levels_come_in_the_order_asked_for(graph: af.AttentionGraph) -> None:
    found = af.rollout(graph, queries=["the", 0], levels=[2, 0, 2])
    full = af.rollout(graph).scores
    assert (found.levels, found.queries) == ((2, 0, 2), (1, 0))
    np.testing.assert_allclose(found.scores, full[[2, 0, 2]][:, [1, 0]], atol=1e-15)
    assert found.level_names == ("layer 2", "layer 0", "layer 2")


def test_rows_that_are_no_proportions_are_multiplied_as_they_are(rng: np.random.Generator) -> None:
    levels = rng.random((3, 4, 4))
    scores = af.rollout(af.AttentionGraph(levels)).scores
    np.testing.assert_allclose(scores[-1], levels[2] @ levels[1] @ levels[0])


def test_chefers_product_is_rollout_over_chefer_edges_that_keep_their_sums(stack: af.AttentionStack) -> None:
    assert stack.gradients is not None
    relevance = np.eye(5)
    for weights, gradients in zip(stack.weights, stack.gradients, strict=True):
        relevance = relevance + np.maximum(weights * gradients, 0).mean(0) @ relevance
    ours = af.attribute(stack, "rollout", edges="chefer", renormalise=False).scores[-1]
    np.testing.assert_allclose(ours * 2**stack.layers, relevance, atol=1e-13)  # each level is 0.5 (Ā + I)


def test_raw_is_the_level_itself(stack: af.AttentionStack) -> None:
    scores = af.attribute(stack, "raw", residual=None, queries=[3], levels=[1]).scores
    np.testing.assert_allclose(scores[0, 0], stack.weights[1].mean(0)[3], atol=1e-15)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"queries": [5]}, "there is no query 5: there are 5, from 0 to 4"),
        ({"queries": [-6]}, "there is no query -6"),
        ({"levels": [3]}, "there is no level 3: there are 3"),
        ({"levels": [-4]}, "there is no level -4"),
        ({"queries": []}, "no query was asked for"),
        ({"levels": []}, "no level was asked for"),
        ({"queries": [1.5]}, "a query is a whole number, got 1.5"),
        ({"queries": "teh"}, "no token is 'teh'. Did you mean 'the'?"),
    ],
)
def test_what_is_out_of_range_is_named(graph: af.AttentionGraph, choice: dict[str, Any], message: str) -> None:
    for method in (af.raw, af.rollout):
        with pytest.raises(InvalidArgument) as error:
            method(graph, **choice)
        assert message in str(error.value)


def test_a_few_rows_never_form_the_full_product(graph: af.AttentionGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the full product was formed")

    monkeypatch.setattr("attnflow.methods._rollout._from_the_bottom", refuse)
    assert af.rollout(graph, queries=[0, 1], levels=[-1]).scores.shape == (1, 2, 5)
    assert af.rollout(graph, queries=[0]).scores.shape == (3, 1, 5)
    with pytest.raises(AssertionError, match="full product"):
        af.rollout(graph)


def test_raw_reads_what_is_stored_in_few_bits(rng: np.random.Generator) -> None:
    exact = rng.dirichlet(np.ones(4), size=(1, 4))
    scores = af.raw(af.AttentionGraph(exact.astype(np.float16))).scores
    np.testing.assert_allclose(scores.sum(-1), 1, rtol=1e-14)
