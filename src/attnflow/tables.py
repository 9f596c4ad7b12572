"""Reports as files: tables of cells in columns, in Markdown and as CSV; JSON without NaN; the form that a file's ending names."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attnflow.artifacts import write_atomically
from attnflow.errors import InvalidArgument, suggest

Grid = Sequence[Sequence[str]]  # header first


def aligned(table: Grid) -> str:
    """A table in columns."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
    )


def piped(table: Grid) -> str:
    """A table in Markdown."""
    rows = ["| " + " | ".join(row) + " |" for row in table]
    return "\n".join([rows[0], "|" + "---|" * len(table[0]), *rows[1:]])


def comma_separated(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Rows as CSV, header first."""
    file = io.StringIO()
    writer = csv.DictWriter(file, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def finite(value: Any) -> Any:
    """As JSON can hold it: what is not a number is null."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def save_as(path: str | os.PathLike[str], forms: Mapping[str, Callable[[], str]]) -> Path:
    """Write the form that the file's ending names; `forms` are by name, "html" for .html."""
    chosen = forms.get(Path(path).suffix.lower().removeprefix("."))
    if chosen is None:
        endings = [f".{name}" for name in forms]
        raise InvalidArgument(f"cannot tell the form of {path}." + suggest(Path(path).suffix.lower(), endings))
    return write_atomically(path, lambda file: file.write(chosen().encode()))
