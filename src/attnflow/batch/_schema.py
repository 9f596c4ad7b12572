"""The rows that are written: their columns, and a part of them as a Parquet file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from attnflow import __version__
from attnflow.artifacts import jsonable
from attnflow.attribution import Attribution
from attnflow.batch._rows import Row
from attnflow.batch._types import arrow
from attnflow.errors import InvalidArgument

SCHEMA = pa.schema(
    [
        pa.field("input", pa.int64(), nullable=False),
        pa.field("id", pa.string()),
        pa.field("method", pa.string(), nullable=False),
        pa.field("level", pa.int32()),
        pa.field("level_name", pa.string()),
        pa.field("query", pa.int32()),
        pa.field("query_token", pa.string()),
        pa.field("query_is", pa.string()),
        pa.field("tokens", pa.list_(pa.string())),
        pa.field("special", pa.list_(pa.bool_())),
        pa.field("scores", pa.list_(pa.float32())),
        pa.field("grid", pa.list_(pa.int32())),
        pa.field("saturation_query", pa.float64()),
        pa.field("saturation_input", pa.float64()),
        pa.field("saturation_either", pa.float64()),
        pa.field("options", pa.string()),
        pa.field("model", pa.string(), nullable=False),
        pa.field("version", pa.string(), nullable=False),
        pa.field("error", pa.string()),
    ]
)
_SAID_ELSEWHERE = (
    "query",
    "query_is",
    "predicted",
    "model",
)  # of an attribution's options: columns, or of one row alone


def schema(types: Mapping[str, Any]) -> pa.Schema:
    """With the columns that are kept from the input, after attnflow's own."""
    for name in types:
        if name in SCHEMA.names:
            raise InvalidArgument(
                f"the input's column {name!r} cannot be kept, since attnflow writes a column of this name. Rename it, or leave it "
                "out and join by the row number in column 'input'."
            )
    return pa.schema([*SCHEMA, *(pa.field(name, arrow(kind)) for name, kind in types.items())])


class Table:
    """Rows of the output that are gathered column by column."""

    def __init__(self, model: str, types: Mapping[str, Any]) -> None:
        self.model = model
        self.types = types
        self.errors = 0
        self._columns: dict[str, list[Any]] = {name: [] for name in schema(types).names}

    def __len__(self) -> int:
        return len(self._columns["input"])

    def add(self, row: Row, found: Attribution) -> None:
        """One row for each level and query."""
        said = {name: value for name, value in found.options.items() if name not in _SAID_ELSEWHERE}
        labels = list(found.tokens.labels)
        same = {
            "tokens": labels,
            "special": found.tokens.special.tolist(),
            "grid": next(([g.rows, g.columns, g.offset] for g in found.tokens.grids), None),
            "options": json.dumps(jsonable(said), ensure_ascii=False, sort_keys=True),
            "method": found.method,
        }
        for i, level in enumerate(found.levels):
            shares = {} if found.saturation is None else {
                f"saturation_{name}": share[i] for name, share in vars(found.saturation).items()
            }  # fmt: skip
            for j, query in enumerate(found.queries):
                own = query == found.options.get("query")
                self._put(
                    row,
                    level=level,
                    level_name=found.level_names[i],
                    query=query,
                    query_token=labels[query],
                    query_is=found.options.get("query_is") if own else None,
                    scores=found.scores[i, j],
                    **same,
                    **shares,
                )

    def fail(self, row: Row, method: str, error: str) -> None:
        """One row that says why there is no other."""
        self.errors += 1
        self._put(row, method=method, error=error)

    def _put(self, row: Row, **values: Any) -> None:
        fixed = {"input": row.number, "id": row.id, "model": self.model, "version": __version__}
        for name, column in self._columns.items():
            column.append(row.kept.get(name) if name in self.types else values.get(name, fixed.get(name)))

    def parquet(self) -> bytes:
        """The rows as the content of a Parquet file."""
        shape = schema(self.types)
        table = pa.table([pa.array(self._columns[one.name], one.type) for one in shape], schema=shape)
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        content: bytes = sink.getvalue().to_pybytes()
        return content
