"""AttentionGraph: one matrix a level, the heads already mixed; what every method reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from attnflow import artifacts
from attnflow.arrays import ReadOnly, as_floats, frozen, row_sums
from attnflow.errors import InvalidArgument, InvalidAttention, suggest
from attnflow.tokens import UNSET, Tokens, checked_index, whole_number

# How far rounding alone may take the sum of a row that was 1, by bytes per number. What is further away was meant so.
ROUNDING = {2: 1e-3, 4: 1e-5, 8: 1e-9}

# Numbers that `carry` works on at once: 1 MiB in float64. From a quarter to four times that took the same time.
_BLOCK = 1 << 17


@dataclass(frozen=True, eq=False)
class AttentionGraph(ReadOnly):
    """Mixed attention [level, query, key]: how much each position takes from each position of the level below.

    Level 0 is the first block; the input tokens lie below it. Entries are not negative, unless `signed=True` says that
    they may be, which methods that need capacities refuse. Rows usually sum to 1; a rule whose rows are not proportions is
    welcome too, and `proportions` says which levels are. `names` and `kinds` describe
    the levels ("decoder 3 cross", "decoder cross"). `passive` [level, position] marks rows that only pass their position
    on (the other block of an encoder-decoder graph): identity rows to rollout, of unlimited capacity to flow.
    `options` say how the graph was made.
    """

    levels: NDArray[Any]
    tokens: Tokens = UNSET
    names: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    passive: NDArray[np.bool_] = UNSET
    options: Mapping[str, Any] = field(default_factory=dict)
    signed: bool = field(default=False, kw_only=True)
    proportions: tuple[bool, ...] = field(init=False)

    if TYPE_CHECKING:  # what may be passed is wider than what is kept

        def __init__(
            self,
            levels: Any,
            tokens: Tokens | Sequence[str] | None = None,
            names: Sequence[str] = (),
            kinds: Sequence[str] = (),
            passive: NDArray[np.bool_] | None = None,
            options: Mapping[str, Any] | None = None,
            *,
            signed: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        signed = bool(self.signed)
        levels = _checked_levels(self.levels, signed=signed)
        count = len(levels)
        keep = object.__setattr__  # the way to fill a frozen dataclass
        keep(self, "signed", signed)
        keep(self, "levels", frozen(levels))
        keep(self, "tokens", Tokens.of(self.tokens, levels.shape[-1]))
        keep(self, "names", _one_each(self.names, [f"level {i}" for i in range(count)], "names"))
        keep(self, "kinds", _one_each(self.kinds, ["self"] * count, "kinds"))
        keep(self, "passive", _checked_passive(self.passive, levels))
        keep(self, "options", dict(self.options or {}))
        near = ROUNDING[levels.dtype.itemsize]
        shares = (bool((np.abs(row_sums(m) - 1) <= near).all()) and (not signed or m.min() >= 0) for m in levels)
        keep(self, "proportions", tuple(bool(share) for share in shares))

    def __len__(self) -> int:
        return len(self.levels)

    def __iter__(self) -> Iterator[AttentionGraph]:
        return (self[level] for level in range(len(self)))

    def __repr__(self) -> str:
        signed = ", signed" if self.signed else ""
        return f"AttentionGraph({len(self)} levels × {len(self.tokens)} tokens, {self.levels.dtype}{signed})"

    def read(self, level: int, rows: Sequence[int] | slice = slice(None)) -> NDArray[np.float64]:
        """One level, or some of its rows, in float64. Where rows are proportions, the rounding of the storage is divided out."""
        number = checked_index(level, len(self), "level")
        matrix = self.levels[number, rows]
        divisor = matrix.sum(axis=-1, keepdims=True, dtype=np.float64) if self.proportions[number] else 1
        wide: NDArray[np.float64] = np.divide(matrix, divisor, dtype=np.float64)
        return wide

    def carry(self, rows: NDArray[np.float64], level: int) -> NDArray[np.float64]:
        """`rows @ read(level)`, without a copy of the level: a block of its rows at a time, which stays in the cache."""
        number = checked_index(level, len(self), "level")
        n = len(self.tokens)
        carried, step = np.zeros((len(rows), n)), max(1, _BLOCK // n)
        for start in range(0, n, step):
            block, part = self.levels[number, start : start + step], rows[:, start : start + step]
            if self.proportions[number]:
                part = part / block.sum(axis=-1, dtype=np.float64)
            carried += part @ block.astype(np.float64, copy=False)
        return carried

    def level_numbers(self, chosen: int | Iterable[int] | None) -> tuple[int, ...]:
        """Levels as numbers from 0; negative ones count from the top; None means all of them."""
        if chosen is None:
            return tuple(range(len(self)))
        alone = not isinstance(chosen, Iterable) or np.ndim(cast("Any", chosen)) == 0
        several = cast("Iterable[int]", [chosen] if alone else chosen)
        numbers = tuple(checked_index(level, len(self), "level") for level in several)
        if not numbers:
            raise InvalidArgument("no level was asked for: give at least one, or None for all.")
        return numbers

    def __getitem__(self, levels: int | slice) -> AttentionGraph:
        """A range of levels as a graph of its own: attribution from the top of the range down to its bottom."""
        if not isinstance(levels, slice):
            number = checked_index(levels, len(self), "level")
            return self._of(slice(number, number + 1))
        for edge in (levels.start, levels.stop, levels.step):
            if edge is not None and whole_number(edge) is None:
                raise InvalidArgument(f"a slice of levels goes by whole numbers, got {edge!r}.")
        if levels.step is not None and levels.step < 1:
            raise InvalidArgument(
                f"levels go from the input up: a slice needs a step of at least 1, got {levels.step}."
            )
        if not self.names[levels]:
            raise InvalidArgument(f"levels {levels.start}:{levels.stop} select none of the {len(self)} levels.")
        return self._of(levels)

    def only(self, kind: str) -> AttentionGraph:
        """The levels of a kind: every word of `kind` must be in the level's ("cross", "encoder", "decoder self")."""
        words = set(kind.split()) if isinstance(kind, str) else set()
        chosen = [i for i, own in enumerate(self.kinds) if words and words <= set(own.split())]
        if not chosen:
            raise InvalidArgument(f"no level is of kind {kind!r}." + suggest(kind, set(self.kinds)))
        return self._of(np.array(chosen))

    def with_level(self, level: int, matrix: Any) -> AttentionGraph:
        """The same graph with one level replaced."""
        number = checked_index(level, len(self), "level")
        new = as_floats(matrix, "the new level")
        if new.shape != self.levels.shape[1:]:
            raise InvalidAttention(f"the new level has shape {new.shape}, the others {self.levels.shape[1:]}.")
        levels = self.levels.astype(np.result_type(self.levels, new))  # a copy
        levels[number] = new
        passive = self.passive.copy()
        passive[number] &= _identity_rows(new)
        replaced = [*self.options.get("replaced_levels", []), self.names[number]]
        options = {**self.options, "replaced_levels": replaced}
        levels.flags.writeable = False  # made here, so nobody else holds it: no copy needed
        return AttentionGraph(levels, self.tokens, self.names, self.kinds, passive, options, signed=self.signed)

    def _of(self, chosen: slice | NDArray[np.intp]) -> AttentionGraph:
        """Some of the levels; a range of them shares memory with this graph."""
        names, kinds = (np.array(values, dtype=object)[chosen].tolist() for values in (self.names, self.kinds))
        options = self.options if len(names) == len(self) else {**self.options, "levels": names}
        passive = self.passive[chosen]
        return AttentionGraph(self.levels[chosen], self.tokens, names, kinds, passive, options, signed=self.signed)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an npz file (no pickle) with a JSON header. An existing file is replaced only by a complete one."""
        meta = {
            "tokens": self.tokens.to_json(),
            "names": list(self.names),
            "kinds": list(self.kinds),
            "options": artifacts.jsonable(self.options),
            "signed": self.signed,
        }
        arrays = {"levels": self.levels, "passive": self.passive, **self.tokens.pictures()}
        artifacts.save(path, "graph", arrays, meta)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AttentionGraph:
        """Open a saved graph."""
        return artifacts.load(path, "graph", cls._restore)

    @classmethod
    def _restore(cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> AttentionGraph:
        tokens = Tokens.from_json(header["tokens"], arrays)
        signed = header.get("signed", False)  # not in the first files
        names, kinds, options = header["names"], header["kinds"], header["options"]
        return cls(arrays["levels"], tokens, names, kinds, arrays["passive"], options, signed=signed)


def checked_graph(value: Any) -> AttentionGraph:
    """`value`, if it is a graph."""
    if not isinstance(value, AttentionGraph):
        raise InvalidAttention(
            f"expected an AttentionGraph, got a {type(value).__name__}. Heads are mixed into a graph by "
            "attnflow.mix(AttentionStack(weights)); matrices that are mixed already are AttentionGraph(levels)."
        )
    return value


def _checked_levels(value: Any, *, signed: bool) -> NDArray[Any]:
    if isinstance(value, list | tuple):
        matrices = [as_floats(level, f"level {number}") for number, level in enumerate(value)]
        if len({matrix.shape for matrix in matrices}) > 1:
            raise InvalidAttention(
                f"all levels must have the same shape, got {', '.join(str(m.shape) for m in matrices)}."
            )
        levels = np.stack(matrices) if matrices else np.zeros((0, 0, 0))
        levels.flags.writeable = False  # made here, so nobody else holds it: no copy needed
    else:
        levels = as_floats(value, "levels")
    if levels.ndim != 3:
        hint = " Heads are mixed into levels by attnflow.mix(AttentionStack(weights))." if levels.ndim == 4 else ""
        raise InvalidAttention(
            f"a graph needs 3 dimensions (levels, queries, keys), got {levels.ndim}: shape {levels.shape}.{hint}"
        )
    if 0 in levels.shape:
        raise InvalidAttention(f"a graph needs at least one level and one token, got shape {levels.shape}.")
    if levels.shape[1] != levels.shape[2]:
        raise InvalidAttention(
            f"levels must be square, got {levels.shape[1]} queries by {levels.shape[2]} keys. Put both sequences on one axis: "
            "the rows of the sequence that only gives are identity rows, marked as passive."
        )
    lowest = -np.finfo(levels.dtype).max if signed else 0
    for number, matrix in enumerate(levels):
        if not matrix.min() >= lowest or not np.isfinite(matrix.max()):  # NaN fails the first
            query, key = np.argwhere(~(np.isfinite(matrix) & (matrix >= lowest)))[0]
            advice = "" if signed else (
                " A rule with signs says so: AttentionGraph(levels, signed=True), which raw and rollout read; flow needs a "
                "part that is not negative, for example the positive part."
            )  # fmt: skip
            raise InvalidAttention(
                f"levels must be finite{'' if signed else ' and not negative'}; level {number}, query {query}, key {key} "
                f"is {matrix[query, key]}.{advice}"
            )
    return levels


def _checked_passive(passive: Any, levels: NDArray[Any]) -> NDArray[np.bool_]:
    if passive is None:
        return frozen(np.zeros(levels.shape[:2], dtype=np.bool_))
    mask = np.asarray(passive)
    if mask.shape != levels.shape[:2] or mask.dtype != np.bool_:
        raise InvalidAttention(
            f"passive must be booleans of shape {levels.shape[:2]} (levels, positions), got {mask.dtype} {mask.shape}."
        )
    for number in np.flatnonzero(mask.any(axis=1)):
        wrong = mask[number] & ~_identity_rows(levels[number])
        if wrong.any():
            raise InvalidAttention(
                f"row {np.argmax(wrong)} of level {number} is marked as passive but is not an identity row: it takes from others."
            )
    return frozen(mask)


def _identity_rows(matrix: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows take all from their own position."""
    diagonal: NDArray[np.bool_] = (np.diagonal(matrix) == 1) & (np.count_nonzero(matrix, axis=1) == 1)
    return diagonal


def _one_each(given: Sequence[str], default: list[str], what: str) -> tuple[str, ...]:
    values = tuple(given or default)
    if isinstance(given, str) or len(values) != len(default) or not all(isinstance(value, str) for value in values):
        raise InvalidArgument(f"{what} must be {len(default)} strings, one for each level; got {given!r}.")
    return values
