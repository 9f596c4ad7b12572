"""How many rows per second does the batch engine explain, and does its memory stay the same however long the input is?

Sentences of 15 tokens on average, rollout at the top level, the bundled model (6 layers × 8 heads). A plain loop of af.explain beside
`attnflow batch run` with 1 and 2 workers, two threads instead of processes, and Ray on this machine. "Whole" counts from the start of the process,
with Python and torch; "steady" from the first finished part to the last, which is what a long run has. Memory is that of all processes
together, without the pages of libraries.

    python -m benchmarks.batch [rows]        default: 10000
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks._corpus import sentences, write
from benchmarks._measure import Table, machine

BAR = 3.0  # times the plain loop, with 2 workers
LOOP = 400  # sentences that the plain loop explains
ROUNDS = 2
ENGINES = {
    "local, 1 worker": ("--workers", "1"),
    "local, 2 workers": ("--workers", "2"),
    "Ray, 2 actors": ("--engine", "ray", "--workers", "2"),
}
PART = 256  # rows, the same for every size, so that memory can be compared


def main(rows: int) -> None:
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        long = write(place / "long.jsonl", sentences(rows))
        short = write(place / "short.jsonl", sentences(rows // 10))
        loops, found = [], []
        for _ in range(ROUNDS):  # turn by turn, so that a busy machine is busy for all of them
            loops.append(loop())
            found.append({name: engine(place, long, *options) for name, options in ENGINES.items()})
        threads = max(two_threads(long) for _ in range(ROUNDS))
        rates = {name: max(one[name] for one in loops) for name in loops[0]}
        best = {name: {key: max(one[name][key] for one in found) for key in ("whole", "steady")} for name in ENGINES}
        once = rates["model loaded once"]
        table = Table("way", "rows/s, whole", "rows/s, steady", "× the loop, whole", "× the loop, steady")
        for name, rate in rates.items():
            table.row(f"a loop of af.explain, {name}", "", rate, "", rate / once)
        table.row("2 threads in one process, a model each", "", threads, "", threads / once)
        for name, one in best.items():
            table.row(name, one["whole"], one["steady"], one["whole"] / once, one["steady"] / once)
        table.print(f"{rows:,} rows")
        gain = best["local, 2 workers"]["steady"] / once
        print(f"bar: 2 workers ≥ {BAR} × the loop: {gain:.2f}. {'kept' if gain >= BAR else 'MISSED'}\n")
        memory = Table("way", f"MB at {rows // 10:,} rows", f"MB at {rows:,} rows")
        for name in list(ENGINES)[:2]:
            peaks = [round(one[name]["memory"]) for one in found]
            memory.row(name, round(engine(place, short, *ENGINES[name])["memory"]), max(peaks))
        memory.print("Peak memory, all processes")


def loop() -> dict[str, float]:
    """Rows per second of a plain loop, with as many threads as torch takes and with one, whichever is faster."""
    found = []
    for threads in (None, "1"):
        variables = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.batch", "--loop"],
            env=variables if threads is None else {**variables, "OMP_NUM_THREADS": threads},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        found.append(json.loads(done.stdout))
    return {name: max(one[name] for one in found) for name in found[0]}


def measure_loop() -> None:
    """In this process; prints JSON."""
    from importlib import resources

    import attnflow as af
    from attnflow import capture

    with resources.as_file(resources.files("attnflow") / "assets" / "verb_number") as folder:
        model: Any = capture.load(str(folder))
        tokenizer = capture.tokenizer_for(model, None, str(folder))
    once = rate(lambda text: af.explain(text, model, tokenizer=tokenizer), LOOP)
    print(json.dumps({"model loaded once": once, "model loaded by each call": rate(af.explain, LOOP // 10)}))


def rate(work: Callable[[str], Any], count: int) -> float:
    texts = sentences(count)
    work(texts[0])
    start = time.perf_counter()
    for text in texts:
        work(text)
    return count / (time.perf_counter() - start)


def two_threads(path: Path) -> float:
    """Rows per second of two workers in one process."""
    from attnflow.batch._job import Job
    from attnflow.batch._rows import Columns
    from attnflow.batch._source import source_of
    from attnflow.batch._work import Work

    nothing = dict.fromkeys(("model", "query", "tokenizer", "processor", "device", "dtype"))
    job = Job.of("rollout", {}, **nothing, level=-1, join_words=False, batch_size=32)
    works = [Work(job, {}), Work(job, {})]
    parts = list(source_of(path, Columns()).parts(PART))[:12]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda work: work(parts[0]), works))
        start = time.perf_counter()
        list(pool.map(lambda place: [works[place](part) for part in parts[place::2]], range(2)))
    return sum(part.rows for part in parts) / (time.perf_counter() - start)


def engine(place: Path, input: Path, *options: str) -> dict[str, float]:
    """One run in a fresh process: rates, and the peak of memory."""
    with tempfile.TemporaryDirectory(dir=place) as folder:
        out = Path(folder) / "out"
        command = [
            sys.executable,
            "-m",
            "attnflow",
            "batch",
            "run",
            str(input),
            "-o",
            str(out),
            "--part-rows",
            str(PART),
            *options,
        ]
        start = time.perf_counter()
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
            peak = watch(process)
        seconds = time.perf_counter() - start
        if process.returncode:
            raise SystemExit(f"{' '.join(options)} failed")
        rows = sum(1 for _ in input.open("rb"))
        times = sorted(path.stat().st_mtime for path in out.glob("part-*"))
        steady = (rows - PART) / (times[-1] - times[0]) if len(times) > 1 else rows / seconds
    return {"whole": rows / seconds, "steady": steady, "memory": peak}


def watch(process: subprocess.Popen[bytes]) -> float:
    """The most that a process and its children held at once, in MB, looked at ten times a second, until it ends."""
    peak = 0.0
    drain = threading.Thread(target=lambda: process.stderr and process.stderr.read())
    drain.start()
    while process.poll() is None:
        peak = max(peak, sum(anonymous(one) for one in family(process.pid)))
        time.sleep(0.1)
    drain.join()
    return peak


def family(process: int) -> list[int]:
    """A process and all that it started, and what they started."""
    try:
        lists = [path.read_text().split() for path in Path(f"/proc/{process}/task").glob("*/children")]
    except OSError:
        return [process]
    return [process, *(one for some in lists for child in some for one in family(int(child)))]


def anonymous(process: int) -> float:
    """Without the pages of libraries, which all processes share."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon")), 0.0)


if __name__ == "__main__":
    if sys.argv[1:] == ["--loop"]:
        measure_loop()
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
