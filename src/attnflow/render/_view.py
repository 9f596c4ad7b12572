"""View: what there is to draw, in plain numbers and words. Back ends read this and know nothing of attributions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnflow.arrays import frozen
from attnflow.errors import InvalidArgument, InvalidAttention, suggest
from attnflow.tokens import PatchGrid, Word, checked_index

Values = NDArray[np.float64]

SPECIAL = ("shown", "unscaled", "hidden")


@dataclass(frozen=True, eq=False)
class View:
    """Scores [level, query, input] of one method over one text, and what everything in them is called.

    `labels` name every position; `queries` and `inputs` are the positions of the second and third axis. `query` is the
    position a picture opens at. `joined` continue the word of the position before them. `notes` hold, for each level,
    advice to the reader or nothing.
    """

    method: str
    values: Values
    labels: tuple[str, ...]
    levels: tuple[str, ...]
    queries: tuple[int, ...]
    inputs: tuple[int, ...]
    query: int
    caption: str = ""
    special: tuple[int, ...] = ()
    joined: tuple[int, ...] = ()
    words: tuple[Word, ...] = ()
    grids: tuple[PatchGrid, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64)
        shape = (len(self.levels), len(self.queries), len(self.inputs))
        if values.shape != shape or 0 in shape:
            raise InvalidAttention(f"values must have the shape (levels, queries, inputs) {shape}, got {values.shape}.")
        if not np.isfinite(values).all():
            raise InvalidAttention("values hold NaN or infinity, which no colour stands for.")
        if self.query not in self.queries:
            raise InvalidArgument(f"a view opens at one of its queries, {self.queries[:20]}; got {self.query}.")
        notes = tuple(self.notes) or ("",) * len(self.levels)
        object.__setattr__(self, "values", frozen(values))
        object.__setattr__(self, "notes", notes)

    @property
    def signed(self) -> bool:
        """Whether some values are negative, so that colours must diverge from zero."""
        return bool((self.values < 0).any())

    def level(self, number: int) -> int:
        """A level counted from 0, where it may have been counted from the top."""
        return checked_index(number, len(self.levels), "level")

    def row(self, query: int, level: int) -> Values:
        """What one query draws from every input at one level."""
        found: Values = self.values[level, self.queries.index(query)]
        return found

    def by_level(self, query: int) -> Values:
        """What one query draws from every input: [level, input]."""
        found: Values = self.values[:, self.queries.index(query)]
        return found

    def label(self, position: int) -> str:
        """What a position is called in a sentence."""
        return f"“{self.labels[position]}”"

    def opened(self, query: int | str | None) -> View:
        """The same view at another query: a position or, where it is the only one of its name, a label."""
        if query is None:
            return self
        if isinstance(query, str):
            found = [p for p in self.queries if self.labels[p] == query]
            if len(found) != 1:
                raise InvalidArgument(f"{len(found)} queries of this view are {query!r}: give the position.")
            return replace(self, query=found[0])
        return replace(self, query=checked_index(query, len(self.labels), "position"))

    def only(self, kept: NDArray[np.bool_]) -> View:
        """Some of the inputs."""
        inputs = tuple(i for i, keep in zip(self.inputs, kept, strict=True) if keep)
        return replace(self, values=self.values[..., kept], inputs=inputs)


class Edge(NamedTuple):
    """What flows from `key` up to `query` at a level, what could (None: no limit), and whether the minimum cut is here."""

    level: int
    query: int
    key: int
    flow: float
    capacity: float | None
    cut: bool


class Path(NamedTuple):
    """One way that part of a flow takes: its positions from the query down to the input."""

    amount: float
    positions: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class FlowView:
    """The flow of one pair: edges, paths, and in words what limits it."""

    query: int
    input: int
    value: float
    limit: str
    labels: tuple[str, ...]
    levels: tuple[str, ...]
    edges: tuple[Edge, ...]
    paths: tuple[Path, ...]
    caption: str = ""
    special: tuple[int, ...] = field(default=())

    @property
    def used(self) -> list[int]:
        """The positions that something flows through, in order."""
        return sorted({self.query, self.input} | {p for edge in self.edges for p in (edge.query, edge.key)})

    @property
    def sentence(self) -> str:
        """The value in words."""
        return f"{self.value:.3g} flows from “{self.labels[self.input]}” up to “{self.labels[self.query]}”"


def counted(view: View, query: int, special: str) -> NDArray[np.bool_]:
    """Which inputs the scale is made for: without special tokens and the query's own entry, unless they are `shown`.

    What a position keeps of itself, and what models park on special tokens, is often so large that all else goes pale.
    Pictures draw in grey what stands outside the scale. Where nothing would be left, all inputs make it.
    """
    if special not in SPECIAL:
        raise InvalidArgument(f"unknown value for special {special!r}." + suggest(special, SPECIAL))
    inputs = np.asarray(view.inputs)
    chosen = ~np.isin(inputs, view.special) & (inputs != query)
    return chosen if special != "shown" and chosen.any() else np.ones(len(inputs), dtype=np.bool_)


def limit(values: Values, chosen: NDArray[np.bool_] | None = None) -> float:
    """The end of a scale: the largest magnitude of the chosen columns or entries; 1 where there is nothing but zeros."""
    magnitudes = np.abs(values)
    regular = magnitudes if chosen is None else magnitudes[np.broadcast_to(chosen, values.shape)]
    return float(regular.max(initial=0)) or float(magnitudes.max(initial=0)) or 1.0


def number(value: Any) -> str:
    """A value for people: three significant digits."""
    return f"{float(value):.3g}"


_BELOW = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def path_in_words(path: Path, labels: tuple[str, ...]) -> str:
    """A path as a reader follows it: where a position hands on to itself nothing is said, and a step names its level."""
    words = [labels[path.positions[0]]]
    for number_of_steps, (above, below) in enumerate(zip(path.positions, path.positions[1:], strict=False)):
        if above != below:
            level = len(path.positions) - 2 - number_of_steps
            words.append(f"→{str(level).translate(_BELOW)} {labels[below]}")
    return " ".join(words)
