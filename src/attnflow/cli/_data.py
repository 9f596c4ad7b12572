"""DATA: a file of texts, one a line, or a table with a column of texts."""

from __future__ import annotations

import csv
import io
import json
from typing import NamedTuple

from attnflow.cli._text import read_text
from attnflow.errors import InvalidArgument

TEXTS = ("text", "sentence", "input", "prompt")
LABELS = ("label", "target", "class")


class Data(NamedTuple):
    """Texts, and the label of each, where the file has them."""

    texts: list[str]
    labels: list[int | str] | None


def read_data(path: str, column: str | None = None, *, limit: int | None = None, seed: int = 0) -> Data:
    """.csv, .tsv and .jsonl by their columns ("text" or "sentence", "label" or "target"); anything else line by line.

    Of more than `limit` texts, so many are drawn.
    """
    content = read_text(path if path == "-" else _existing(path))
    ending = path.lower().rpartition(".")[2]
    if ending == "jsonl":
        found = _columns(_json_lines(content, path), path, column)
    elif ending in ("csv", "tsv"):
        rows = csv.DictReader(io.StringIO(content), delimiter="\t" if ending == "tsv" else ",")
        found = _columns(list(rows), path, column)
    else:
        found = Data([line.strip() for line in content.splitlines() if line.strip()], None)
    return _drawn(found, limit, seed)


def _existing(path: str) -> str:
    import os

    if not os.path.isfile(path):
        raise InvalidArgument(f"there is no file {path}. DATA is a file of texts: one a line, or .csv, .tsv, .jsonl.")
    return path


def _json_lines(content: str, path: str) -> list[dict[str, object]]:
    rows = []
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise InvalidArgument(f"line {number} of {path} is no JSON: {error}.") from None
        if not isinstance(row, dict):
            raise InvalidArgument(
                f"line {number} of {path} must be a JSON object with a text in it, got {line[:60]!r}."
            )
        rows.append(row)
    return rows


def _columns(rows: list[dict[str, object]], path: str, column: str | None) -> Data:
    if not rows:
        raise InvalidArgument(f"{path} holds no rows.")
    names = [name for name in rows[0] if name is not None]
    chosen = column or next((name for name in TEXTS if name in names), None)
    if chosen not in names:
        raise InvalidArgument(
            f"{path} has no column {column or ' or '.join(map(repr, TEXTS))}; it has {', '.join(map(repr, names))}. Name it: --column."
        )
    label = next((name for name in LABELS if name in names), None)
    kept = [row for row in rows if str(row[chosen] or "").strip()]
    labels = None if label is None else [_label(row[label]) for row in kept]
    return Data([str(row[chosen]) for row in kept], labels)


def _label(value: object) -> int | str:
    text = str(value).strip()
    return int(text) if text.isdigit() else text


def _drawn(data: Data, limit: int | None, seed: int) -> Data:
    if limit is None or len(data.texts) <= limit:
        return data
    from random import Random

    chosen = sorted(Random(seed).sample(range(len(data.texts)), limit))
    labels = None if data.labels is None else [data.labels[i] for i in chosen]
    return Data([data.texts[i] for i in chosen], labels)
