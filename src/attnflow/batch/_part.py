"""What an input is made of: parts, each a run of rows that is explained and written together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from attnflow.batch._rows import Row
from attnflow.errors import InvalidArtifact

ROWS, FEWEST, SHARE = 4096, 128, 64  # a part has so many rows at most and at least, and this share of the input between
PICTURE_ROWS = 256  # at most, of images


@dataclass(frozen=True)
class Part:
    """So many rows from number `first` on. `read` can be sent elsewhere and called there; `digest` tells if they changed."""

    number: int
    first: int
    rows: int
    digest: str
    read: Callable[[], list[Row]]


@dataclass(frozen=True)
class Piece:
    """The same within one file, whose place in the whole input is not known yet: `read` is told the number of its first row."""

    rows: int
    digest: str
    read: Callable[[int], list[Row]]


@dataclass(frozen=True)
class Held:
    """Rows that travel with their part, since only the process that has them can read them."""

    rows: list[Row] = field(default_factory=list)

    def __call__(self) -> list[Row]:
        return self.rows


class Source(Protocol):
    """An input. `total` is None where nobody can know it yet; `types` are of the columns that are kept, as Arrow has them."""

    @property
    def total(self) -> int | None:
        """How many rows there are."""

    @property
    def most(self) -> int:
        """How many rows a part has at most."""

    @property
    def types(self) -> Mapping[str, Any]:
        """Of the columns that are kept."""

    def described(self) -> dict[str, Any]:
        """What it is, as JSON: whatever differs when the input is another."""

    def parts(self, size: int) -> Iterator[Part]:
        """All of it, in order."""


def rows_per_part(source: Source) -> int:
    """Of a small input many small parts, so that all workers have some; of a large one large parts, so that files are few."""
    if source.total is None:
        return min(1024, source.most)
    return min(source.most, max(FEWEST, -(-source.total // SHARE)))


def changed(path: Path) -> InvalidArtifact:
    """The file is no longer what it was when the run began."""
    return InvalidArtifact(f"{path} was changed while it was read. Start again, with another output folder.")
