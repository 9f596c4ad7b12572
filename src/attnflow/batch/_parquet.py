"""Parquet files: read by row groups, of which each process keeps the last, since the next part usually lies there too."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from attnflow.batch._part import Piece, changed
from attnflow.batch._rows import Columns, Row
from attnflow.errors import InvalidArgument, InvalidArtifact

NAME = "Parquet"


def opened(paths: Sequence[Path], columns: Columns) -> tuple[Columns, Mapping[str, Any]]:
    """The columns to read, and the types of those that are kept, as the files have them."""
    schema = _file(paths[0]).schema_arrow
    chosen = columns.among(schema.names)
    for path in paths[1:]:
        other = _file(path).schema_arrow
        for name in chosen.wanted:
            if name not in other.names or other.field(name).type != schema.field(name).type:
                raise InvalidArgument(
                    f"column {name!r} of {path.name} is not as in {paths[0].name}: read them one by one."
                )
    return chosen, {name: schema.field(name).type for name in chosen.keep}


def pieces(path: Path, columns: Columns, size: int, types: Mapping[str, Any]) -> Iterator[Piece]:
    """The file in runs of `size` rows."""
    stamp = _stamp(path)
    content, rows = _digest(path, stamp), _file(path).metadata.num_rows
    for start in range(0, rows, size):
        stop = min(start + size, rows)
        read = partial(_read, path, stamp, start, stop, columns)
        yield Piece(stop - start, f"{content}:{start}-{stop}", read)


def _read(path: Path, stamp: tuple[int, int], start: int, stop: int, columns: Columns, first: int) -> list[Row]:
    if _stamp(path) != stamp:
        raise changed(path)
    records: list[dict[str, Any]] = []
    metadata, offset = _file(path).metadata, 0
    for group in range(metadata.num_row_groups):
        length = metadata.row_group(group).num_rows
        if offset < stop and offset + length > start:
            table = _group(path, stamp, group, tuple(columns.wanted))
            records += table.slice(max(start - offset, 0), stop - max(start, offset)).to_pylist()
        offset += length
    return [columns.row(first + place, record) for place, record in enumerate(records)]


def _file(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidArtifact(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from None


@lru_cache(maxsize=1)
def _group(path: Path, stamp: tuple[int, int], group: int, columns: tuple[str, ...]) -> pa.Table:
    return _file(path).read_row_group(group, list(columns))


@lru_cache(maxsize=1024)
def _digest(path: Path, stamp: tuple[int, int]) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=16)).hexdigest()


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns
