"""How long a flow will take, said beforehand: the number of pairs times the time of one, measured on a few."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from attnflow.cli._say import voice

if TYPE_CHECKING:
    from attnflow.graph import AttentionGraph

LONG = 10.0  # seconds that nobody needs to be warned of
FEW = 1000  # pairs that never take that long, so that nothing needs to be measured
SAMPLE = 32  # pairs per level


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
    """The mean over some of the asked levels: what a few pairs more cost than a single one, so that set-up does not count."""
    from attnflow.methods import flow

    def seconds(level: int, inputs: list[int]) -> float:
        start = time.perf_counter()
        flow(graph, queries=[rows[len(rows) // 2]], levels=[level], inputs=inputs, threads=threads, progress=False)
        return time.perf_counter() - start

    n, ordered = len(graph.tokens), sorted(set(levels))
    some = ordered[:: max(1, len(ordered) // 3)]
    spread = [i * n // SAMPLE for i in range(SAMPLE)] if n > SAMPLE else list(range(n))
    seconds(some[-1], spread[:1])  # compiles, or reads what was compiled
    each = [(seconds(level, spread) - seconds(level, spread[:1])) / max(1, len(spread) - 1) for level in some]
    return max(0.0, sum(each) / len(each))


def _unit(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
