"""How far does flow go? One row and full maps of 12 levels, bounds of large graphs; each in a fresh process, with its peak.

python -m benchmarks.flow_scale [--quick]
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable

import numpy as np

import attnflow as af
from benchmarks._attention import Levels, attention
from benchmarks._measure import Table, machine

RUNS = (
    ("one row", (512, 1024, 2048)),
    ("full map", (128, 256)),
    ("bounds of one row", (1024, 2048)),
    ("bounds of the full map", (1024, 2048)),
)


def measure(what: str, n: int) -> None:
    """Print seconds, the peak of memory beyond the graph in MB, the graph's own MB."""
    graph = af.AttentionGraph(attention(n, 12)[0])
    af.flow(af.AttentionGraph(np.full((3, 2, 2), 0.5)), progress=False)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    queries = [0] if "row" in what else None
    start = time.perf_counter()
    if "bounds" in what:
        af.flow_bounds(graph, queries, levels=[-1], progress=False)
    else:
        af.flow(graph, queries, levels=[-1], progress=False)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(seconds, after - before, graph.levels.nbytes / 2**20)


def tightness(sizes: Iterable[int], source: str, levels_of: Callable[[int], Levels]) -> None:
    """How often the upper bound is the flow, and how far the lower one is from it."""
    table = Table(
        "tokens",
        "level",
        "upper = flow, %",
        "without partners, %",
        "upper − flow, median",
        "worst",
        "below the flow",
        "lower / flow, median",
        "lower / flow, worst",
        "rollout / flow, median",
    )
    for n in sizes:
        graph = af.AttentionGraph(levels_of(n))
        plain = without_partners(graph.levels)
        asked = [2, 3, 4, 5]
        flow, rollout = af.flow(graph, levels=asked, progress=False).scores, af.rollout(graph, levels=asked).scores
        lower, upper = (bound.scores for bound in af.flow_bounds(graph, levels=asked, progress=False))
        for at, level in enumerate(asked):
            gap, share = upper[at] - flow[at], lower[at] / flow[at]
            table.row(
                n,
                level + 1,
                f"{100 * (gap < 1e-9).mean():.1f}",
                f"{100 * (plain[level] - flow[at] < 1e-9).mean():.1f}",
                float(np.median(np.maximum(gap, 0))),
                float(gap.max()),
                int((gap < -1e-11).sum()),
                float(np.median(share)),
                float(share.min()),
                float(np.median(rollout[at] / flow[at])),
            )
    table.print(f"Bounds against the flow, {source}")


def without_partners(levels: Levels) -> Levels:
    """The upper bound as it is without partners: the least of what leaves, what enters, and Σ_u min(A[s, u], U[u, t]) below."""
    entering, bounds = levels[0].sum(0), [levels[0]]
    for level in levels[1:]:
        through = np.stack([np.minimum(row[:, None], bounds[-1]).sum(0) for row in level])
        bounds.append(np.minimum(through, np.minimum(level.sum(1)[:, None], entering)))
    return np.stack(bounds)


def sharp_and_local(n: int) -> Levels:
    """Scores that fall by 0.5 per position of distance, and a hub: the bounds' hard case."""
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    scores = np.random.default_rng(n).normal(size=(6, n, n)) - 0.5 * distance
    scores[:, :, 0] += 4
    weights: Levels = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return 0.5 * weights + 0.5 * np.eye(n)


def main(quick: bool) -> None:
    print(machine())
    tightness((16, 32, 64, 128), f"{attention(16)[1]} attention", lambda n: attention(n)[0])
    tightness((48,), "made attention, sharp and local", sharp_and_local)
    table = Table("12 levels, last level, all inputs", "tokens", "seconds", "ms per pair", "peak, MB", "graph, MB")
    for what, sizes in RUNS:
        for n in sizes[:1] if quick else sizes:
            run = [sys.executable, "-m", "benchmarks.flow_scale", "--measure", what, str(n)]
            seconds, peak, size = map(
                float, subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()
            )
            pairs = n if "row" in what else n * n
            table.row(what, n, seconds, seconds / pairs * 1e3, round(peak), round(size))
    table.print("Flow of large graphs, all cores")


if __name__ == "__main__":
    if "--measure" in sys.argv:
        measure(sys.argv[2], int(sys.argv[3]))
    else:
        main("--quick" in sys.argv)
