"""JSONL, CSV and TSV: rows found by going through the file once, then read by their place in it."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

from attnflow.batch._part import Piece, changed
from attnflow.batch._rows import Columns, Row
from attnflow.batch._types import fit, inferred
from attnflow.errors import InvalidArgument

NAME = "rows of text"
SAMPLE = 1000  # rows from which the types of kept columns are inferred
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Form:
    """How a file of lines is read: with a header and a delimiter, or each line as JSON."""

    delimiter: str | None = None
    header: tuple[str, ...] = ()

    def records(self, file: IO[bytes]) -> Iterator[tuple[int, Any]]:
        """How many bytes each record takes, and what it is: a list of fields, a line, or an error. None: a blank line."""
        return self._jsonl(file) if self.delimiter is None else self._delimited(file)

    def _jsonl(self, file: IO[bytes]) -> Iterator[tuple[int, Any]]:
        for line in file:
            yield len(line), line if line.strip() else None

    def _delimited(self, file: IO[bytes]) -> Iterator[tuple[int, Any]]:
        """Bytes are read as Latin-1, which keeps them one to one, so that a record that is not UTF-8 is only one error."""
        taken = 0

        def lines() -> Iterator[str]:
            nonlocal taken
            for line in file:
                taken += len(line)
                yield line.decode("latin-1")

        if csv.field_size_limit() < MOST_BYTES:  # the one knob there is, and it is global
            csv.field_size_limit(MOST_BYTES)
        dialect = TabSeparated if self.delimiter == "\t" else CommaSeparated
        reader = csv.reader(lines(), dialect)
        while True:
            before = taken
            found: Any
            try:
                found = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                found = error
            yield taken - before, found or None

    def record(self, found: Any) -> Any:
        """What a record holds, as a mapping; raises ValueError where it cannot be read."""
        if isinstance(found, csv.Error):
            raise ValueError(f"the row is not CSV: {found}")
        if self.delimiter is None:
            return _from_json(found)
        if len(found) != len(self.header):
            raise ValueError(f"the row has {len(found)} fields, and the header {len(self.header)}")
        try:
            fields = [field.encode("latin-1").decode("utf-8") for field in found]
        except UnicodeDecodeError as error:
            raise ValueError(f"the row is not UTF-8: byte {error.object[error.start]:#04x} cannot be read") from None
        return dict(zip(self.header, fields, strict=True))


class CommaSeparated(csv.excel):
    """RFC 4180; what breaks it is an error and not guessed at."""

    strict = True


class TabSeparated(csv.excel_tab):
    """A quote is a letter like any other, as in most files of sentences and labels."""

    quoting = csv.QUOTE_NONE


MOST_BYTES = 2**31 - 1  # of one field


def opened(paths: Sequence[Path], columns: Columns) -> tuple[Columns, Mapping[str, Any]]:
    """The columns to read, and the types of those that are kept: text in CSV, inferred from the first rows of JSONL."""
    form = _form(paths[0])
    for path in paths[1:]:
        if _form(path) != form:
            raise InvalidArgument(f"{path.name} has other columns than {paths[0].name}: read them one by one.")
    first = _first_records(paths, form)
    if not first:
        raise InvalidArgument(f"{paths[0]} holds no row that can be read.")
    if form.delimiter is None and not any(isinstance(record, Mapping) for record in first):
        return columns, {}  # a text on each line
    names = list(form.header) or list(dict.fromkeys(name for record in first for name in record))
    chosen = columns.among(names)
    return chosen, {name: inferred([record.get(name) for record in first]) for name in chosen.keep}


def pieces(path: Path, columns: Columns, size: int, types: Mapping[str, Any]) -> Iterator[Piece]:
    """The file in runs of `size` rows."""
    form = _form(path)
    with path.open("rb") as file:
        start = _skip_header(file, form)
        file.seek(start)
        held = _Held(path, form, columns, types, start)
        for line, (length, found) in enumerate(form.records(file)):
            if isinstance(found, csv.Error) and "end of data" in str(found):
                raise InvalidArgument(
                    f"{path}: a quote is opened in record {line + 1} and never closed, so everything after it is one field. Close it."
                )
            held.length += length
            held.rows += found is not None
            if held.rows == size:
                yield held.piece()
        if held.rows:
            yield held.piece()


@dataclass
class _Held:
    """A run of rows that grows."""

    path: Path
    form: Form
    columns: Columns
    types: Mapping[str, Any]
    start: int
    length: int = 0
    rows: int = 0

    def piece(self) -> Piece:
        """What has been gathered; the next run starts after it."""
        digest = hashlib.blake2b(_bytes(self.path, self.start, self.length), digest_size=16).hexdigest()
        read = partial(_read, self.path, self.start, self.length, digest, self.form, self.columns, dict(self.types))
        made = Piece(self.rows, digest, read)
        self.start, self.length, self.rows = self.start + self.length, 0, 0
        return made


def _read(
    path: Path, start: int, length: int, digest: str, form: Form, columns: Columns, types: dict[str, Any], first: int
) -> list[Row]:
    content = _bytes(path, start, length)
    if hashlib.blake2b(content, digest_size=16).hexdigest() != digest:
        raise changed(path)
    rows: list[Row] = []
    for _, found in form.records(io.BytesIO(content)):
        if found is None:
            continue
        number = first + len(rows)
        try:
            row = columns.row(number, form.record(found))
        except ValueError as error:
            row = Row(number, error=str(error))
        rows.append(fit(row, types))
    return rows


def _bytes(path: Path, start: int, length: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(length)


def _form(path: Path) -> Form:
    ending = path.suffix.lower()
    if ending not in (".csv", ".tsv"):
        return Form()
    delimiter = "," if ending == ".csv" else "\t"
    with path.open("rb") as file:
        found = next((found for _, found in Form(delimiter).records(file) if found), None)
    if not isinstance(found, list):
        raise InvalidArgument(f"{path} is empty: its first row must hold the names of the columns.")
    try:
        names = [name.encode("latin-1").decode("utf-8-sig") for name in found]
    except UnicodeDecodeError:
        raise InvalidArgument(f"the header of {path} is not UTF-8. Convert the file, for example with iconv.") from None
    return Form(delimiter, tuple(names))


def _skip_header(file: IO[bytes], form: Form) -> int:
    """Where the rows begin."""
    if form.delimiter is None:
        return len(BOM) if file.read(len(BOM)) == BOM else 0
    start = 0
    for length, found in form.records(file):
        start += length
        if found:
            break
    return start


def _first_records(paths: Sequence[Path], form: Form) -> list[Any]:
    records = []
    for path in paths:
        with path.open("rb") as file:
            start = _skip_header(file, form)
            file.seek(start)
            for _, found in islice(form.records(file), SAMPLE):
                try:
                    records.append(form.record(found) if found is not None else None)
                except ValueError:
                    continue
        if len(records) >= SAMPLE:
            break
    return [record for record in records if record is not None]


def _from_json(line: bytes) -> Any:
    try:
        found = json.loads(line)
    except UnicodeDecodeError as error:
        raise ValueError(f"the line is not UTF-8: byte {error.object[error.start]:#04x} cannot be read") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the line is not JSON: {error}") from None
    return found
