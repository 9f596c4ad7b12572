"""How long a flow will take, said beforehand: the number of pairs times the time of one, measured on a few."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from attnflow.cli._say import voice

if TYPE_CHECKING:
    from attnflow.graph import AttentionGraph

LONG = 10.0  # seconds that nobody needs to be warned of
FEW = 1000  # pairs that never take that long, so that nothing needs to be measured
SAMPLE = 64  # pairs that are measured at first
ENOUGH = 0.2  # seconds that a measurement should take


def announce(graph: AttentionGraph, queries: Any, levels: Any, threads: int | None) -> None:
    """Say how long a flow will take, if that is long."""
    rows, asked = graph.tokens.positions(queries), graph.level_numbers(levels)
    pairs = len(rows) * len(asked) * len(graph.tokens)
    if voice().quiet or pairs < FEW:
        return
    each = seconds_per_pair(graph, rows, asked, threads)
    if pairs * each > LONG:
        voice().note(
            f"flow: {pairs:,} pairs × {_unit(each)} ≈ {_duration(pairs * each)}. Fewer --query or --level take less; Ctrl-C stops it."
        )


def seconds_per_pair(graph: AttentionGraph, rows: Sequence[int], levels: Iterable[int], threads: int | None) -> float:
    """The mean over some of the levels that are asked about."""
    ordered = sorted(set(levels))
    some = {ordered[len(ordered) * part // 6] for part in (1, 3, 5)}
    each = [_seconds_at(graph, rows, level, threads) for level in some]
    return sum(each) / len(each)


def _seconds_at(graph: AttentionGraph, rows: Sequence[int], level: int, threads: int | None) -> float:
    """What many inputs cost beyond a single one, so that set-up does not count: more of them until the clock can tell."""
    from attnflow.methods import flow

    def seconds(queries: list[int], inputs: list[int]) -> float:
        start = time.perf_counter()
        flow(graph, queries, [level], inputs, threads=threads, progress=False)
        return time.perf_counter() - start

    n = len(graph.tokens)
    # Of many queries an eighth at least: from there on flow bounds all of them at once, and searches fewer pairs.
    fewest = math.ceil(n / 8) if len(rows) * 8 >= n else 1
    seconds([rows[0]], [0])  # compiles, or reads what was compiled
    count = SAMPLE
    while True:
        queries = _spread(rows, max(fewest, math.isqrt(count)))
        inputs = _spread(range(n), max(2, count // len(queries)))
        single = min(seconds(queries, inputs[:1]) for _ in range(2))
        taken, pairs = seconds(queries, inputs), max(1, len(queries) * (len(inputs) - 1))
        if taken > max(ENOUGH, 2 * single) or len(inputs) * len(queries) * 10 > len(rows) * n:
            return max(0.0, taken - single) / pairs
        count *= 4


def _spread(positions: Sequence[int], count: int) -> list[int]:
    """So many of them, evenly."""
    count = max(1, min(count, len(positions)))
    return [positions[i * len(positions) // count] for i in range(count)]


def _unit(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
