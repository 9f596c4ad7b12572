"""Whatever can be iterated over as a source: a list, a generator, a datasets.Dataset, a table of any data frame library."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from attnflow.batch._part import ROWS, Held, Part
from attnflow.batch._rows import Columns
from attnflow.batch._types import fit, inferred
from attnflow.errors import InvalidArgument

SAMPLE = 100  # rows from which columns and their types are inferred


class Stream:
    """Rows that only this process has. Nothing is known of them before they come, so each part is compared as it comes."""

    most = ROWS

    def __init__(self, given: Any, columns: Columns) -> None:
        self.total: int | None = len(given) if hasattr(given, "__len__") else None
        rows = iter(_records(given))
        first = list(islice(rows, SAMPLE))
        self._rows = chain(first, rows)
        self.types: Mapping[str, Any] = {}
        names = list(dict.fromkeys(str(name) for one in first if isinstance(one, Mapping) for name in one))
        self.columns = columns.among(names) if names else columns
        if columns.wanted and not names:
            raise InvalidArgument(f"the rows have no columns, so {', '.join(columns.wanted)} cannot be read.")
        if names:
            self.types = {name: _type(given, name, first) for name in self.columns.keep}

    def described(self) -> dict[str, Any]:
        """What is known beforehand."""
        return {"kind": "an iterable", "rows": self.total, **self.columns.described()}

    def parts(self, size: int) -> Iterator[Part]:
        """In their order; can be asked for once."""
        number = first = 0
        while records := list(islice(self._rows, size)):
            rows = [fit(self.columns.row(first + place, one), self.types) for place, one in enumerate(records)]
            yield Part(number, first, len(rows), _digest(records), Held(rows))
            number, first = number + 1, first + len(rows)


def _records(given: Any) -> Iterable[Any]:
    """Row by row. Data frames would give their columns, but know how to hand themselves over as Arrow."""
    if hasattr(given, "__arrow_c_stream__") and not hasattr(given, "features"):
        batches = pa.RecordBatchReader.from_stream(given)
        return chain.from_iterable(batch.to_pylist() for batch in batches)
    if isinstance(given, Mapping):
        raise InvalidArgument("the input is one mapping. Give a list of rows, each a mapping from column to value.")
    rows: Iterable[Any] = given
    return rows


def _type(given: Any, name: str, first: list[Any]) -> Any:
    """As the data set says, or inferred from the first rows."""
    schema = getattr(getattr(given, "features", None), "arrow_schema", None)
    if schema is not None and name in schema.names:
        return schema.field(name).type
    return inferred([one.get(name) for one in first if isinstance(one, Mapping)])


def _digest(records: list[Any]) -> str:
    content = hashlib.blake2b(digest_size=16)
    for record in records:
        content.update(json.dumps(record, sort_keys=True, default=_as_text).encode())
    return content.hexdigest()


def _as_text(value: Any) -> str:
    """What JSON does not know: arrays and images by their bytes, anything else by what it says of itself."""
    data = value if isinstance(value, bytes) else value.tobytes() if hasattr(value, "tobytes") else None
    if data is None:
        return str(value)
    return f"{getattr(value, 'shape', getattr(value, 'size', ''))} {hashlib.blake2b(data, digest_size=16).hexdigest()}"
