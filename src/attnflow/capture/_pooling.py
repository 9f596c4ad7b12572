"""A model without a class token is read from the mean of its patches: one more row, of a position that nobody reads.

The mean of the patches at a level takes from the level below what the patches take on average, so its row is the mean
of their rows. With that row in the graph every method answers for the mean: rollout gives the mean of the patches'
rollouts, since it is linear, and flow what can flow to all of them together, each taking its share.
"""

from __future__ import annotations

import numpy as np

from attnflow.errors import CaptureError
from attnflow.graph import AttentionGraph
from attnflow.tokens import Tokens

MEAN = "[mean]"


def with_mean(graph: AttentionGraph) -> AttentionGraph:
    """The graph with the mean of its patches as a last token, which is the query."""
    patches = np.zeros(len(graph.tokens), dtype=np.bool_)
    for grid in graph.tokens.grids:
        patches[grid.offset : grid.stop] = True
    if not patches.any():
        raise CaptureError("the patches were dropped, so there is no mean of them to ask about. Name a query.")
    levels, count, _ = graph.levels.shape
    stored = np.zeros((levels, count + 1, count + 1), dtype=graph.levels.dtype)
    stored[:, :count, :count] = graph.levels
    idle = np.logical_and.reduce(
        graph.passive[:, patches], axis=1
    )  # levels of the text beside the image: the mean stays what it is
    stored[:, count, :count] = graph.levels[:, patches].mean(axis=1, dtype=np.float64)
    stored[idle, count] = np.eye(count + 1, dtype=stored.dtype)[count]
    stored.flags.writeable = False
    tokens = graph.tokens
    named = Tokens(
        [*tokens.labels, MEAN], [*tokens.special, True], [*tokens.padding, False], tokens.words, tokens.grids
    )
    passive = np.concatenate([graph.passive, idle[:, None]], axis=1)
    options = {**graph.options, "query": count, "query_is": "the mean of the patches"}
    if "queries" in options:  # a score of image and text, read in both
        options["queries"] = [count, *options["queries"][1:]]
        options["query_is"] += " and the last token of the text, which make the score"
    return AttentionGraph(stored, named, graph.names, graph.kinds, passive, options, signed=graph.signed)
