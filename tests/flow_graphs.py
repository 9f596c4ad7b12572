"""Random graphs for flow, of every family that matters, and igraph as the judge."""

from __future__ import annotations

from typing import Any

import igraph
import numpy as np

import attnflow as af
from tests.strategies import attention

FAMILIES = (
    "soft",
    "sharp",
    "causal",
    "hard",
    "no residual",
    "sparse",
    "equal weights",
    "tiny and huge capacities",
    "tiny throughout",
    "passive rows",
    "passive rows, not proportions",
)


def random_graph(
    rng: np.random.Generator, family: str, max_tokens: int = 70, max_levels: int = 12, min_tokens: int = 2
) -> af.AttentionGraph:
    """A graph of a family, of a random size; small ones are as likely as large ones."""
    n = int(np.exp(rng.uniform(np.log(min_tokens), np.log(max_tokens + 1))))
    shape = (int(rng.integers(1, max_levels + 1)), n, n)
    kind = {"sharp": "sharp", "hard": "hard", "sparse": "sparse", "equal weights": "uniform"}.get(family, "soft")
    levels = attention(rng, shape, kind, causal=family == "causal" or bool(rng.random() < 0.2))
    if family == "no residual":
        return af.AttentionGraph(attention(rng, shape, str(rng.choice(["soft", "sharp", "hard"])), causal=False))
    levels = 0.5 * levels + 0.5 * np.eye(n)
    if family == "tiny and huge capacities":
        levels = levels * np.exp(rng.uniform(-20, 20, size=shape)) * (rng.random(shape) < 0.7)
    if family == "tiny throughout":
        levels = levels * 1e-9
    if not family.startswith("passive"):
        return af.AttentionGraph(levels)
    if family.endswith("not proportions"):
        levels = levels * rng.uniform(0, 4, size=shape)
    passive = rng.random(shape[:2]) < 0.4
    if rng.random() < 0.3:
        passive[:, 0] = True  # one position that nobody touches
    return af.AttentionGraph(np.where(passive[..., None], np.eye(n), levels), passive=passive)


UNLIMITED = 1e6  # times the largest capacity: far above any flow, near enough not to cost igraph its precision


class Judge:
    """igraph's maximum flow over the same graph."""

    def __init__(self, graph: af.AttentionGraph, level: int) -> None:
        n = len(graph.tokens)
        self.n, self.level, self.scale = n, level, float(graph.levels.max()) or 1.0
        edges: list[tuple[int, int]] = []
        capacities: list[float] = []
        for at in range(level + 1):
            matrix = graph.read(at)
            for i, j in np.argwhere(matrix > 0).tolist():
                edges.append(((at + 1) * n + i, at * n + j))
                capacities.append(UNLIMITED * self.scale if graph.passive[at, i] else float(matrix[i, j]))
        self.graph: Any = igraph.Graph((level + 2) * n, edges, directed=True)
        self.graph.es["capacity"] = capacities

    def flow(self, query: int, key: int) -> float:
        value = float(self.graph.maxflow_value((self.level + 1) * self.n + query, key, "capacity"))
        return 1.0 if value >= 0.5 * UNLIMITED * self.scale else value  # passive all the way: all from itself
