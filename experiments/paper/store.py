"""What was measured, in chunks on disk, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

Item = TypeVar("Item")
Record = dict[str, NDArray[Any]]  # what is known of one sentence

CHUNK = 50


def digest(*parts: Any) -> str:
    """A short name for everything that a result depends on; files count by their content."""
    total = hashlib.sha256()
    for part in parts:
        content = part.read_bytes() if isinstance(part, Path) else part
        total.update(content if isinstance(content, bytes) else repr(content).encode())
        total.update(b"\0")
    return total.hexdigest()[:12]


def in_chunks(
    items: Sequence[Item],
    measure: Callable[[Sequence[Item], int], list[Record]],
    folder: Path,
    what: str,
    *,
    workers: int = 1,
    prepare: Callable[[], None] = lambda: None,
) -> list[Record]:
    """`measure(chunk, place of its first item)` for every chunk that `folder` does not hold yet.

    Several workers are processes of one thread each, since small matrices gain nothing from more; `prepare` runs first in
    every process. `measure` and `prepare` must then be functions of a module.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = {
        start: folder / f"{start:06d}-{len(items[start : start + CHUNK])}.npz" for start in range(0, len(items), CHUNK)
    }
    missing = [start for start, path in paths.items() if not path.exists()]
    with tqdm(total=len(items), initial=len(items) - _count(items, missing), desc=what, unit="sentence") as bar:
        for start, records in _done(items, missing, measure, min(workers, len(missing)), prepare):
            _write(paths[start], records)
            bar.update(len(records))
    return [record for path in paths.values() for record in _read(path)]


def _count(items: Sequence[Item], starts: Sequence[int]) -> int:
    return sum(len(items[start : start + CHUNK]) for start in starts)


def _done(
    items: Sequence[Item],
    starts: Sequence[int],
    measure: Callable[[Sequence[Item], int], list[Record]],
    workers: int,
    prepare: Callable[[], None],
) -> Iterator[tuple[int, list[Record]]]:
    """The chunks, each as soon as it is measured."""
    if workers <= 1:
        if starts:
            prepare()
        for start in starts:
            yield start, measure(items[start : start + CHUNK], start)
        return
    # Spawned and not forked: a copy of a process whose libraries have threads may wait for ever.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=prepare) as pool:
        running = {pool.submit(measure, items[start : start + CHUNK], start): start for start in starts}
        for done in as_completed(running):
            yield running[done], done.result()


def write(path: Path, content: bytes | str) -> None:
    """The old file or the new one, never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.replace(temporary, path)


def _write(path: Path, records: list[Record]) -> None:
    entries: Any = {
        f"{number}/{name}": value for number, record in enumerate(records) for name, value in record.items()
    }
    temporary = path.with_name(f".{path.name}.part")
    with temporary.open("wb") as file:
        np.savez_compressed(file, **entries)
    os.replace(temporary, path)


def _read(path: Path) -> list[Record]:
    records: list[Record] = []
    with np.load(path, allow_pickle=False) as file:
        for number, name, value in _entries(file):
            while len(records) <= number:
                records.append({})
            records[number][name] = value
    return records


def _entries(file: Any) -> Iterator[tuple[int, str, NDArray[Any]]]:
    for key in file.files:
        number, _, name = key.partition("/")
        yield int(number), name, file[key]
