"""What a head's removal does to the map, and how a decoder's map compares with uniform attention's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import attnflow as af
from tests.strategies import attention, seeds, stacks


@pytest.mark.parametrize("method", ["rollout", "flow", "raw"])
@pytest.mark.parametrize("heads", ["mean", "max", [0.2, 0.8], [[1, 1], [1, 3], [2, 1]]])
def test_head_importance_is_the_change_of_the_map(stack: af.AttentionStack, method: str, heads: Any) -> None:
    """Against a stack that truly lacks the head: its other head stands in both places, alone."""
    found = af.head_importance(stack, method, heads=heads)
    whole = af.attribute(stack, method, heads=heads, levels=[-1]).scores[0]
    assert found.shape == (stack.layers, stack.heads)
    for layer, head in np.ndindex(found.shape):
        weights = stack.weights.copy()
        weights[layer, head] = weights[layer, 1 - head]
        changed = af.attribute(af.AttentionStack(weights, stack.tokens), method, heads=heads, levels=[-1]).scores[0]
        moved = (
            np.abs(whole / whole.sum(-1, keepdims=True) - changed / changed.sum(-1, keepdims=True)).sum(-1).mean() / 2
        )
        assert found[layer, head] == pytest.approx(moved, abs=1e-12)


@given(stacks())
def test_equal_heads_matter_nothing_and_all_shares_lie_between_0_and_1(stack: af.AttentionStack) -> None:
    found = af.head_importance(stack)
    assert ((found >= 0) & (found <= 1)).all()
    twice = af.AttentionStack(np.repeat(stack.weights[:, :1], 2, axis=1))
    np.testing.assert_allclose(af.head_importance(twice), 0, atol=1e-12)


def test_a_layers_only_head_leaves_the_residual() -> None:
    weights = np.array([[[[0.0, 1.0], [1.0, 0.0]]]])
    found = af.head_importance(af.AttentionStack(weights), queries=[0])
    assert found == pytest.approx(0.5)  # half of the row was the other token's


def test_importance_of_heads_needs_more_than_one(stack: af.AttentionStack) -> None:
    with pytest.raises(af.errors.InvalidArgument, match="one head alone"):
        af.head_importance(stack, heads=1)
    with pytest.raises(af.errors.InvalidArgument, match="unknown option 'querys'"):
        af.head_importance(stack, querys=[0])


@given(seeds())
def test_uniform_attention_compared_with_itself_is_zero(seed: int) -> None:
    n, rng = 6, np.random.default_rng(seed)
    uniform = np.tri(n) / np.arange(1, n + 1)[:, None]
    stack = af.AttentionStack(np.tile(uniform, (5, 2, 1, 1)))
    for residual in (0.5, None, [0.1, 0.9, 0.5, 0.3, 0.0], rng.random((5, n))):
        np.testing.assert_allclose(af.against_uniform(af.mix(stack, residual=residual)).scores, 0, atol=1e-12)


def test_against_uniform_is_the_logarithm_of_the_ratio_below_the_diagonal(rng: np.random.Generator) -> None:
    n = 5
    stack = af.AttentionStack(attention(rng, (3, 2, n, n), "soft", causal=True))
    graph = af.mix(stack, residual=0.3)
    uniform = af.mix(af.AttentionStack(np.tile(np.tri(n) / np.arange(1, n + 1)[:, None], (3, 1, 1, 1))), residual=0.3)
    ratio = af.rollout(graph).scores / np.where(np.tri(n), af.rollout(uniform).scores, 1)
    expected = np.where(np.tri(n), np.log(np.where(ratio > 0, ratio, 1)), 0)
    np.testing.assert_allclose(af.against_uniform(graph).scores, expected, atol=1e-12)
    np.testing.assert_allclose(
        af.against_uniform(graph, queries=[-1], levels=[1]).scores, expected[1:2, -1:], atol=1e-12
    )
    bare = af.AttentionGraph(graph.levels)
    np.testing.assert_allclose(af.against_uniform(bare, residual=0.3).scores, expected, atol=1e-12)
    with pytest.raises(af.errors.InvalidArgument, match="not on record"):
        af.against_uniform(bare)
    with pytest.raises(af.errors.InvalidArgument, match="residual must be a number, 3 of them"):
        af.against_uniform(bare, residual=[0.3, 0.2])


def test_against_uniform_needs_a_causal_graph(graph: af.AttentionGraph) -> None:
    with pytest.raises(af.errors.InvalidAttention, match="a causal graph whose rows sum to 1"):
        af.against_uniform(graph)
