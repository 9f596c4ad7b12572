"""Work: what one worker does, wherever it runs. It loads the model once and explains part after part."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from attnflow import capture
from attnflow._explain import attributed
from attnflow.batch._job import Job, name_of
from attnflow.batch._model import described, loaded
from attnflow.batch._part import Part
from attnflow.batch._rows import Picture, Row, kind_of, length_of
from attnflow.batch._schema import Table
from attnflow.errors import AttnflowError

ROOM = 1 << 21  # rows × tokens² of what runs together: 8 MB a level


@dataclass(frozen=True)
class Finished:
    """A part that was explained: how many rows of the input it had, and of the output it has, as the bytes of its file."""

    number: int
    digest: str
    inputs: int
    rows: int
    errors: int
    content: bytes


class Work:
    """A loaded model and what is asked of it. `types` are those of the kept columns."""

    def __init__(self, job: Job, types: Mapping[str, Any], device: str | None = None) -> None:
        self.job = job
        self.types = types
        self.model = described(job.model)["model"]
        self.loaded = loaded(job.model, job.tokenizer, job.processor, job.device or device, job.dtype)

    def __call__(
        self, part: Part, *, alone: Callable[[int], None] | None = None, deadly: Collection[int] = ()
    ) -> Finished:
        """Explain a part. With `alone`, row by row, each announced by its number; `deadly` rows are not tried again."""
        rows = part.read()
        found: dict[int, list[Any]] = {}
        for group in groups([row for row in rows if row.number not in deadly], 1 if alone else self.job.batch_size):
            if alone:
                alone(group[0].number)
            found.update(self._explained(group))
        table = Table(self.model, self.types)
        for row in rows:
            for method, one in zip(
                self.job.methods, found.get(row.number, [DEADLY] * len(self.job.methods)), strict=True
            ):
                if isinstance(one, str):
                    table.fail(row, name_of(method), one)
                else:
                    table.add(row, one)
        return Finished(part.number, part.digest, len(rows), len(table), table.errors, table.parquet())

    def _explained(self, group: Sequence[Row]) -> Iterator[tuple[int, list[Any]]]:
        """Each row's answers, one a method: an attribution, or what went wrong. A group that fails is halved until one row is left."""
        try:
            graphs = self._graphs(group)
        except Exception as error:  # whatever a model, tokenizer or image makes of a bad row is that row's error
            if len(group) == 1:
                yield group[0].number, [_said(error)] * len(self.job.methods)
                return
            half = len(group) // 2
            yield from self._explained(group[:half])
            yield from self._explained(group[half:])
            return
        for row, graph in zip(group, graphs, strict=True):
            yield row.number, [self._answer(graph, place) for place in range(len(self.job.methods))]

    def _graphs(self, group: Sequence[Row]) -> list[Any]:
        if group[0].error is not None:
            raise _Unread(group[0].error)
        values = [_opened(row.value) for row in group]
        words = kind_of(group[0].value) == "words"
        found = capture.graph(
            *self.loaded[:1], values, *self.loaded[1:], words=words, batch_size=len(group), **self.job.capture
        )
        return found if isinstance(found, list) else [found]

    def _answer(self, graph: Any, place: int) -> Any:
        job = self.job
        own = {"threads": threads(), "progress": False} if job.methods[place] == "flow" else {}
        try:
            found = attributed(graph, job.methods[place], job.query, job.level, {**job.apart[place], **own})
            return found.words() if job.join_words else found
        except Exception as error:
            return _said(error)


DEADLY = "the worker died of this row: it may need more memory than there is"


class _Unread(AttnflowError):
    """A row that could not be read."""


def groups(rows: Sequence[Row], most: int) -> Iterator[list[Row]]:
    """Rows of one kind and alike in length, so that little is padded. Which go together depends on the rows alone."""

    def key(row: Row) -> tuple[bool, str, int]:
        return row.error is not None, kind_of(row.value), length_of(row.value)

    group: list[Row] = []
    for row in sorted(rows, key=key):
        longest = length_of(row.value)  # sorted, so the last one is
        alike = group and key(group[0])[:2] == key(row)[:2] and row.error is None
        if group and (not alike or len(group) == most or (len(group) + 1) * longest**2 > ROOM):
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def threads() -> int:
    """As many as this worker was given."""
    return int(os.environ.get("OMP_NUM_THREADS") or 1)


def _opened(value: Any) -> Any:
    """A picture as an image; anything else as it is."""
    if not isinstance(value, Picture):
        return value
    from PIL import Image

    image = Image.open(BytesIO(value.content if isinstance(value.content, bytes) else value.content.read_bytes()))
    image.load()  # what is damaged shows now
    return image


def _said(error: Exception) -> str:
    """An error on one line, with its type where that says more than the message."""
    text = " ".join(str(error).split())
    if isinstance(error, AttnflowError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
