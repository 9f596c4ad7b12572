"""Attention flow against other people's maximum flow: microseconds per pair at the last level, one thread.

All rivals take turns in one run over the same levels, and what counts is the processor's time, so the ratios hold on a busy
machine. Ours is the whole call `af.flow(graph, levels=[-1], threads=1)`, bounds and all. igraph is given its graph and capacities once. scipy wants whole
numbers, so it gets capacities times 10⁷ and is not exact. networkx runs only where a pair ends within a minute or so.

    python -m benchmarks.flow_versus_libraries [--pages]       --pages writes the table into README.md and docs/flow.md
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import igraph
import networkx
import numpy as np
import scipy.sparse

import attnflow as af
from benchmarks._attention import Levels, attention
from benchmarks._measure import Table, machine, race

SIZES = (16, 32, 64, 128, 256, 512)
BARS = {16: 6, 64: 22, 128: 60, 256: 220}  # times igraph, at 6 levels; the aim is twice that
QUERIES = 64  # at most, from 256 tokens on: the whole map would say the same and take minutes
NETWORKX = {"edmonds_karp": 32, "preflow_push": 128}  # the largest size that ends in bearable time
Flow = Callable[[int, int], float]


def edges(levels: Levels) -> tuple[Any, Any]:
    """The layered graph as pairs of nodes and capacities; node (l + 1) · n + i sends down to l · n + j."""
    n = levels.shape[-1]
    level, query, key = np.nonzero(levels)
    return np.stack([(level + 1) * n + query, level * n + key], axis=1), levels[level, query, key]


def igraph_flow(levels: Levels) -> Flow:
    top, n, _ = levels.shape
    ends, capacities = edges(levels)
    graph: Any = igraph.Graph((top + 1) * n, ends.tolist(), directed=True)
    graph.es["capacity"] = capacities.tolist()
    return lambda query, key: float(graph.maxflow_value(top * n + query, key, "capacity"))


def scipy_flow(levels: Levels) -> Flow:
    top, n, _ = levels.shape
    ends, capacities = edges(levels)
    whole = np.round(capacities * 1e7).astype(np.int32)
    matrix = scipy.sparse.csr_array((whole, ends.T), shape=((top + 1) * n,) * 2)
    return lambda query, key: float(scipy.sparse.csgraph.maximum_flow(matrix, top * n + query, key).flow_value) / 1e7


def networkx_flow(levels: Levels, algorithm: str) -> Flow:
    top, n, _ = levels.shape
    ends, capacities = edges(levels)
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from(
        ((a, b, c) for (a, b), c in zip(ends.tolist(), capacities.tolist(), strict=True)), "capacity"
    )
    function = getattr(networkx.algorithms.flow, algorithm)
    return lambda query, key: float(networkx.maximum_flow_value(graph, top * n + query, key, flow_func=function))


def timed(flow: Flow, pairs: Iterator[tuple[int, int]], seconds: float) -> tuple[float, list[tuple[int, int, float]]]:
    """Seconds per pair over as many pairs as fit (at least 2), and what was found."""
    found: list[tuple[int, int, float]] = []
    start = time.process_time()
    while len(found) < 2 or time.process_time() - start < seconds:
        query, key = next(pairs)
        found.append((query, key, flow(query, key)))
    return (time.process_time() - start) / len(found), found


def compare(n: int, layers: int, seconds: float) -> dict[str, float]:
    """Seconds per pair of everybody. Two rounds, and the faster of the two counts, for each."""
    levels, _ = attention(n, layers)
    graph, rng = af.AttentionGraph(levels), np.random.default_rng(n)
    queries = range(n) if n <= 128 else sorted(rng.choice(n, QUERIES, replace=False).tolist())
    pairs = iter(lambda: (int(rng.choice(queries)), int(rng.integers(n))), None)
    rivals: dict[str, Flow] = {"igraph": igraph_flow(levels), "scipy": scipy_flow(levels)}
    rivals |= {name: networkx_flow(levels, name) for name, most in NETWORKX.items() if n <= most and layers == 6}
    best: dict[str, float] = {}
    for _ in range(2):
        scores, repeats = None, max(1, 2000 // len(queries) // n)
        for _ in range(3 if n <= 128 else 1):
            start = time.process_time()
            for _ in range(repeats):
                scores = af.flow(graph, queries=queries, levels=[-1], threads=1, progress=False)
            ours = (time.process_time() - start) / repeats / (len(queries) * n)
            best["attnflow"] = min(ours, best.get("attnflow", np.inf))
        assert scores is not None
        for name, flow in rivals.items():
            taken, found = timed(flow, pairs, seconds)
            best[name] = min(taken, best.get(name, np.inf))
            rounding = 1e-7 * 10 * n if name == "scipy" else 1e-9
            assert all(abs(scores.of(q)[k] - value) < rounding for q, k, value in found), (
                f"{name} disagrees at {n} tokens"
            )
    return best


def speed_table(layers: int, seconds: float, sizes: tuple[int, ...]) -> tuple[Table, list[float]]:
    heads = (
        "tokens",
        "attnflow, µs",
        "igraph, µs",
        "scipy (rounded), µs",
        "networkx preflow_push, µs",
        "networkx edmonds_karp, µs",
    )
    table, ours = Table(*heads, "times igraph", "bar (aim)"), []
    for n in sizes:
        best = compare(n, layers, seconds)
        names = ("attnflow", "igraph", "scipy", "preflow_push", "edmonds_karp")
        cells = [
            f"{best[name] * 1e6:,.3g}"
            if best.get(name, 1) < 1e-3
            else f"{best[name] * 1e6:,.0f}"
            if name in best
            else "–"
            for name in names
        ]
        bar = f"{BARS[n]} ({2 * BARS[n]})" if n in BARS and layers == 6 else ""
        times = best["igraph"] / best["attnflow"]
        table.row(n, *cells, f"{times:.1f}" if times < 10 else f"{times:.0f}", bar)
        ours.append(best["attnflow"])
    return table, ours


def growth(sizes: tuple[int, ...], seconds: list[float]) -> str:
    logs = np.log(sizes), np.log(seconds)
    last = np.diff(logs[1])[-1] / np.diff(logs[0])[-1]
    return f"Per pair it grows like n^{np.polyfit(*logs, 1)[0]:.2f} over {sizes[0]} … {sizes[-1]} (bar 1.25), n^{last:.2f} in the last step."


def threads_line() -> str:
    graph = af.AttentionGraph(attention(128)[0])
    one, two = race(9, *(lambda t=t: af.flow(graph, levels=[-1], threads=t, progress=False) for t in (1, 2)))
    return f"Two threads are {one / two:.2f} times as fast as one (128 tokens; bar 1.8)."


FIRST = """
import time, numpy as np, attnflow as af
graph = af.AttentionGraph(np.full((3, 4, 4), 0.25))
start = time.perf_counter(), time.process_time()
af.flow(graph, progress=False)
print(time.perf_counter() - start[0], time.process_time() - start[1])
"""


def first_call_line() -> str:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        run = [sys.executable, "-c", FIRST]
        cold, *warm = (
            tuple(
                map(
                    float,
                    subprocess.run(run, capture_output=True, text=True, check=True, env=environment).stdout.split(),
                )
            )
            for _ in range(4)
        )
    fast, least = map(min, zip(*warm, strict=True))
    return (
        f"First call: {cold[0]:.1f} s cold, which compiles (bar 8), {cold[1]:.1f} s of them the processor's own; "
        f"{fast:.2f} s ({least:.2f} s) from the cache on disk (bar 0.5)."
    )


PAGES = ("README.md", "docs/flow.md")
PLACE = re.compile(r"<!-- speed:begin -->.*<!-- speed:end -->", re.DOTALL)


def for_readers(text: str) -> str:
    """Without the bars, which are there for whoever changes the solver."""
    lines = [re.sub(r"\|[^|]*\|$", "|", line) if line.startswith("|") else line for line in text.splitlines()]
    return re.sub(r" \(bar [^)]*\)|; bar [\d.]+", "", "\n".join(lines)) + "\n"


def write(text: str) -> None:
    """Into every page that has a place for it."""
    written, text = [], for_readers(text)
    for page in (Path(__file__).parent.parent / name for name in PAGES):
        old = page.read_text(encoding="utf-8")
        if PLACE.search(old):
            page.write_text(
                PLACE.sub(lambda _: f"<!-- speed:begin -->\n{text}<!-- speed:end -->", old), encoding="utf-8"
            )
            written.append(page.name)
    print("written into", *(written or ["no page: none has <!-- speed:begin --> and <!-- speed:end -->"]))


def main(pages: bool = False, quick: bool = False) -> None:
    sizes, seconds = (SIZES[:4], 0.3) if quick else (SIZES, 1.0)
    af.flow(af.AttentionGraph(np.full((3, 2, 2), 0.5)))  # compiled before anything is timed
    print(f"### Microseconds per pair at the last level, one thread\n\n{machine()}")
    written = ""
    for layers in (6, 12):
        table, ours = speed_table(layers, seconds, sizes)
        text = (
            f"{layers} levels of {attention(16, layers)[1]} attention\n\n"
            + "\n".join(table.lines)
            + f"\n\n{growth(sizes, ours)}\n"
        )
        print(text)
        print(flush=True)
        written = written or f"Microseconds per (query, input) pair, one thread, {text}"
    lines = f"{threads_line()} {first_call_line()}"
    print(lines)
    if pages:
        write(f"{written}\n{lines}\n\nOn {machine()}")


if __name__ == "__main__":
    main("--pages" in sys.argv, "--quick" in sys.argv)
