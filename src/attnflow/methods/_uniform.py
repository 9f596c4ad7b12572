"""against_uniform: a rollout compared with the one of uniform causal attention, which needs no model to look as it does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnflow.attribution import Attribution
from attnflow.errors import InvalidArgument, InvalidAttention
from attnflow.graph import AttentionGraph, checked_graph

_NOTHING = 1e-300  # whose logarithm stands for none at all


def against_uniform(
    graph: AttentionGraph,
    queries: int | str | Iterable[int | str] | None = None,
    levels: int | Iterable[int] | None = None,
    *,
    residual: Any = None,
) -> Attribution:
    """log(R[i, j] / U[i, j]): how much more (or less, below 0) a query takes from an input than if its model attended uniformly.

    R is the rollout of the graph, U that of its twin in which query i gives each of its i + 1 keys 1 / (i + 1), with the same
    residual: read from the graph's options, or `residual` as `mix` takes it. The comparison comes after composing. Logarithms,
    since U itself is 1e-9 away from the first token after 30 levels, and the plain ratio explodes. Later inputs, which a
    query does not see, get 0. A causal graph of proportions only.
    """
    graph = checked_graph(graph)
    upper = np.triu(np.ones((len(graph.tokens),) * 2, dtype=np.bool_), 1)
    if graph.signed or not all(graph.proportions) or any((matrix[upper] != 0).any() for matrix in graph.levels):
        raise InvalidAttention(
            "against_uniform compares with uniform causal attention, so it needs a causal graph whose rows sum to 1: no entry above the "
            "diagonal, no sign. Capture a decoder, with renormalise=True."
        )
    twin = _uniform_twin(graph, residual)
    asked, rows = graph.level_numbers(levels), graph.tokens.positions(queries)
    scores = np.zeros((len(asked), len(rows), len(graph.tokens)))
    for place, level in enumerate(asked):
        taken, expected = (np.maximum(_rolled(one, rows, level), _NOTHING) for one in (graph, twin))
        scores[place] = np.where(upper[list(rows)], 0, np.log(taken) - np.log(expected))
    names = tuple(graph.names[level] for level in asked)
    columns = tuple(range(len(graph.tokens)))
    return Attribution(scores, graph.tokens, "rollout against uniform", asked, rows, columns, names, graph.options)


def _rolled(graph: AttentionGraph, rows: tuple[int, ...], level: int) -> NDArray[np.float64]:
    """The rows of a rollout, vectors times matrices from the top."""
    moving = graph.read(level, list(rows))
    for below in range(level - 1, -1, -1):
        moving = graph.carry(moving, below)
    return moving


def _uniform_twin(graph: AttentionGraph, residual: Any) -> AttentionGraph:
    given = residual if residual is not None else graph.options.get("residual_shares", graph.options.get("residual"))
    if given is None and "residual" in graph.options:
        given = 0.0  # mixed without one
    if given is None or isinstance(given, str):
        raise InvalidArgument(
            "the share of the residual in this graph is not on record, and uniform attention must have the same. Give residual=, a "
            "number, one per level, or one per level and query."
        )
    n = len(graph.tokens)
    alpha = np.asarray(given, dtype=np.float64)
    alpha = alpha[:, None] if alpha.ndim == 1 else alpha
    if alpha.shape not in ((), (len(graph), 1), (len(graph), n)):
        raise InvalidArgument(
            f"residual must be a number, {len(graph)} of them, or shape ({len(graph)}, {n}); got shape {alpha.shape}."
        )
    alpha = np.broadcast_to(alpha, (len(graph), n))
    uniform = np.tri(n) / np.arange(1, n + 1)[:, None]
    return AttentionGraph([(1 - share)[:, None] * uniform + np.diag(share) for share in alpha])
