"""Is flow right? 10,000 random graphs of every family, 20 random pairs each, against igraph: 0 may disagree.

python -m benchmarks.flow_oracle [graphs]
"""

from __future__ import annotations

import sys

import numpy as np

import attnflow as af
from benchmarks._measure import Table
from tests.flow_graphs import FAMILIES, Judge, random_graph

GRAPHS, PAIRS, TOLERANCE = 10_000, 20, 1e-9


def main(graphs: int = GRAPHS) -> int:
    table = Table("family", "graphs", "pairs", "worst difference / largest capacity", "disagree", "bounds violated")
    total = 0
    for number, family in enumerate(FAMILIES):
        rng = np.random.default_rng([number, 20200702])
        count = graphs // len(FAMILIES) + (number < graphs % len(FAMILIES))
        worst, wrong, outside = 0.0, 0, 0
        for _ in range(count):
            graph = random_graph(rng, family)
            level = len(graph) - 1 if rng.random() < 0.5 else int(rng.integers(len(graph)))
            judge, pairs = Judge(graph, level), rng.integers(len(graph.tokens), size=(PAIRS, 2))
            queries = sorted(set(pairs[:, 0].tolist()))
            found = af.flow(graph, queries, level, threads=1)
            lower, upper = af.flow_bounds(graph, queries, level, threads=1)
            for query, key in pairs.tolist():
                wanted = judge.flow(query, key)
                off = abs(found.of(query)[key] - wanted) / judge.scale
                worst, wrong = max(worst, off), wrong + bool(off > TOLERANCE)
                slack = TOLERANCE * judge.scale
                outside += bool(lower.of(query)[key] - slack > wanted or wanted > upper.of(query)[key] + slack)
        table.row(family, count, count * PAIRS, f"{worst:.1e}", wrong, outside)
        total += wrong + outside
    table.print(f"Flow against igraph: {total} disagreements")
    return total


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else GRAPHS) > 0)
