"""Capacities: a graph's levels as flow reads them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnflow.errors import InvalidAttention
from attnflow.graph import AttentionGraph, checked_graph

Matrix = NDArray[np.float64]

# Relative to the largest capacity. What is smaller than SMALL counts as nothing: rounding leaves such crumbs on full
# edges. A flow within SLACK of a proven bound has reached it: sums of 2,048 numbers differ by 1e-13 with their order.
SMALL = 1e-15
SLACK = 1e-12


@dataclass(frozen=True, eq=False)
class Capacities:
    """Levels 0 to the one asked about, in float64; passive rows have an edge to themselves that never limits.

    `leaving` [query] is all that can leave a query at the top and `entering` [input] all that can enter an input, both
    past passive rows: what a passive row passes on is limited where it comes from. `untouched` are the positions that
    are passive all the way: they take all from themselves.
    """

    levels: Matrix
    passive: NDArray[np.bool_]
    largest: float
    leaving: Matrix
    entering: Matrix
    untouched: NDArray[np.bool_]

    @classmethod
    def of(cls, graph: AttentionGraph, level: int) -> Capacities:
        """The capacities up to a level."""
        levels = np.stack([graph.read(number) for number in range(level + 1)])
        passive = graph.passive[: level + 1]
        largest = float(levels.max(initial=0.0)) or 1.0
        # No flow is larger than the row of its query, or of the first row below it that is not passive. So twice the
        # largest row is as good as infinity, and keeps the precision that a huge number would cost.
        with np.errstate(over="ignore"):
            unlimited = 2 * max(float(levels.sum(axis=-1).max()), largest)
        if not np.isfinite(unlimited):
            raise InvalidAttention(
                f"the capacities of this graph, up to {largest:.3g}, add up to more than a number holds. Divide its levels by their largest entry."
            )
        if passive.any():
            number, position = np.nonzero(passive)
            levels[number, position, position] = unlimited
        leaving = np.full(levels.shape[-1], unlimited)
        for matrix, passing in zip(levels, passive, strict=True):  # upwards: the topmost row that limits
            leaving = np.where(passing, leaving, matrix.sum(axis=-1))
        entering = np.full(levels.shape[-1], unlimited)
        for matrix, passing in zip(levels[::-1], passive[::-1], strict=True):  # downwards: the lowest
            others = matrix.sum(axis=0) - np.diagonal(matrix)
            entering = np.where(passing, others + entering, matrix.sum(axis=0))
        untouched: NDArray[np.bool_] = np.asarray(passive.all(axis=0))
        scale = unlimited if passive.any() else largest
        return cls(levels, passive, scale, leaving, entering, untouched)

    @property
    def n(self) -> int:
        """How many positions there are."""
        return int(self.levels.shape[-1])

    @property
    def small(self) -> float:
        """What counts as nothing."""
        return SMALL * self.largest

    @property
    def slack(self) -> float:
        """How near a bound counts as the bound."""
        return SLACK * self.largest

    @property
    def dense(self) -> Matrix:
        """The levels between the top and the bottom one, flat, as the kernels want them."""
        return self.levels[1:-1].ravel()

    @property
    def foot(self) -> Matrix:
        """Level 0 by input."""
        return np.ascontiguousarray(self.levels[0].T)


def capacitated(graph: AttentionGraph) -> AttentionGraph:
    """The graph, if it is one whose entries can be capacities."""
    if checked_graph(graph).signed:
        raise InvalidAttention(
            "this graph is signed, and a negative number is no capacity: flow, its bounds and bottlenecks need levels that are "
            "not negative. Use raw or rollout, or make a graph of the positive part."
        )
    return graph
