"""flow_bounds: what a flow is at least and at most, for maps too large to search."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from attnflow.attribution import Attribution
from attnflow.graph import AttentionGraph
from attnflow.methods._capacities import Capacities, capacitated
from attnflow.methods._cuts import upper_bounds
from attnflow.methods._feasible import lower_bounds
from attnflow.methods._products import Products
from attnflow.methods._threads import thread_count


def flow_bounds(
    graph: AttentionGraph,
    queries: int | str | Iterable[int | str] | None = None,
    levels: int | Iterable[int] | None = None,
    *,
    threads: int | None = None,
    progress: bool | None = None,
) -> tuple[Attribution, Attribution]:
    """Lower and upper bounds of `flow` for every input, in O(levels) products of matrices and without any search.

    The upper bound is the value of a cut and never lies below the flow (sums are exact to rounding); the lower one is the
    value of a feasible flow. Where they meet, the flow is known.
    """
    graph = capacitated(graph)
    asked, rows = graph.level_numbers(levels), graph.tokens.positions(queries)
    products = Products(thread_count(threads), progress)
    queries_, which = np.unique(rows, return_inverse=True)
    found = {}
    for level in sorted(set(asked)):
        capacities = Capacities.of(graph, level)
        upper = upper_bounds(capacities, queries_, products)
        # Up to two levels the cut is the flow. Else a feasible flow, held under the cut against rounding.
        lower = upper if level < 2 else np.minimum(lower_bounds(capacities, queries_, products), upper)
        alone = capacities.untouched[queries_][:, None] & (queries_[:, None] == np.arange(capacities.n)[None])
        found[level] = [np.where(alone, 1.0, bound)[which] for bound in (lower, upper)]
    names = tuple(graph.names[level] for level in asked)
    lower, upper = (np.stack([found[level][side] for level in asked]) for side in (0, 1))
    columns = tuple(range(len(graph.tokens)))
    below = Attribution(lower, graph.tokens, "flow, at least", asked, rows, columns, names, graph.options)
    return below, replace(below, scores=upper, method="flow, at most")
