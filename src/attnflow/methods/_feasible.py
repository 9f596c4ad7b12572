"""Lower bounds of flows: feasible flows from every query and to every input, that meet in the middle.

From a query, mass spreads downwards: first out of the query's own column, as much as its edges carry, since all that stays
there would have to come out at the bottom of it; other positions keep what they have while it fits. To an input,
demand spreads upwards in the same way on the graph turned upside down. The two use different levels, so where they meet,
the smaller of supply and demand at each position is a flow from the query to the input: Σ_u min(supply[s, u], demand[t, u]).
That is one product with min in place of times for each level at which they can meet, and the best of them is kept.
On six levels of real attention it is a half of the flow where rollout, itself a feasible flow, is a hundredth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from attnflow.methods._capacities import Capacities, Matrix
from attnflow.methods._products import Products


def lower_bounds(capacities: Capacities, rows: NDArray[np.intp], products: Products) -> Matrix:
    """The value of a feasible flow for some queries of the top level and all inputs."""
    levels = capacities.levels
    every = np.arange(capacities.n)
    supplies = _spread(levels[::-1], rows)
    demands = _spread(levels.transpose(0, 2, 1), every)
    best = np.zeros((len(rows), capacities.n))
    for meeting in range(1, len(levels)):  # layers above level `meeting - 1` and below level `meeting`
        supply, demand = supplies[len(levels) - 1 - meeting], demands[meeting - 1].T
        met, _ = products(supply, np.zeros_like(supply), demand, demand)
        np.maximum(best, met, out=best)
    return best


def _spread(levels: Matrix, starts: NDArray[np.intp]) -> list[Matrix]:
    """What reaches each position after 1, 2, … levels of a feasible flow that starts with full edges."""
    here = np.arange(len(starts))
    held = [levels[0][starts]]
    for level in levels[1:]:
        before = held[-1]
        own = np.diagonal(level)
        others = level - np.diag(own)
        room = others.sum(axis=1)
        leaving = np.maximum(before - own, 0)  # what does not fit down the own column must leave it
        leaving[here, starts] = before[here, starts]  # and of the start all that can
        leaving = np.minimum(leaving, room)
        staying = np.minimum(before - leaving, own)
        share = np.divide(leaving, room, out=np.zeros_like(leaving), where=room > 0)
        held.append(staying + share @ others)
    return held
