"""Examples of the task, and the readers of every file format they come in."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from random import Random

csv.field_size_limit(10_000_000)


class _Plain(csv.excel_tab):
    quoting = csv.QUOTE_NONE


NUMBER_OF_TAG = {"NN": False, "NNS": True}


class UnreadableExamples(ValueError):
    """A file that is none of the formats known here."""


@dataclass(frozen=True, slots=True)
class Example:
    """The words before a verb, and the number of that verb.

    `subject` is the index of the subject's head noun, -1 where unknown; `attractors` counts the nouns of the other
    number between it and the verb, None where unknown; `tags` are Penn tags, empty where unknown.
    """

    words: tuple[str, ...]
    plural: bool
    subject: int = -1
    attractors: int | None = None
    tags: tuple[str, ...] = ()
    sentence: str = ""
    licence: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if not self.words:
            raise ValueError("an example needs at least one word before the verb")
        if not -1 <= self.subject < len(self.words):
            raise ValueError(f"the subject's index {self.subject} lies outside the {len(self.words)} words")
        if self.tags and len(self.tags) != len(self.words):
            raise ValueError(f"{len(self.tags)} tags for {len(self.words)} words")


def shared_folder() -> Path | None:
    """Where the shared data lies (ATTNFLOW_SHARED, else beside the repository), or None where there is none."""
    named = os.environ.get("ATTNFLOW_SHARED")
    folder = Path(named) if named else Path(__file__).resolve().parents[3] / "shared"
    return folder / "data" if (folder / "data").is_dir() else None


def open_text(path: str | Path) -> io.TextIOWrapper:
    """Open a UTF-8 text, compressed by gzip or not; its first bytes tell, not its name."""
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    raw = gzip.open(path, "rb") if packed else open(path, "rb")  # noqa: SIM115 (the wrapper closes it)
    return io.TextIOWrapper(raw, encoding="utf-8", newline="")


def read(path: str | Path, *, sample: int | None = None) -> list[Example]:
    """The examples of a file: the shared TSV, Linzen's `agr_50_mostcommon_10K.tsv` or `numpred.*`.

    All of them, or a `sample` of so many, drawn evenly and the same each time; the rest is never held in memory.
    """
    rows = stream(path)
    if sample is None:
        return list(rows)
    kept = list(islice(rows, sample))
    draw = Random(0).randrange
    for seen, row in enumerate(rows, start=sample + 1):  # Vitter's (1985) algorithm R
        if (place := draw(seen)) < sample:
            kept[place] = row
    return kept


def stream(path: str | Path) -> Iterator[Example]:
    """The examples of a file one after the other, in the format that its first line shows."""
    with open_text(path) as file:
        first = file.readline()
        header = first.rstrip("\r\n").split("\t")
        if {"sentence", "verb_index", "number"} <= set(header):
            yield from _shared_rows(header, file)
        elif {"sentence", "verb_index", "verb_pos"} <= set(header):
            yield from _dependency_rows(header, file)
        elif header[0] in ("VBZ", "VBP") and len(header) >= 2:
            yield from _numpred_rows(chain([first], file), Path(path).name)
        else:
            raise UnreadableExamples(
                f"the first line is {' '.join(header)[:80]!r}; wanted a header with sentence, verb_index and number "
                "(the shared format) or verb_pos (agr_50_mostcommon_10K.tsv), or a line that starts with VBZ or VBP (numpred.*)."
            )


def _rows(header: list[str], lines: Iterable[str], *, quoted: bool) -> Iterator[dict[str, str]]:
    for number, fields in enumerate(csv.reader(lines, "excel-tab" if quoted else _Plain), start=2):
        if not fields:
            continue
        if len(fields) != len(header):
            raise UnreadableExamples(f"line {number} has {len(fields)} fields, the header has {len(header)}")
        yield dict(zip(header, fields, strict=True))


def _shared_rows(header: list[str], lines: Iterable[str]) -> Iterator[Example]:
    """Indices from 0; `number` is sing or plur."""
    for row in _rows(header, lines, quoted=False):
        verb = int(row["verb_index"])
        if row["number"] not in ("sing", "plur"):
            raise UnreadableExamples(f"number is {row['number']!r}; wanted sing or plur")
        attractors = row.get("n_attractors", "")
        if verb > 0:
            yield Example(
                words=tuple(row["sentence"].split(" ")[:verb]),
                plural=row["number"] == "plur",
                subject=int(row.get("subj_index") or -1),
                attractors=int(attractors) if attractors else None,
                sentence=row["sentence"],
                licence=row.get("licence", ""),
                source=row.get("source", ""),
            )


def _dependency_rows(header: list[str], lines: Iterable[str]) -> Iterator[Example]:
    """Linzen's table of dependencies: indices from 1, rare words already replaced by their tags.

    The table was written by Python's csv module with its default quoting, so quotes are unpacked here.
    """
    for row in _rows(header, lines, quoted=True):
        verb = int(row["verb_index"]) - 1
        words = tuple(row["sentence"].split())
        if verb > 0:
            attractors = row.get("n_diff_intervening", "")
            yield Example(
                words=words[:verb],
                plural=row["verb_pos"] == "VBP",
                subject=int(row.get("subj_index") or 0) - 1,
                attractors=int(attractors) if attractors else None,
                tags=tuple(row.get("pos_sentence", "").split()[:verb]),
                sentence=" ".join(words),
                source="agr_50_mostcommon_10K",
            )


def _numpred_rows(lines: Iterable[str], name: str) -> Iterator[Example]:
    """Linzen's simple format: the verb's tag, a tab, the words before it; `numpred.test.2` has two attractors each."""
    suffix = re.search(r"\.(\d+)(?:\.gz)?$", name)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        tag, _, prefix = line.partition("\t")
        if tag not in ("VBZ", "VBP"):
            raise UnreadableExamples(f"line {number} starts with {tag!r}; wanted VBZ or VBP")
        if words := tuple(prefix.split()):
            yield Example(words, tag == "VBP", attractors=int(suffix[1]) if suffix else None, source="numpred")


def count_attractors(tags: list[str] | tuple[str, ...], subject: int, *, plural: bool) -> int:
    """Nouns of the other number after the subject: Linzen et al.'s n_diff_intervening."""
    return sum(NUMBER_OF_TAG.get(tag, plural) != plural for tag in tags[subject + 1 :])
