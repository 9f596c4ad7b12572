"""Report: what `compare` found, to read (text, Markdown) and to go on with (CSV, JSON)."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from attnflow.arrays import frozen
from attnflow.errors import InvalidArgument, suggest
from attnflow.evaluate._rows import Floats
from attnflow.tables import aligned, comma_separated, finite, piped, save_as


@dataclass(frozen=True)
class Cell:
    """One method against one reference at one level: the mean over `n` sentences and its interval."""

    reference: str
    method: str
    level: str
    n: int
    undefined: int
    mean: float
    sd: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.sd:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class Difference:
    """Two methods on the same sentences: mean of first − second, its interval, and whether it is more than chance.

    `p_corrected` is Holm's, over all differences of the report. `detectable` is the mean difference that the first step
    of that correction would have found with a power of 0.8.
    """

    reference: str
    first: str
    second: str
    level: str
    n: int
    difference: float
    sd: float
    low: float
    high: float
    p: float
    p_corrected: float
    alpha: float
    detectable: float

    @property
    def effect(self) -> float:
        """The mean difference in standard deviations of the differences (Cohen's d_z); 0 where they are all equal to 0."""
        return self.difference / self.sd if self.sd > 0 else (0.0 if self.difference == 0 else math.nan)

    @property
    def verdict(self) -> str:
        """Which method is higher, if that was shown."""
        if not self.p_corrected <= self.alpha:
            return "no difference shown"
        return f"{self.first if self.difference > 0 else self.second} higher"


@dataclass(frozen=True, eq=False)
class Report:
    """Correlations per reference, method and level, and the tests between methods.

    `values[reference, method]` are the correlations themselves [sentence, level], NaN where undefined.
    """

    cells: tuple[Cell, ...]
    differences: tuple[Difference, ...]
    values: Mapping[tuple[str, str], Floats]
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", {key: frozen(table) for key, table in self.values.items()})

    def __repr__(self) -> str:
        return f"Report({len(self.methods)} methods × {len(self.levels)} levels, {len(self.references)} references)"

    def __str__(self) -> str:
        return self.to_text()

    def _repr_markdown_(self) -> str:  # what a notebook shows
        return self.to_markdown()

    def cell(self, method: str, level: str | int = -1, reference: str | None = None) -> Cell:
        """One result; a level by name or by its place."""
        chosen = [
            cell for cell in self.cells if cell.method == method and cell.reference == (reference or self.references[0])
        ]
        if not chosen:
            raise InvalidArgument(f"no result for {method!r}." + suggest(method, self.methods))
        if isinstance(level, str):
            chosen, level = [cell for cell in chosen if cell.level == level], 0
        if not -len(chosen) <= level < len(chosen):
            raise InvalidArgument(f"no such level; there are: {', '.join(self.levels)}.")
        return chosen[level]

    @property
    def references(self) -> list[str]:
        """The references' names, in order."""
        return list(dict.fromkeys(cell.reference for cell in self.cells))

    @property
    def methods(self) -> list[str]:
        """The methods' names, in order."""
        return list(dict.fromkeys(cell.method for cell in self.cells))

    @property
    def levels(self) -> list[str]:
        """The levels' names, in order."""
        return list(dict.fromkeys(cell.level for cell in self.cells))

    def to_text(self) -> str:
        """For a terminal."""
        return "\n\n".join(f"{title}\n{aligned(table)}" for title, table in self._tables())

    def to_markdown(self) -> str:
        """For a page."""
        return "\n\n".join(f"**{title}**\n\n{piped(table)}" for title, table in self._tables()) + "\n"

    def to_csv(self, which: str = "cells") -> str:
        """One row for each of the "cells" or the "differences"."""
        if which not in ("cells", "differences"):
            raise InvalidArgument(f"unknown table {which!r}." + suggest(which, ("cells", "differences")))
        rows = [_flat(item) for item in getattr(self, which)]
        names = [f.name for f in fields(Cell if which == "cells" else Difference)]
        names += ["effect", "verdict"] if which == "differences" else []
        return comma_separated(rows, names)

    def to_json(self) -> str:
        """Everything but the single correlations; what is not a number is null."""
        content = {
            "options": dict(self.options),
            "cells": [_flat(cell) for cell in self.cells],
            "differences": [_flat(difference) for difference in self.differences],
        }
        return json.dumps(finite(content), indent=1, ensure_ascii=False)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the form that the file's ending names: .txt, .md, .csv (the cells) or .json."""
        return save_as(path, {"txt": self.to_text, "md": self.to_markdown, "csv": self.to_csv, "json": self.to_json})

    def _tables(self) -> Iterable[tuple[str, list[list[str]]]]:
        share = f"{self.options.get('confidence', 0.95):.0%}"
        for reference in self.references:
            cells = [cell for cell in self.cells if cell.reference == reference]
            n = min(cell.n for cell in cells)
            title = f"{self.options.get('statistic', 'correlation')} with {reference}, n ≥ {n}: mean ± sd [{share} interval]"
            rows = [[name, *(str(cell) for cell in cells if cell.method == name)] for name in self.methods]
            yield title, [["", *self.levels], *rows]
            compared = [item for item in self.differences if item.reference == reference]
            if compared:
                yield f"differences, {self.options.get('test', 'paired')} test, Holm-corrected", _test_table(compared)


def _test_table(compared: Sequence[Difference]) -> list[list[str]]:
    header = ["level", "methods", "difference", "interval", "p", "p (Holm)", "detectable", "result"]
    rows = [
        [
            item.level, f"{item.first} − {item.second}", f"{item.difference:+.3f}", f"[{item.low:.3f}, {item.high:.3f}]",
            f"{item.p:.2g}", f"{item.p_corrected:.2g}", f"{item.detectable:.3f}", item.verdict,
        ]
        for item in compared
    ]  # fmt: skip
    return [header, *rows]


def _flat(item: Cell | Difference) -> dict[str, Any]:
    row = asdict(item)
    if isinstance(item, Difference):
        row |= {"effect": item.effect, "verdict": item.verdict}
    return row
