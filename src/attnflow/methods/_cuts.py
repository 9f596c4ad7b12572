"""Upper bounds of flows: cuts, found for all pairs at once by a few products with min in place of times.

Write U_l[s, t] for a bound of the flow from position s of level l to input t. What s sends through u is at most A_l[s, u]
and at most what u can send on, so U_l[s, t] = min(leaving s, entering t, Σ_u min(A_l[s, u], U_{l−1}[u, t])).

That sum counts what leaves s and comes together again one level below twice: a hub such as [CLS] takes much from every
position, so the flow through s and the flow through its hub share their edges. So W_l[s, t] bounds the flow from s and
its partner h *together*: W_l[s, t] = min(U_l[s, t] + U_l[h, t], entering t, W_{l−1}[s, t] + Σ_u min(A_l[s, u] + A_l[h, u],
U_{l−1}[u, t])) over the u other than both; and the sum for U may take s and h below it together. The partner of s is who
it draws most on. At six levels of real attention, the bound with partners is the flow for all pairs, without for 9 in
10; at five for 96 instead of 70 of 100, at four for 80 instead of 30.

The same from the other side, rows of the query going down and the input's partner being who draws most on it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from attnflow.methods._capacities import Capacities, Matrix
from attnflow.methods._products import Products

# From below, all positions must be followed to bound any, so it pays only for many queries. From above every query
# costs the same.
WORTH_FOLLOWING = 0.125  # of the positions


def upper_bounds(capacities: Capacities, rows: NDArray[np.intp], products: Products) -> Matrix:
    """U[query, input] for some queries of the top level and all inputs. Exact up to two levels."""
    bound = bound_from_above(capacities, rows, products)
    if len(capacities.levels) > 2 and len(rows) >= WORTH_FOLLOWING * capacities.n:
        bound = np.minimum(bound, bound_from_below(capacities, products)[rows])
    return bound


def bound_from_above(capacities: Capacities, rows: NDArray[np.intp], products: Products) -> Matrix:
    """What each query can send to each position, level by level downwards."""
    levels, n = capacities.levels, capacities.n
    limit = np.minimum(capacities.leaving[rows][:, None], capacities.entering[None])
    leaving = capacities.leaving[rows][:, None]
    partner = _partners(levels.sum(axis=0).T)
    here = np.arange(n)
    single = levels[-1][rows]
    joint = np.minimum(single + single[:, partner], leaving)
    for level in levels[-2::-1]:
        alone, both = level.copy(), level + level[:, partner]
        for matrix in (alone, both):
            matrix[here, here] = 0
            matrix[partner, here] = 0
        own, other = np.diagonal(level), np.where(partner == here, 0, level[partner, here])
        rest, rest_joint = products(single, single, alone, both)
        apart = np.minimum(single, own) + np.minimum(single[:, partner], other)
        new = np.minimum(rest + np.minimum(apart, np.minimum(joint, own + other)), leaving)
        joint = np.minimum(np.minimum(rest_joint + joint, new + new[:, partner]), leaving)
        single = new
    bound: Matrix = np.minimum(single, limit)
    return bound


def bound_from_below(capacities: Capacities, products: Products) -> Matrix:
    """What each position can send to each input, level by level upwards."""
    levels, n = capacities.levels, capacities.n
    partner = _partners(levels.sum(axis=0))
    here = np.arange(n)
    single = levels[0]
    entering = capacities.entering[None]
    joint = np.minimum(single + single[partner], entering)
    for level in levels[1:]:
        alone, both = level.copy(), level + level[partner]
        for matrix in (alone, both):
            matrix[here, here] = 0
            matrix[here, partner] = 0
        own, other = np.diagonal(level)[:, None], np.where(partner == here, 0, level[here, partner])[:, None]
        rest, rest_joint = products(alone, both, single, single)
        apart = np.minimum(single, own) + np.minimum(single[partner], other)
        new = np.minimum(rest + np.minimum(apart, np.minimum(joint, own + other)), entering)
        joint = np.minimum(np.minimum(rest_joint + joint, new + new[partner]), entering)
        single = new
    bound: Matrix = np.minimum(single, capacities.leaving[:, None])
    return bound


def _partners(weights: Matrix) -> NDArray[np.intp]:
    """For each position another one, to which it is tied most."""
    others = weights.copy()
    np.fill_diagonal(others, -1)
    strongest: NDArray[np.intp] = others.argmax(axis=1)
    return strongest
