"""Proofs of a maximum flow that need no other solver: a feasible flow, and a cut of the same value."""

from __future__ import annotations

import itertools

import numpy as np

import attnflow as af


def check_bottleneck(graph: af.AttentionGraph, b: af.Bottleneck, tolerance: float = 1e-9) -> None:
    """Capacities are kept, what comes in goes out, the paths make up the flow, and the cut separates and weighs as much."""
    n, top = len(graph.tokens), b.level + 1
    scale = tolerance * max(1e-300, *(float(graph.read(at).max()) for at in range(top)))
    flows = np.zeros((top, n, n))
    for edge in b.edges:
        flows[edge.level, edge.query, edge.key] = edge.flow
        if not graph.passive[edge.level, edge.query]:
            assert edge.capacity == graph.read(edge.level)[edge.query, edge.key]
            assert 0 <= edge.flow <= graph.read(edge.level)[edge.query, edge.key] + scale
    out_of, into = flows.sum(-1), flows.sum(-2)
    for at in range(top - 1):
        np.testing.assert_allclose(into[at + 1], out_of[at], rtol=0, atol=scale * n)
    np.testing.assert_allclose(out_of[-1], b.value * (np.arange(n) == b.query), rtol=0, atol=scale * n)
    np.testing.assert_allclose(into[0], b.value * (np.arange(n) == b.input), rtol=0, atol=scale * n)
    check_paths(b, flows, scale)
    if b.value and graph.passive[:top, b.query].all():
        assert b.cut == ()  # passive all the way, so nothing limits
        return
    check_cut(graph, b, scale)


def check_paths(b: af.Bottleneck, flows: np.ndarray[tuple[int, ...], np.dtype[np.float64]], scale: float) -> None:
    rebuilt = np.zeros_like(flows)
    for path in b.paths:
        assert path.positions[0] == b.query
        assert path.positions[-1] == b.input
        for step, (query, key) in enumerate(itertools.pairwise(path.positions)):
            rebuilt[b.level - step, query, key] += path.amount
    np.testing.assert_allclose(rebuilt, flows, rtol=0, atol=scale * flows.shape[-1])
    amounts = [path.amount for path in b.paths]
    assert amounts == sorted(amounts, reverse=True)


def check_cut(graph: af.AttentionGraph, b: af.Bottleneck, scale: float) -> None:
    capacities = [edge.capacity for edge in b.cut]
    assert None not in capacities  # what has no limit is never cut
    assert abs(sum(c for c in capacities if c is not None) - b.value) <= scale * len(graph.tokens)
    cut = {(edge.level, edge.query, edge.key) for edge in b.cut}
    reached = {b.query}
    for at in range(b.level, -1, -1):
        matrix = graph.read(at)
        reached = {j for i in reached for j in np.flatnonzero(matrix[i]).tolist() if (at, i, j) not in cut}
    assert b.input not in reached
