"""Attention rollout (Abnar & Zuidema 2020, section 3): attention as proportions."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from attnflow.attribution import Attribution
from attnflow.graph import AttentionGraph, checked_graph

Scores = NDArray[np.float64]


def rollout(
    graph: AttentionGraph,
    queries: int | str | Iterable[int | str] | None = None,
    levels: int | Iterable[int] | None = None,
) -> Attribution:
    """What flows along all paths, if each position splits what it has by its weights: R_l = A_l · A_{l−1} · … · A_0.

    R_l[i, j] is the sum, over all paths from position i at level l down to input j, of the product of their edges.
    A few queries cost O(levels · n²), vectors times matrices from the top; only asking for about as many queries as
    there are tokens pays for the full product, O(levels · n³).
    """
    graph = checked_graph(graph)
    asked, rows = graph.level_numbers(levels), graph.tokens.positions(queries)
    n = len(graph.tokens)
    by_rows = len(rows) * sum(level + 1 for level in set(asked))  # rows multiplied by a matrix, from the top
    by_product = n * max(asked)  # and from the bottom
    multiply = _from_the_top if by_rows < by_product else _from_the_bottom
    scores = np.empty((len(asked), len(rows), n))
    multiply(graph, rows, asked, scores)
    scores.flags.writeable = False  # made here, so nobody else holds it: no copy needed
    names = tuple(graph.names[level] for level in asked)
    return Attribution(scores, graph.tokens, "rollout", asked, rows, tuple(range(n)), names, graph.options)


def _from_the_top(graph: AttentionGraph, rows: tuple[int, ...], asked: tuple[int, ...], scores: Scores) -> None:
    """Rows times matrix, level by level downwards; the rows of every asked level go along, so each level is read once."""
    wanted = sorted(set(asked), reverse=True)
    moving = np.zeros((0, len(graph.tokens)))
    for level in range(wanted[0], -1, -1):
        moving = graph.carry(moving, level) if len(moving) else moving
        if level in wanted:
            moving = np.vstack([moving, graph.read(level, list(rows))])
    found = dict(zip(wanted, np.split(moving, len(wanted)), strict=True))
    for place, level in enumerate(asked):
        scores[place] = found[level]


def _from_the_bottom(graph: AttentionGraph, rows: tuple[int, ...], asked: tuple[int, ...], scores: Scores) -> None:
    """The full product upwards, of which the asked rows are kept."""
    everything = rows == tuple(range(len(graph.tokens)))
    product = graph.read(0)
    for level in range(max(asked) + 1):
        places = [place for place, own in enumerate(asked) if own == level]
        # Straight to where it is kept: fresh memory for each product costs as much as a fifth of the product.
        room = scores[places[0]] if everything and places else None
        if level:
            product = np.matmul(graph.read(level), product, out=room)
        for place in places if room is None or not level else places[1:]:
            scores[place] = product if everything else product[list(rows)]
