"""run: many inputs to a folder of Parquet files, resumable."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnflow.batch._job import Job
from attnflow.batch._ledger import Ledger
from attnflow.batch._local import local
from attnflow.batch._part import Part, Source, rows_per_part
from attnflow.batch._progress import Progress, duration
from attnflow.batch._rows import Columns
from attnflow.batch._schema import schema
from attnflow.batch._source import source_of
from attnflow.batch._work import Finished
from attnflow.errors import InvalidArgument, suggest

ENGINES = ("local", "ray")


@dataclass(frozen=True)
class Summary:
    """What a run did: `inputs` explained in it (`before` had been already), `rows` written, how many of them `errors`."""

    folder: Path
    inputs: int
    rows: int
    errors: int
    before: int
    seconds: float

    def __str__(self) -> str:
        earlier = f" ({self.before:,} were done before)" if self.before else ""
        failed = f"; {self.errors:,} of them are errors, see the column error" if self.errors else ""
        return (
            f"{self.inputs:,} inputs in {duration(self.seconds)}{earlier}: {self.rows:,} rows in {self.folder}{failed}"
        )


def run(
    input: Any,
    output: str | os.PathLike[str],
    model: Any = None,
    method: str | Callable[..., Any] | Iterable[str | Callable[..., Any]] = "rollout",
    *,
    level: int | Iterable[int] | None = -1,
    query: int | str | Iterable[int | str] | None = None,
    column: str | None = None,
    second: str | None = None,
    id: str | None = None,
    keep: Iterable[str] = (),
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
    part_rows: int | None = None,
    batch_size: int = 32,
    tokenizer: Any = None,
    processor: Any = None,
    device: str | None = None,
    dtype: str | None = None,
    join_words: bool = False,
    progress: bool | None = None,
    **options: Any,
) -> Summary:
    """Explain every row of `input` and write the answers to the folder `output`, as Parquet: one row per input × method × level.

    `input` is a file (JSONL, CSV, TSV, Parquet), a folder of texts, of images or of such files, a datasets.Dataset, a data frame, or anything to
    iterate over. `column` is what is explained (usual names are found), `second` the second text of a pair, `id` a name for each
    row, `keep` the columns that go along. `model`, `method`, `level`, `query` and other options are those of `attnflow.explain`.

    A run that was stopped, however, goes on when it is started again with the same input and options. `engine="ray"` runs on the Ray
    cluster at `address` (none: the one that is there, or a new one on this machine). `part_rows` is how many rows make a file, and the most that a worker loses when it
    is killed. `dtype` is what the model computes in, for example "float32" for one that was saved in float16.
    """
    if engine not in ENGINES:
        raise InvalidArgument(f"unknown engine {engine!r}." + suggest(engine, ENGINES))
    if address is not None and engine != "ray":
        raise InvalidArgument(f"an address is of a Ray cluster, and the engine is {engine!r}.")
    count = _whole(workers, "workers")
    job = Job.of(
        method, options, model=model, level=level, query=query, tokenizer=tokenizer, processor=processor, device=device,
        dtype=dtype, join_words=join_words, batch_size=batch_size,
    )  # fmt: skip
    columns = Columns(column, second, id, (keep,) if isinstance(keep, str) else tuple(keep))
    source = source_of(input, columns)
    schema(source.types)  # names that clash are found before anything is written
    size = _whole(part_rows, "part_rows") or rows_per_part(source)
    asked = {"input": {**source.described(), "part_rows": size}, "job": job.described()}
    start = time.monotonic()
    with closing(Ledger(Path(output), asked)) as ledger:
        before = sum(line["inputs"] for line in ledger.finished.values())
        with Progress(progress, source.total, before) as shown:
            parts = ledger.unfinished(source.parts(size))
            for done in _engine(engine, address)(job, source, parts, count):
                ledger.write(done)
                shown.add(done)
    return Summary(Path(output), shown.inputs, shown.rows, shown.errors, before, time.monotonic() - start)


def _engine(name: str, address: str | None) -> Callable[[Job, Source, Iterator[Part], int | None], Iterator[Finished]]:
    if name == "local":
        return lambda job, source, parts, workers: local(job, source.types, parts, workers)
    from attnflow.batch._ray import on_ray

    return lambda job, source, parts, workers: on_ray(job, source.types, parts, workers, address)


def _whole(value: Any, name: str) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InvalidArgument(f"{name} must be a whole number from 1, got {value!r}.")
    return value
