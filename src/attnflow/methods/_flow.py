"""Attention flow (Abnar & Zuidema 2020, section 3): attention as capacities."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from attnflow.attribution import Attribution, Saturation
from attnflow.graph import AttentionGraph
from attnflow.kernels import ready
from attnflow.methods._capacities import Capacities, Matrix, capacitated
from attnflow.methods._cuts import upper_bounds
from attnflow.methods._products import Products
from attnflow.methods._threads import Counter, Progress, Work, run_here, run_together, thread_count

# Pairs times positions times levels below which the search is done where it is called: about 4 milliseconds of it, of which
# starting threads would be a tenth (16 tokens, 6 levels: 1.5 ms of search).
WORTH_THREADS = 1 << 16


def flow(
    graph: AttentionGraph,
    queries: int | str | Iterable[int | str] | None = None,
    levels: int | Iterable[int] | None = None,
    inputs: int | str | Iterable[int | str] | None = None,
    *,
    normalise: bool = False,
    threads: int | None = None,
    progress: Progress = None,
) -> Attribution:
    """How much could flow from each query down to each input, if every edge carried at most its weight.

    F_l[i, j] is the maximum flow from position i at level l to input j, alone, through edges of capacity A[query, key].
    Exact: within 1e-9 of the largest capacity. Flow values are not divided by row sums; `normalise=True` gives what the
    paper's released code returns, rows that sum to 1 over the inputs asked for (a row without any flow stays zero).

    A position that is passive at every level takes all from itself: 1. Pairs are independent and run on all cores, or on
    `threads`; the answer does not depend on how many. `progress` shows a bar after two seconds; None asks whether
    someone is looking (a terminal or a notebook). A function `progress(what, done, total)` is called about ten times a
    second instead, and stops the work by raising: the exception is passed on.
    """
    graph = capacitated(graph)
    asked, rows = graph.level_numbers(levels), graph.tokens.positions(queries)
    columns = graph.tokens.positions(inputs, "input")
    workers = thread_count(threads)
    found = {level: _flow_at(graph, level, rows, columns, workers, progress) for level in sorted(set(asked))}
    scores = np.stack([found[level][0] for level in asked])
    shares = zip(*(found[level][1] for level in asked), strict=True)
    if normalise:
        sums = scores.sum(axis=-1, keepdims=True)
        scores = np.divide(scores, sums, out=np.zeros_like(scores), where=sums > 0)
    names = tuple(graph.names[level] for level in asked)
    options = {**graph.options, "normalise": normalise}
    return Attribution(
        scores, graph.tokens, "flow", asked, rows, columns, names, options, Saturation(*map(tuple, shares))
    )


def _flow_at(
    graph: AttentionGraph,
    level: int,
    rows: tuple[int, ...],
    columns: tuple[int, ...],
    threads: int,
    progress: Progress,
) -> tuple[Matrix, tuple[float, float, float]]:
    """The flows at one level, and the shares of pairs that are saturated at the query, at the input, at either."""
    capacities = Capacities.of(graph, level)
    queries, which = np.unique(rows, return_inverse=True)
    keys, of_which = np.unique(columns, return_inverse=True)
    bounds = upper_bounds(capacities, queries, Products(threads, progress))[:, keys]
    scores = bounds
    if level > 1:  # up to two levels the bound is the flow
        scores = _searched(capacities, queries, keys, bounds, threads, f"flow at {graph.names[level]}", progress)
    at_query = scores >= capacities.leaving[queries][:, None] - capacities.slack
    at_input = scores >= capacities.entering[keys][None] - capacities.slack
    scores[capacities.untouched[queries][:, None] & (queries[:, None] == keys[None])] = 1.0
    every = np.ix_(which, of_which)
    shares = tuple(float(part[every].mean()) for part in (at_query, at_input, at_query | at_input))
    return scores[every], (shares[0], shares[1], shares[2])


def _searched(
    capacities: Capacities,
    queries: NDArray[np.intp],
    keys: NDArray[np.intp],
    bounds: Matrix,
    threads: int,
    title: str,
    progress: Progress,
) -> Matrix:
    """The maximum flow of every pair, each started afresh, so that nothing depends on the order or the threads."""
    scores = np.zeros(bounds.shape)
    query, key = np.repeat(queries, len(keys)), np.tile(keys, len(queries))
    short = len(query) * capacities.levels[..., 0].size < WORTH_THREADS
    threads = 1 if short else min(threads, len(query))
    arrays = (capacities.dense, len(capacities.levels) - 2, capacities.levels[-1], capacities.foot, query, key)
    kernel = ready().search_pairs

    def part(first: int, done: Counter, cancelled: Counter) -> None:
        limits = bounds.ravel(), capacities.small, capacities.slack
        flows, left = np.zeros(capacities.dense.size), np.empty((2, capacities.n))
        kernel(*arrays, *limits, scores.ravel(), first, threads, done, cancelled, flows, left)

    if short:
        run_here(partial(part, 0), len(query), title, progress)
    else:
        works: list[Work] = [partial(part, first) for first in range(threads)]
        run_together(works, len(query), title, progress)
    return scores
