"""What is read from an input: rows, each with what shall be explained and what goes along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from attnflow.errors import InvalidArgument, suggest

USUAL = ("text", "sentence", "content", "document", "prompt", "messages", "image")  # looked for in this order
PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
IMAGE = "image"  # in a column's name: its strings are names of files
TEXTS = (".txt", ".text", ".md")


@dataclass(frozen=True)
class Row:
    """One row of the input, by its number from 0. `error` says why it cannot be read, where it cannot."""

    number: int
    value: Any = None
    id: str | None = None
    kept: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True)
class Picture:
    """An image as a file's content or its place, opened by whoever explains it."""

    content: bytes | Path


@dataclass(frozen=True)
class Columns:
    """Which columns of the input are read: what is explained, the second text of a pair, a name, and what is kept."""

    text: str | None = None
    second: str | None = None
    id: str | None = None
    keep: tuple[str, ...] = ()
    folder: Path | None = None  # where names of images start from

    def among(self, names: Sequence[str]) -> Columns:
        """The same with the column that is explained found, if none was named; all must be there."""
        text = self.text or _usual(names)
        if text is None:
            raise InvalidArgument(
                f"which column shall be explained? There are: {', '.join(names)}. Name one with column=…."
            )
        for name in (text, self.second, self.id, *self.keep):
            if name is not None and name not in names:
                raise InvalidArgument(f"the input has no column {name!r}." + suggest(name, names))
        return replace(self, text=text)

    @property
    def wanted(self) -> list[str]:
        """All that has to be read, each once."""
        named = (self.text, self.second, self.id, *self.keep)
        return list(dict.fromkeys(name for name in named if name is not None))

    def described(self) -> dict[str, Any]:
        """What is read, as JSON."""
        return {"column": self.text, "second": self.second, "id": self.id, "keep": list(self.keep)}

    def row(self, number: int, record: Any) -> Row:
        """A record (a mapping, or the value alone) as a row; what it lacks becomes its error."""
        if not isinstance(record, Mapping):
            if self.id or self.keep or self.second:
                return Row(number, error=f"the row has no columns: it is {_shown(record)}")
            return _checked(Row(number, record))
        kept = {name: record.get(name) for name in self.keep}
        name = None if self.id is None or record.get(self.id) is None else str(record[self.id])
        value = record.get(self.text) if self.text is not None else None
        if isinstance(value, str) and IMAGE in str(self.text).lower() and value.lower().endswith(PICTURES):
            value = Path(value) if self.folder is None else self.folder / value
        if self.second is not None:
            value = (value, record.get(self.second))
        return _checked(Row(number, value, name, kept))


def _usual(names: Sequence[str]) -> str | None:
    return next((name for name in USUAL if name in names), names[0] if len(names) == 1 else None)


def _checked(row: Row) -> Row:
    """The row with a value that can be explained, or with an error in its place."""
    value = row.value
    for part in value if isinstance(value, tuple) else (value,):
        if part is None:
            return replace(row, value=None, error="there is nothing to explain: the value is missing")
        if isinstance(part, bool | int | float):
            return replace(row, value=None, error=f"a text was expected, got the number {part!r}")
    if isinstance(value, Mapping) and isinstance(
        value.get("bytes"), bytes
    ):  # an image of a datasets.Dataset, undecoded
        return replace(row, value=Picture(value["bytes"]))
    if isinstance(value, Mapping) and isinstance(value.get("path"), str):
        return replace(row, value=Picture(Path(value["path"])))
    if isinstance(value, bytes):
        return replace(row, value=Picture(value))
    if isinstance(value, Path):
        return _of_file(row, value)
    return row


def _of_file(row: Row, path: Path) -> Row:
    if path.suffix.lower() in PICTURES:
        return replace(row, value=Picture(path))
    try:
        return replace(row, value=path.read_bytes().decode("utf-8-sig").strip("\r\n"))
    except OSError as error:
        return replace(row, value=None, error=f"could not read {path.name}: {error.strerror or error}")
    except UnicodeDecodeError as error:
        return replace(row, value=None, error=f"{path.name} is not UTF-8: byte {error.start} cannot be read")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:57]}…"


def kind_of(value: Any) -> str:
    """Values of one kind are captured together."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, tuple):
        return "pair"
    if isinstance(value, Picture):
        return "picture"
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        return "words"
    if isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
        return "chat"
    return "ids" if isinstance(value, list) else type(value).__name__


def length_of(value: Any) -> int:
    """About how many tokens there are, to put alike with alike."""
    if isinstance(value, str):
        return len(value) // 4 + 2
    if isinstance(value, tuple):
        return sum(length_of(part) for part in value)
    if isinstance(value, list):
        return sum(length_of(p["content"]) if isinstance(p, Mapping) and "content" in p else 2 for p in value)
    return 256  # an image's patches
