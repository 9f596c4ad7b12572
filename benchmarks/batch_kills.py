"""Is a row lost or doubled when a batch run is killed with −9, again and again?

Every fiftieth row is poisoned in one of five ways. A run is killed at 20 random points, wherever it then is (loading, reading,
explaining, writing), every fourth time a worker before it. Then it is left to finish, and its rows are compared with those of
a run that nobody disturbed.

    python -m benchmarks.batch_kills [rows] [kills]        default: 10000 20
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks._corpus import sentences, write
from benchmarks.batch import family

POISON: list[Any] = ["", " ", None, "the key " * 200, 7]


def main(rows: int, kills: int) -> None:
    rng = Random(20)
    texts: list[Any] = list(sentences(rows))
    for number, at in enumerate(range(25, rows, 50)):
        texts[at] = POISON[number % len(POISON)]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        corpus = write(place / "texts.jsonl", texts)
        first, alone = undisturbed(command(corpus, place / "whole"), place / "whole")
        print(
            f"{rows:,} rows, {len(range(25, rows, 50))} of them poisoned; undisturbed {alone:.0f} s, the first part after {first:.0f} s"
        )
        for number in range(kills):
            before = finished(place / "killed")
            # Every other one comes to work before it is killed; else all would die loading, or one would finish.
            wait = place / "killed" if number % 2 else None
            seconds = killed(
                command(corpus, place / "killed"), rng.uniform(0, 0.5 if wait else first), wait, worker=number % 4 == 3
            )
            print(
                f"kill {number + 1:>2} after {seconds:4.1f} s: parts {before:>3} → {finished(place / 'killed'):>3}",
                flush=True,
            )
        subprocess.run(command(corpus, place / "killed"), check=True, stderr=subprocess.DEVNULL)
        verdict(read(place / "whole"), read(place / "killed"), rows)


def command(corpus: Path, out: Path) -> list[str]:
    return [sys.executable, "-m", "attnflow", "batch", "run", str(corpus), "-o", str(out)]


def undisturbed(arguments: list[str], out: Path) -> tuple[float, float]:
    """Seconds to the first part of a run, and to its end."""
    start, first = time.perf_counter(), 0.0
    with subprocess.Popen(arguments, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            if not first and finished(out):
                first = time.perf_counter() - start
            time.sleep(0.05)
    return first, time.perf_counter() - start


def killed(arguments: list[str], delay: float, out: Path | None, *, worker: bool) -> float:
    """Start a run and kill it so much later, or so long after it added to the parts in `out`; `worker`: with a worker killed before."""
    start, before = time.perf_counter(), 0 if out is None else finished(out)
    with subprocess.Popen(arguments, stderr=subprocess.DEVNULL) as process:
        while out is not None and finished(out) == before and process.poll() is None:
            time.sleep(0.01)
        time.sleep(delay / 2)
        others = family(process.pid)[1:]
        if worker and others:
            os.kill(others[0], signal.SIGKILL)
        time.sleep(delay / 2)
        process.kill()
    return time.perf_counter() - start


def finished(out: Path) -> int:
    return len(list(out.glob("part-*.parquet")))


def read(out: Path) -> dict[int, list[Any]]:
    """What was written about each row of the input."""
    found: dict[int, list[Any]] = {}
    for row in pq.read_table(out).to_pylist():
        found.setdefault(row["input"], []).append(row)
    return found


def verdict(whole: dict[int, list[Any]], again: dict[int, list[Any]], rows: int) -> None:
    lost = rows - len(again)
    doubled = sum(len(some) > 1 for some in again.values())
    other = sum(not same(whole[number], again.get(number, [])) for number in whole)
    errors = sum(row["error"] is not None for some in again.values() for row in some)
    print(f"lost {lost}, doubled {doubled}, other than undisturbed {other}, errors {errors}")
    print("kept" if lost == doubled == other == 0 and len(whole) == rows else "MISSED")


def same(one: list[Any], other: list[Any]) -> bool:
    """To the rounding of float32."""
    if len(one) != len(other):
        return False
    for a, b in zip(one, other, strict=True):
        x, y = a.pop("scores"), b.pop("scores")
        if a != b or (x is None) != (y is None) or (x is not None and not np.allclose(x, y, atol=2e-6)):
            return False
    return True


if __name__ == "__main__":
    main(*([int(one) for one in sys.argv[1:3]] + [10_000, 20][len(sys.argv[1:3]) :]))
