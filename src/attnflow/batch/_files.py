"""Files of rows (JSONL, CSV, TSV, Parquet) as sources: gone through to find the parts, then read from where they lie."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from attnflow.batch import _lines, _parquet
from attnflow.batch._part import ROWS, Part
from attnflow.batch._rows import Columns
from attnflow.errors import InvalidArgument

FORMS: dict[str, Any] = {
    ".jsonl": _lines,
    ".ndjson": _lines,
    ".csv": _lines,
    ".tsv": _lines,
    ".parquet": _parquet,
    ".pq": _parquet,
}


class Files:
    """One or several files of the same form. Several are read one after the other; no part spans two."""

    most = ROWS

    def __init__(self, paths: Sequence[Path], columns: Columns) -> None:
        self.paths = list(paths)
        self.form = _form_of(self.paths)
        self.types: Mapping[str, Any]
        self.columns, self.types = self.form.opened(self.paths, columns)
        self.digest, self.total = self._surveyed()

    def described(self) -> dict[str, Any]:
        """By content, so that a copy is the same input and an edited file is another."""
        return {"kind": self.form.NAME, "rows": self.total, "content": self.digest, **self.columns.described()}

    def parts(self, size: int) -> Iterator[Part]:
        """In the order of the files, and of the rows in them."""
        first = number = 0
        for path in self.paths:
            columns = replace(self.columns, folder=path.parent)
            for piece in self.form.pieces(path, columns, size, self.types):
                yield Part(number, first, piece.rows, piece.digest, partial(piece.read, first))
                number, first = number + 1, first + piece.rows

    def _surveyed(self) -> tuple[str, int]:
        """A digest of everything, and how many rows there are."""
        content, total = hashlib.blake2b(digest_size=16), 0
        for path in self.paths:
            for piece in self.form.pieces(path, self.columns, ROWS, self.types):
                content.update(piece.digest.encode())
                total += piece.rows
        return content.hexdigest(), total


def _form_of(paths: Sequence[Path]) -> Any:
    """The module that reads files with these endings."""
    endings = {path.suffix.lower() for path in paths}
    if len(endings) > 1:
        raise InvalidArgument(f"files of different forms ({', '.join(sorted(endings))}) are no one input.")
    [ending] = endings
    if ending not in FORMS:
        what = f"the ending {ending}" if ending else "no ending"
        raise InvalidArgument(
            f"{paths[0].name} has {what}, which is not read as rows. Known: {', '.join(FORMS)}; or a folder of texts or images."
        )
    return FORMS[ending]
