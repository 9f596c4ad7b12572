"""bottleneck: where the flow of one pair passes, and what limits it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnflow.graph import AttentionGraph
from attnflow.kernels import ready, ready_to_split
from attnflow.methods._capacities import Capacities, Matrix, capacitated
from attnflow.tokens import Tokens, checked_index


class Edge(NamedTuple):
    """What flows from `query` down to `key` at a level, and what could: None if without limit (a passive row)."""

    level: int
    query: int
    key: int
    flow: float
    capacity: float | None


class Path(NamedTuple):
    """One way that part of a flow takes: its positions from the query down to the input."""

    amount: float
    positions: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Bottleneck:
    """A maximum flow from one query to one input, and a minimum cut that proves it.

    `edges` are those that carry something, from the top down. `cut` are the edges that every path must cross: all are
    full, and what they carry together is `value`. `paths` add up to the flow, the largest first. A maximum flow is
    seldom the only one; the cut shown is the one nearest to the query.
    """

    value: float
    query: int
    input: int
    level: int
    edges: tuple[Edge, ...]
    cut: tuple[Edge, ...]
    paths: tuple[Path, ...]
    tokens: Tokens
    level_names: tuple[str, ...]

    def __repr__(self) -> str:
        return (
            f"Bottleneck({self.value:.4g} from query {self.query} to input {self.input} at level {self.level}: "
            f"{len(self.edges)} edges, {len(self.cut)} in the cut, {len(self.paths)} paths)"
        )

    def to_json(self) -> dict[str, Any]:
        """As plain numbers, lists and strings."""
        return {
            "value": self.value,
            "query": self.query,
            "input": self.input,
            "level": self.level,
            "edges": [edge._asdict() for edge in self.edges],
            "cut": [edge._asdict() for edge in self.cut],
            "paths": [{"amount": path.amount, "positions": list(path.positions)} for path in self.paths],
            "tokens": self.tokens.to_json(),
            "level_names": list(self.level_names),
        }


def bottleneck(graph: AttentionGraph, query: int | str, input: int | str, level: int = -1) -> Bottleneck:
    """The maximum flow of one pair: its value, the flow on every edge, a minimum cut, and the paths it is made of."""
    number = checked_index(level, len(capacitated(graph)), "level")
    start, end = graph.tokens.position(query), graph.tokens.position(input)
    capacities = Capacities.of(graph, number)
    flows = _edge_flows(capacities, start, end)
    value = float(flows[-1][start].sum())
    cut = _nearest_cut(capacities, flows, start)
    if capacities.untouched[start] and start == end:  # passive all the way: it takes all from itself
        flows, cut, value = [matrix / max(value, 1e-300) for matrix in flows], [], 1.0
    limits = [
        np.where(np.diag(row), np.nan, matrix)
        for row, matrix in zip(capacities.passive, capacities.levels, strict=True)
    ]
    edges = [
        _edge(at, i, j, flows, limits)
        for at in range(number, -1, -1)
        for i, j in np.argwhere(flows[at] > capacities.small).tolist()
    ]
    crossed = [_edge(at, i, j, flows, limits) for at, i, j in cut]
    paths = _paths(edges, start, end, number, capacities)
    return Bottleneck(
        value, start, end, number, tuple(edges), tuple(crossed), paths, graph.tokens, graph.names[: number + 1]
    )


def _edge(level: int, query: int, key: int, flows: list[Matrix], limits: list[Matrix]) -> Edge:
    limit = float(limits[level][query, key])
    return Edge(level, query, key, float(flows[level][query, key]), None if np.isnan(limit) else limit)


def _edge_flows(capacities: Capacities, query: int, key: int) -> list[Matrix]:
    """The flow on every edge, level by level from the bottom."""
    levels, n = capacities.levels, capacities.n
    flows = [np.zeros((n, n)) for _ in levels]
    if len(levels) == 1:
        flows[0][query, key] = levels[0][query, key]
        return flows
    if len(levels) == 2:  # one position between, so each path has its own
        used = filled = np.minimum(levels[1][query], levels[0][:, key])
    else:
        dense, left, score, none = np.zeros(capacities.dense.size), np.empty((2, n)), np.zeros(1), np.zeros(1, np.int64)
        pair = np.array([query]), np.array([key]), np.array([np.inf])
        small = capacities.small
        ready().search_pairs(
            capacities.dense,
            len(levels) - 2,
            levels[-1],
            capacities.foot,
            *pair,
            small,
            0.0,
            score,
            0,
            1,
            none,
            none.copy(),
            dense,
            left,
        )
        used, filled = levels[-1][query] - left[0], capacities.foot[key] - left[1]
        flows[1:-1] = dense.reshape(len(levels) - 2, n, n)
    flows[-1][query], flows[0][:, key] = used, filled
    return flows


def _nearest_cut(capacities: Capacities, flows: list[Matrix], query: int) -> list[tuple[int, int, int]]:
    """The edges from what the query can still reach to what it cannot: a minimum cut, found from the flow alone."""
    top = len(flows)
    reached = np.zeros((top + 1, capacities.n), dtype=np.bool_)
    reached[top, query] = True
    spare = [matrix - flow > 10 * capacities.small for matrix, flow in zip(capacities.levels, flows, strict=True)]
    used = [flow > 10 * capacities.small for flow in flows]
    before = -1
    while before != reached.sum():
        before = int(reached.sum())
        for at in range(top - 1, -1, -1):
            reached[at] |= spare[at][reached[at + 1]].any(axis=0)
        for at in range(top):
            reached[at + 1] |= used[at][:, reached[at]].any(axis=1)
    return [
        (at, i, j)
        for at in range(top - 1, -1, -1)
        for i, j in np.argwhere((capacities.levels[at] > 0) & reached[at + 1][:, None] & ~reached[at][None]).tolist()
    ]


def _paths(edges: list[Edge], query: int, key: int, level: int, capacities: Capacities) -> tuple[Path, ...]:
    """The flow as paths: the widest first, then the widest of what is left."""
    if not edges:
        return ()
    ends = np.array([(edge.level + 1, edge.query, edge.key) for edge in edges], dtype=np.int64)
    left: NDArray[np.float64] = np.array([edge.flow for edge in edges])
    positions, amounts = np.zeros((len(edges), level + 2), np.int64), np.zeros(len(edges))  # each path empties an edge
    count = ready_to_split().widest_paths(ends, left, level, query, key, capacities.small, positions, amounts)
    return tuple(Path(float(amounts[k]), tuple(positions[k].tolist())) for k in range(count))
