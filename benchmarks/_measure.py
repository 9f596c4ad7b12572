"""What every benchmark needs: the best of several times, the peak of memory, a Markdown table."""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any


def best_of(times: int, work: Callable[[], Any]) -> float:
    """Seconds of the fastest run: on a noisy machine the minimum is the steadiest figure."""
    return race(times, work)[0]


def race(times: int, *works: Callable[[], Any]) -> list[float]:
    """Seconds of each rival's fastest run. They take turns, so that noise meets them all alike."""
    found: list[list[float]] = [[] for _ in works]
    for work in works:
        work()
    gc.disable()
    for _ in range(times):
        for seconds, work in zip(found, works, strict=True):
            start = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - start)
    gc.enable()
    return [min(seconds) for seconds in found]


def peak_memory(work: Callable[[], Any]) -> float:
    """Megabytes that numpy and Python hold at the worst moment, beyond what they held before."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - before) / 1e6


def run_python(*arguments: str) -> None:
    """Run a fresh Python process to its end."""
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def machine() -> str:
    """What the figures were taken on."""
    model = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as lines:
            model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), model)
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}\n"


class Table:
    """Rows of a Markdown table."""

    def __init__(self, *heads: str) -> None:
        self.lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]

    def row(self, *cells: Any) -> None:
        self.lines.append(
            "| " + " | ".join(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in cells) + " |"
        )

    def print(self, title: str) -> None:
        print(f"### {title}\n", *self.lines, "", sep="\n")
