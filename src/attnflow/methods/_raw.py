"""Raw attention: one level at a time, as if no layer lay below it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from attnflow.attribution import Attribution
from attnflow.graph import AttentionGraph, checked_graph


def raw(
    graph: AttentionGraph,
    queries: int | str | Iterable[int | str] | None = None,
    levels: int | Iterable[int] | None = None,
) -> Attribution:
    """Each level as it is: scores[l, i, j] = A_l[i, j].

    The residual is in the graph: mix with `residual=None` for the weights as the model has them (the paper's "raw").
    """
    graph = checked_graph(graph)
    asked, rows = graph.level_numbers(levels), graph.tokens.positions(queries)
    scores = np.stack([graph.read(level)[list(rows)] for level in asked])
    names = tuple(graph.names[level] for level in asked)
    return Attribution(scores, graph.tokens, "raw", asked, rows, tuple(range(len(graph.tokens))), names, graph.options)
