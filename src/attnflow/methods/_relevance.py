"""Relevance (Chefer, Gur & Wolf, ICCV 2021): what attention adds, accumulated level by level."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from attnflow.attribution import Attribution
from attnflow.errors import InvalidArgument, InvalidAttention, suggest
from attnflow.graph import AttentionGraph, checked_graph
from attnflow.tokens import whole_number

Matrix = NDArray[np.float64]
Stream = NDArray[np.bool_]  # which positions are of one sequence

ZERO_ROWS = ("released", "identity")


def relevance(
    graph: AttentionGraph,
    queries: int | str | Iterable[int | str] | None = None,
    levels: int | Iterable[int] | None = None,
    *,
    first: int | None = None,
    zero_rows: str = "released",
) -> Attribution:
    """The accumulated relevance R, which starts as the identity; s are the queries' positions, q those of the other sequence.

    Self-attention (eq. 6, 7): R_ss += Ā R_ss and R_sq += Ā R_sq. Attention from s to q (eq. 10, 11), all from the old
    values: R_sq += R̄_ssᵀ Ā R̄_qq and R_ss += Ā R_qs, with R̄ = I + (R − I) divided by its row sums (eq. 8, 9). Where both
    sequences attend to each other, one level holds both directions, and all four are added at once. In an encoder-decoder model nothing
    flows back into the encoder, R_qs is 0, and what is left is the paper's rule for it.

    A row of R that is still the identity's makes R̄ 0 / 0. `zero_rows="released"`: as the released code has it, every entry of
    what is added that such a row reaches is then 0 (for one row, that is all of it). "identity": the row of R̄ stays the identity's.

    Ā is `edges="chefer"` in the paper. The identity is added here, so the graph must hold no residual, and rows are not to be made
    proportions: `residual=None, renormalise=False`, which `attribute` and `explain` choose for this method. Which rows are of
    which sequence is read from the graph's kinds and passive rows; `first` says how many positions the first has where these do not.
    """
    graph = _checked(graph)
    if zero_rows not in ZERO_ROWS:
        raise InvalidArgument(f"unknown value for zero_rows, {zero_rows!r}." + suggest(zero_rows, ZERO_ROWS))
    asked, rows = graph.level_numbers(levels), graph.tokens.positions(queries)
    streams = _streams(graph, first)
    found: Matrix = np.eye(len(graph.tokens))
    scores = np.empty((len(asked), len(rows), len(graph.tokens)))
    for level in range(max(asked) + 1):
        cross = "cross" in graph.kinds[level].split()
        active = ~graph.passive[level]
        matrix = np.where(active[:, None], graph.read(level), 0)  # passive rows add nothing
        found = found + (_added_by_cross(found, matrix, active, streams, zero_rows) if cross else matrix @ found)
        for place, one in enumerate(asked):
            if one == level:
                scores[place] = found[list(rows)]
    names = tuple(graph.names[level] for level in asked)
    options = {**graph.options, "zero_rows": zero_rows}
    return Attribution(scores, graph.tokens, "relevance", asked, rows, tuple(range(len(graph.tokens))), names, options)


def _added_by_cross(found: Matrix, matrix: Matrix, active: Stream, streams: list[Stream], zero_rows: str) -> Matrix:
    """What a level of attention between the sequences adds, each direction from the old values."""
    added = np.zeros_like(found)
    for s in streams:
        queries = np.flatnonzero(s & active)
        if not len(queries):
            continue
        mine, other = np.flatnonzero(s), np.flatnonzero(~s)
        attention = np.zeros((len(mine), len(other)))
        attention[np.isin(mine, queries)] = matrix[np.ix_(queries, other)]
        own, theirs = (
            _normalised(found[np.ix_(mine, mine)], zero_rows),
            _normalised(found[np.ix_(other, other)], zero_rows),
        )
        with np.errstate(invalid="ignore"):  # 0 / 0 is passed on, as in the released code, and set to 0 at the end
            reached = own.T @ (attention @ theirs)
        added[np.ix_(mine, other)] = np.nan_to_num(reached, nan=0.0)
        added[np.ix_(mine, mine)] = attention @ found[np.ix_(other, mine)]
    return added


def _normalised(block: Matrix, zero_rows: str) -> Matrix:
    """R̄: the identity, plus what was added to it as shares of each row (eq. 8, 9)."""
    gained = block - np.eye(len(block))
    sums = gained.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = gained / sums
    if zero_rows == "identity":
        shares = np.where(sums == 0, 0, shares)
    normalised: Matrix = shares + np.eye(len(block))
    return normalised


def _streams(graph: AttentionGraph, first: int | None) -> list[Stream]:
    """The two sequences, or the one."""
    n = len(graph.tokens)
    crosses = [level for level, kind in enumerate(graph.kinds) if "cross" in kind.split()]
    if first is not None:
        if not 0 < (whole_number(first) or 0) < n:
            raise InvalidArgument(
                f"first is the number of positions of the first sequence, 1 to {n - 1}; got {first!r}."
            )
        lower = np.arange(n) < first
        return [lower, ~lower]
    if not crosses:
        return [np.ones(n, dtype=np.bool_)]
    active = [row for row in ~graph.passive if 0 < row.sum() < n]
    if not active:
        raise InvalidArgument(
            "these levels attend from one sequence to the other and back, and nothing says where the first ends. Give first=, its "
            "number of positions, or mark the passive rows of the other levels."
        )
    upper = active[-1]
    if any(not ((row == upper).all() or (row == ~upper).all() or not (row & upper).any()) for row in active):
        raise InvalidArgument(
            "the passive rows of the levels do not leave two sequences. Give first=, the positions of the first."
        )
    return [upper, ~upper]


def _checked(graph: AttentionGraph) -> AttentionGraph:
    """A graph that relevance can read: no signs, no residual inside."""
    graph = checked_graph(graph)
    if graph.signed:
        raise InvalidAttention(
            "this graph is signed, and relevance adds up amounts: use raw or rollout, or edges that are not negative."
        )
    residual = graph.options.get("residual")
    if isinstance(residual, str) or (residual is not None and np.any(np.asarray(residual, dtype=np.float64) != 0)):
        raise InvalidArgument(
            f"relevance adds the identity itself (R += Ā R), and this graph holds the residual {residual if np.ndim(residual) == 0 else '…'} "
            "already. Mix it with residual=None, renormalise=False."
        )
    return graph
