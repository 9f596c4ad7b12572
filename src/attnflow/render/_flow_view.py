"""From a bottleneck to its FlowView: paths, edges, and in words what limits the flow of a pair."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from attnflow.graph import AttentionGraph
from attnflow.methods import Bottleneck, bottleneck, rollout
from attnflow.render._describe import how, labels_of
from attnflow.render._view import Edge, FlowView, Path

MOST_PAIRS = 12  # of the opening query, in a page that was given the graph


def flow_view(b: Bottleneck, caption: str = "") -> FlowView:
    """A Bottleneck as a FlowView: what flows, and the edges of the cut even where a rounding leaves nothing on them."""
    labels = labels_of(b)
    full = {(edge.level, edge.query, edge.key) for edge in b.cut}
    edges = [Edge(*edge, (edge.level, edge.query, edge.key) in full) for edge in b.edges]
    drawn = {(edge.level, edge.query, edge.key) for edge in edges}
    edges += [Edge(*edge, True) for edge in b.cut if (edge.level, edge.query, edge.key) not in drawn]
    return FlowView(
        query=b.query,
        input=b.input,
        value=b.value,
        limit=limit_in_words([edge for edge in edges if edge.cut], b.query, b.input, b.level, b.level_names, labels),
        labels=labels,
        levels=b.level_names,
        edges=tuple(edges),
        paths=tuple(Path(*path) for path in b.paths),
        caption=caption,
        special=tuple(np.flatnonzero(b.tokens.special | b.tokens.padding).tolist()),
    )


def main_flows(graph: AttentionGraph, query: int, most: int = MOST_PAIRS) -> list[FlowView]:
    """The flows of one query at the top level, from the inputs that it draws most on by rollout.

    Special tokens and the query itself come last: what they give is seldom what a reader asks about.
    """
    row = rollout(graph, queries=[query], levels=[-1]).scores[0, 0]
    last = graph.tokens.special | graph.tokens.padding | (np.arange(len(row)) == query)
    chosen = np.flatnonzero(row > 0)
    inputs = chosen[np.lexsort((-row[chosen], last[chosen]))][:most]
    return [flow_view(bottleneck(graph, query, int(key)), how(graph.options)) for key in inputs]


def limit_in_words(
    cut: Iterable[Edge], query: int, key: int, top: int, levels: tuple[str, ...], labels: tuple[str, ...]
) -> str:
    """Where the minimum cut lies: at the query, at the input, or at which levels in between."""
    edges = list(cut)
    if not edges:
        return "No path leads there."
    if all(edge.level == top and edge.query == query for edge in edges):
        return f"It is limited at the query: all that “{labels[query]}” takes at {levels[top]} comes from there."
    if all(edge.level == 0 and edge.key == key for edge in edges):
        return f"It is limited at the input: all that {levels[0]} takes from “{labels[key]}” arrives."
    by_level = {n: sum(edge.flow for edge in edges if edge.level == n) for n in sorted({edge.level for edge in edges})}
    count = f"{len(edges)} edge{'s' if len(edges) > 1 else ''}"
    first, last = levels[min(by_level)], levels[max(by_level)]
    if first == last:
        return f"It is limited on the way: {count} of {first} carr{'y' if len(edges) > 1 else 'ies'} all that fits."
    most = max(by_level, key=lambda n: by_level[n])
    share = by_level[most] / (sum(by_level.values()) or 1.0)
    return f"It is limited on the way: {count} from {first} to {last} carry all that fits, {share:.0%} of it at {levels[most]}."
