"""Types of the columns that are kept from the input, so that all parts of the output have the same."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from attnflow.batch._rows import Row

_FITS: dict[str, tuple[type, ...]] = {"bool": (bool,), "int64": (int,), "double": (int, float), "string": (str,)}


def inferred(values: Iterable[Any]) -> str:
    """The narrowest of bool, int64, double and string that these values fit; what is nested is kept as JSON, in a string."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "bool"
    if kinds == {int}:
        return "int64"
    return "double" if kinds and kinds <= {int, float} else "string"


def fit(row: Row, types: Mapping[str, Any]) -> Row:
    """The row with kept values as their columns want them; one that does not fit makes the row an error."""
    kept: dict[str, Any] = {}
    for name, kind in types.items():
        value = row.kept.get(name)
        if kind == "string" and value is not None and not isinstance(value, str):
            value = json.dumps(value, ensure_ascii=False, default=str)
        if value is not None and kind in _FITS and not _is(value, kind):
            return replace(
                row,
                value=None,
                kept={},
                error=f"column {name!r} holds {kind} in the first rows, and here {value!r}",
            )
        kept[name] = value
    return replace(row, kept=kept)


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "bool"
    return isinstance(value, _FITS[kind]) and not (isinstance(value, int) and value.bit_length() > 63)


def arrow(kind: Any) -> pa.DataType:
    """A type by its name, or as Arrow has it."""
    return kind if isinstance(kind, pa.DataType) else pa.type_for_alias(kind)
