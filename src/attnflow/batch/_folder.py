"""A folder as a source: of texts or of images, a file a row, or of files of rows."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from attnflow.batch._files import FORMS, Files
from attnflow.batch._part import PICTURE_ROWS, ROWS, Part, Source, changed
from attnflow.batch._rows import PICTURES, TEXTS, Columns, Row
from attnflow.errors import InvalidArgument


def folder(path: Path, columns: Columns) -> Source:
    """What most of its files are says what it is a folder of; hidden files and those with other endings are left alone."""
    names = sorted(_names(path))
    kinds = Counter(kind for name in names if (kind := _kind(name)))
    if not kinds:
        raise InvalidArgument(
            f"the folder {path} holds nothing that is read: no texts ({', '.join(TEXTS)}), images ({', '.join(PICTURES)}) or rows ({', '.join(FORMS)})."
        )
    kind = kinds.most_common(1)[0][0]
    chosen = [name for name in names if _kind(name) == kind]
    if kind not in ("texts", "images"):
        return Files([path / name for name in chosen], columns)
    if columns.wanted:
        raise InvalidArgument(f"{path} is a folder of {kind}, which have no columns: their names are their ids.")
    return Folder(path, kind, chosen)


@dataclass(frozen=True)
class Folder:
    """A file a row, in the order of their names."""

    path: Path
    kind: str
    names: list[str]
    types: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "types", {})

    @property
    def total(self) -> int:
        """As many rows as files."""
        return len(self.names)

    @property
    def most(self) -> int:
        """Images are dear, so that fewer make a part."""
        return ROWS if self.kind == "texts" else PICTURE_ROWS

    def described(self) -> dict[str, Any]:
        """By names, sizes and times, since reading all images only to see that they are the same may take hours."""
        content = hashlib.blake2b(digest_size=16)
        for part in self.parts(self.most):
            content.update(part.digest.encode())
        return {"kind": f"a folder of {self.kind}", "rows": self.total, "content": content.hexdigest()}

    def parts(self, size: int) -> Iterator[Part]:
        """In the order of the names."""
        for number, first in enumerate(range(0, len(self.names), size)):
            names = self.names[first : first + size]
            digest = _digest(self.path, names)
            yield Part(number, first, len(names), digest, partial(_read, self.path, names, digest, first))


def _read(path: Path, names: list[str], digest: str, first: int) -> list[Row]:
    if _digest(path, names) != digest:
        raise changed(path)
    rows = [Columns().row(first + place, path / name) for place, name in enumerate(names)]
    return [Row(row.number, row.value, name, {}, row.error) for row, name in zip(rows, names, strict=True)]


def _digest(path: Path, names: list[str]) -> str:
    content = hashlib.blake2b(digest_size=16)
    for name in names:
        try:
            found = (path / name).stat()
            content.update(f"{name}\0{found.st_size}\0{found.st_mtime_ns}\n".encode())
        except OSError:  # gone, or a link that leads nowhere: an error of this row
            content.update(f"{name}\0\n".encode())
    return content.hexdigest()


def _names(path: Path) -> Iterator[str]:
    for place, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith("."):
                yield os.path.relpath(os.path.join(place, name), path)


def _kind(name: str) -> str | None:
    ending = os.path.splitext(name)[1].lower()
    if ending in TEXTS:
        return "texts"
    if ending in PICTURES:
        return "images"
    return f"{ending} files" if ending in FORMS else None
