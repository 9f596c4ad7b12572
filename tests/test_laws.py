"""The laws of attribution over graphs, as properties of random ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import attnflow as af
from tests import naive
from tests.strategies import attention, graphs, seeds, stacks


@given(graphs())
def test_rollout_rows_sum_to_1(graph: af.AttentionGraph) -> None:
    np.testing.assert_allclose(af.rollout(graph).scores.sum(-1), 1, rtol=1e-12)


@given(graphs(max_tokens=4))
def test_rollout_is_the_sum_over_paths(graph: af.AttentionGraph) -> None:
    scores = af.rollout(graph).scores
    for level in range(len(graph)):
        np.testing.assert_allclose(scores[level], naive.rollout_by_paths(graph.levels, level), atol=1e-12)


@given(graphs(), st.integers(1, 3))
def test_rollout_composes_over_slices(graph: af.AttentionGraph, cut: int) -> None:
    if cut < len(graph):
        whole, upper, lower = (af.rollout(part).scores[-1] for part in (graph, graph[cut:], graph[:cut]))
        np.testing.assert_allclose(whole, upper @ lower, atol=1e-12)


@given(graphs(), st.data())
def test_chosen_rows_and_levels_equal_the_full_product(graph: af.AttentionGraph, data: st.DataObject) -> None:
    n = len(graph.tokens)
    queries = data.draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=4))
    levels = data.draw(st.lists(st.integers(-len(graph), len(graph) - 1), min_size=1, max_size=4))
    chosen = af.rollout(graph, queries=queries, levels=levels)
    np.testing.assert_allclose(chosen.scores, af.rollout(graph).scores[levels][:, queries], atol=1e-12)


@given(stacks(), seeds())
def test_permuting_tokens_permutes_scores(stack: af.AttentionStack, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(stack.tokens))
    permuted = af.AttentionStack(stack.weights[:, :, order][:, :, :, order])
    for method in ("raw", "rollout"):
        scores = af.attribute(stack, method).scores
        np.testing.assert_allclose(
            af.attribute(permuted, method).scores, scores[:, order][:, :, order], atol=1e-12, err_msg=method
        )


@given(stacks(), seeds(), st.integers(1, 3), st.sampled_from(["mean", "max", "min"]))
def test_sparsifying_does_not_depend_on_the_order_of_tokens(
    stack: af.AttentionStack, seed: int, top_k: int, heads: str
) -> None:
    order = np.random.default_rng(seed).permutation(len(stack.tokens))
    permuted = af.AttentionStack(stack.weights[:, :, order][:, :, :, order])
    choices: dict[str, Any] = {"top_k": min(top_k, len(order)), "threshold": 0.05, "heads": heads, "discard": 0.3}
    levels = af.mix(stack, **choices).levels
    np.testing.assert_allclose(af.mix(permuted, **choices).levels, levels[:, order][:, :, order], atol=1e-12)


@given(st.integers(1, 6), st.integers(1, 4))
def test_identity_attention_gives_identity(n: int, layers: int) -> None:
    stack = af.AttentionStack(np.tile(np.eye(n), (layers, 2, 1, 1)))
    for method in ("raw", "rollout"):
        assert (af.attribute(stack, method).scores == np.eye(n)).all(), method


@given(st.integers(1, 6), seeds())
def test_a_causal_graph_stays_lower_triangular(n: int, seed: int) -> None:
    weights = attention(np.random.default_rng(seed), (3, 2, n, n), "soft", causal=True)
    for method in ("raw", "rollout"):
        scores = af.attribute(af.AttentionStack(weights), method).scores
        assert (scores[:, ~np.tri(n, dtype=bool)] == 0).all(), method


@given(stacks(), st.data())
def test_appendix_a1_one_head_at_a_level(stack: af.AttentionStack, data: st.DataObject) -> None:
    level = data.draw(st.integers(0, stack.layers - 1))
    graph = af.mix(stack)
    below = af.rollout(graph).scores[level - 1] if level else np.eye(len(stack.tokens))
    for head, found in enumerate(af.by_head(stack, "rollout", level=level)):
        own = 0.5 * stack.weights[level, head] + 0.5 * np.eye(len(stack.tokens))
        np.testing.assert_allclose(found.scores[0], own @ below, atol=1e-12)


@given(stacks())
def test_mixed_rows_sum_to_1_for_every_rule(stack: af.AttentionStack) -> None:
    for heads in ("mean", "max", "min", 0, -1):
        for residual in (0.5, None, 0.0, 1.0):
            for discard in (None, 0.5):
                levels = af.mix(stack, heads=heads, residual=residual, discard=discard, threshold=0.1).levels
                np.testing.assert_allclose(levels.sum(-1), 1, rtol=1e-12)


@given(graphs(), st.sampled_from([np.float16, np.float32]))
def test_storage_in_fewer_bits_keeps_the_law_of_proportions(graph: af.AttentionGraph, dtype: type) -> None:
    stored = af.AttentionGraph(graph.levels.astype(dtype))
    scores = af.rollout(stored).scores
    np.testing.assert_allclose(scores.sum(-1), 1, rtol=1e-12)
    np.testing.assert_allclose(scores, af.rollout(graph).scores, atol=len(graph) * 1e-3)
