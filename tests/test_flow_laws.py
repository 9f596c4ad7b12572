"""The laws of flow, as properties of random graphs. Every value in here is proved by its own flow and its own cut."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import attnflow as af
from tests.certificates import check_bottleneck
from tests.flow_graphs import FAMILIES, random_graph
from tests.strategies import attention, graphs, seeds, stacks

Scores = NDArray[np.float64]


@st.composite
def any_graphs(draw: st.DrawFn) -> af.AttentionGraph:
    """A small graph of any family: proportions or not, causal or not, hard, sparse, tiny and huge, with passive rows."""
    rng = np.random.default_rng(draw(seeds()))
    return random_graph(rng, draw(st.sampled_from(FAMILIES)), max_tokens=6, max_levels=5)


def certified(graph: af.AttentionGraph) -> Scores:
    """The flow at the last level, each pair of it certified."""
    scores: Scores = af.flow(graph, levels=-1, threads=1).scores[0]
    scale = float(graph.levels.max()) or 1.0
    for query, key in np.ndindex(scores.shape):
        proof = af.bottleneck(graph, query, key)
        check_bottleneck(graph, proof)
        assert abs(proof.value - scores[query, key]) <= 1e-9 * scale
    return scores


@given(any_graphs())
def test_every_value_is_certified_and_within_the_trivial_cuts(graph: af.AttentionGraph) -> None:
    scores = certified(graph)
    limited = ~graph.passive.any(axis=0)  # what passes a passive row is limited elsewhere
    leaving, entering = graph.read(-1).sum(1), graph.read(0).sum(0)
    slack = 1e-9 * (float(graph.levels.max()) or 1.0)
    assert (scores >= 0).all()
    assert (scores <= leaving[:, None] + slack)[limited].all()
    if not graph.passive.any():
        assert (scores <= entering + slack).all()


@given(graphs(max_tokens=5))
def test_flow_lies_between_rollout_and_the_trivial_cuts(graph: af.AttentionGraph) -> None:
    scores, rollout = certified(graph), af.rollout(graph).scores[-1]
    assert (rollout <= scores + 1e-12).all()
    assert (scores <= np.minimum(1, graph.read(0).sum(0)) + 1e-12).all()


@given(any_graphs())
def test_at_the_first_level_flow_is_rollout(graph: af.AttentionGraph) -> None:
    first = graph[:1]
    np.testing.assert_allclose(af.flow(first).scores, af.rollout(first).scores, rtol=1e-12)


@given(any_graphs(), st.data())
def test_flow_never_falls_when_the_edges_of_a_level_grow(graph: af.AttentionGraph, data: st.DataObject) -> None:
    level = data.draw(st.integers(0, len(graph) - 1))
    rng = np.random.default_rng(data.draw(seeds()))
    before = af.AttentionGraph(graph.levels)  # all rows of limited capacity, so that all may grow
    scale = float(graph.levels.max()) or 1.0
    grown = graph.levels[level] + scale * rng.random(graph.levels[level].shape) * (
        rng.random(graph.levels[level].shape) < 0.5
    )
    # The same numbers in both, or storage that is no longer proportions would be read differently.
    after = before.with_level(level, grown)
    assert (certified(after) >= certified(before) - 1e-9 * scale).all()


@given(any_graphs(), seeds())
def test_permuting_tokens_permutes_flows(graph: af.AttentionGraph, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(graph.tokens))
    moved = af.AttentionGraph(graph.levels[:, order][:, :, order], passive=graph.passive[:, order])
    scale = float(graph.levels.max()) or 1.0
    np.testing.assert_allclose(certified(moved), certified(graph)[order][:, order], rtol=0, atol=1e-9 * scale)


@given(st.integers(1, 6), st.integers(1, 5))
def test_identity_attention_gives_identity(n: int, levels: int) -> None:
    assert (certified(af.AttentionGraph(np.tile(np.eye(n), (levels, 1, 1)))) == np.eye(n)).all()


@given(st.integers(1, 6), seeds())
def test_a_causal_graph_stays_lower_triangular(n: int, seed: int) -> None:
    weights = attention(np.random.default_rng(seed), (4, 2, n, n), "sharp", causal=True)
    scores = certified(af.mix(af.AttentionStack(weights)))
    assert (scores[~np.tri(n, dtype=bool)] == 0).all()


@given(stacks(), st.data())
def test_appendix_a1_one_head_at_a_level(stack: af.AttentionStack, data: st.DataObject) -> None:
    level = data.draw(st.integers(0, stack.layers - 1))
    for head, found in enumerate(af.by_head(stack, "flow", level=level)):
        own = 0.5 * stack.weights[level, head] + 0.5 * np.eye(len(stack.tokens))
        graph = af.mix(stack)[: level + 1].with_level(level, own)
        np.testing.assert_allclose(found.scores[0], certified(graph), atol=1e-9)
