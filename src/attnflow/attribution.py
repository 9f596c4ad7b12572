"""Attribution: how much of what each query says came from each input token, and how that was computed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attnflow import artifacts
from attnflow.arrays import ReadOnly, as_floats, frozen
from attnflow.errors import InvalidArgument, InvalidAttention, MissingExtra
from attnflow.tokens import Tokens, Word, checked_index, whole_number

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Saturation:
    """For each level of a flow, the share of its pairs that stopped at a trivial cut.

    `query`: the flow equals all that leaves the query. `input`: it equals all that can enter the input. `either`: one of
    the two. A saturated map no longer tells inputs apart, since the limit lies at the ends and not in between.
    """

    query: tuple[float, ...]
    input: tuple[float, ...]
    either: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Attribution(ReadOnly):
    """Scores [level, query, input] and how they were made.

    `levels`, `queries` and `inputs` are the numbers of what was asked for: `scores[i, j, k]` is what query `queries[j]`
    takes from input `inputs[k]` at level `levels[i]`. `options` hold every choice, from the mixing to the method.
    """

    scores: NDArray[np.float64]
    tokens: Tokens
    method: str
    levels: tuple[int, ...]
    queries: tuple[int, ...]
    inputs: tuple[int, ...]
    level_names: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    saturation: Saturation | None = None

    def __post_init__(self) -> None:
        scores = as_floats(self.scores, "scores").astype(np.float64, copy=False)
        shape = (len(self.levels), len(self.queries), len(self.inputs))
        if scores.shape != shape or 0 in shape:
            raise InvalidAttention(f"scores must have the shape (levels, queries, inputs) {shape}, got {scores.shape}.")
        with np.errstate(all="ignore"):  # a finite sum has finite terms, and takes one pass and no memory
            finite = np.isfinite(scores.sum()) or np.isfinite(scores).all()
        if not finite:
            raise InvalidAttention("scores hold NaN or infinity.")
        names = tuple(self.level_names) or tuple(f"level {level}" for level in self.levels)
        if len(names) != len(self.levels) or not all(isinstance(name, str) for name in (*names, self.method)):
            raise InvalidArgument(
                f"{len(self.levels)} levels need as many level names, and a method; got {names}, {self.method!r}."
            )
        keep = object.__setattr__  # the way to fill a frozen dataclass
        keep(self, "scores", frozen(scores))
        keep(self, "levels", tuple(checked_index(level, max(*self.levels, 0) + 1, "level") for level in self.levels))
        keep(self, "queries", tuple(checked_index(q, len(self.tokens), "query") for q in self.queries))
        keep(self, "inputs", tuple(checked_index(i, len(self.tokens), "input") for i in self.inputs))
        keep(self, "level_names", names)
        keep(self, "options", dict(self.options))

    def __repr__(self) -> str:
        return f"Attribution({self.method}: {len(self.levels)} levels × {len(self.queries)} queries × {len(self.inputs)} inputs)"

    def of(self, query: int | str, level: int = -1) -> NDArray[np.float64]:
        """The scores of all inputs for one query: a position or a token, if it was asked for.

        A level from 0 is the graph's number; a negative one counts from the top of the levels that were asked for.
        """
        position = self.tokens.position(query)
        if position not in self.queries:
            asked = ", ".join(map(str, self.queries[:20]))
            raise InvalidArgument(f"query {query!r} (position {position}) was not asked for; there are: {asked}.")
        row: NDArray[np.float64] = self.scores[self._level(level), self.queries.index(position)]
        return row

    def _level(self, level: int) -> int:
        if level in self.levels:
            return self.levels.index(level)
        if isinstance(level, int | np.integer) and -len(self.levels) <= level < 0:
            return int(level)
        asked = ", ".join(map(str, self.levels))
        raise InvalidArgument(
            f"there is no level {level!r} in this attribution; there are: {asked} (or -1 to -{len(self.levels)})."
        )

    def top(self, k: int, query: int | str, level: int = -1) -> list[tuple[str, float]]:
        """The k inputs that a query takes most from, with their scores, largest first."""
        if (whole_number(k) or 0) < 1:
            raise InvalidArgument(f"top needs a whole number from 1, got {k!r}.")
        row = self.of(query, level)
        best = np.argsort(-row, kind="stable")[:k]
        return [(self.tokens.labels[self.inputs[i]], float(row[i])) for i in best]

    def words(self) -> Attribution:
        """The same with sub-words joined: the inputs of a word are added up, its queries averaged."""
        if not self.tokens.words:
            raise InvalidArgument("these tokens know no words: give Tokens(labels, words=[(start, stop), …]).")
        owner, tokens = _word_tokens(self.tokens)
        queries, of_query = _grouped(owner[list(self.queries)])
        inputs, of_input = _grouped(owner[list(self.inputs)])
        averaged = of_query / of_query.sum(axis=1, keepdims=True)
        scores = np.einsum("wq,lqi,vi->lwv", averaged, self.scores, of_input, optimize=True)
        options = {**self.options, "words": True}
        return replace(self, scores=scores, tokens=tokens, queries=queries, inputs=inputs, options=options)

    def columns(self) -> dict[str, list[Any]]:
        """One row for each score, as columns that any data frame library takes."""
        level, query, key = (axis.ravel() for axis in np.indices(self.scores.shape))
        labels = self.tokens.labels
        return {
            "level": [self.levels[i] for i in level],
            "level_name": [self.level_names[i] for i in level],
            "query": [self.queries[i] for i in query],
            "query_token": [labels[self.queries[i]] for i in query],
            "input": [self.inputs[i] for i in key],
            "input_token": [labels[self.inputs[i]] for i in key],
            "score": self.scores.ravel().tolist(),
        }

    def to_frame(self) -> pandas.DataFrame:
        """One row for each score, as a pandas data frame."""
        try:
            import pandas
        except ImportError:
            raise MissingExtra("pandas, which to_frame() needs,", package="pandas") from None
        return pandas.DataFrame(self.columns())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an npz file (no pickle) with a JSON header. An existing file is replaced only by a complete one."""
        meta = {
            "tokens": self.tokens.to_json(),
            "method": self.method,
            "levels": self.levels,
            "queries": self.queries,
            "inputs": self.inputs,
            "level_names": self.level_names,
            "options": artifacts.jsonable(self.options),
            "saturation": None if self.saturation is None else vars(self.saturation),
        }
        artifacts.save(path, "attribution", {"scores": self.scores, **self.tokens.pictures()}, meta)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Attribution:
        """Open a saved attribution."""
        return artifacts.load(path, "attribution", cls._restore)

    @classmethod
    def _restore(cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> Attribution:
        made = {name: tuple(header[name]) for name in ("levels", "queries", "inputs", "level_names")}
        shares = header["saturation"]
        saturation = None if shares is None else Saturation(**{name: tuple(share) for name, share in shares.items()})
        tokens = Tokens.from_json(header["tokens"], arrays)
        return cls(arrays["scores"], tokens, header["method"], **made, options=header["options"], saturation=saturation)


def _word_tokens(tokens: Tokens) -> tuple[NDArray[np.intp], Tokens]:
    """Which word each position belongs to, and the words as tokens. A position outside all words stays by itself."""
    starts = {word.start: word for word in tokens.words}
    spans: list[Word] = []
    position = 0
    while position < len(tokens):
        span = starts.get(position) or Word(position, position + 1, tokens.labels[position])
        spans.append(span)
        position = span.stop
    owner = np.repeat(np.arange(len(spans)), [span.stop - span.start for span in spans])
    special = [bool(tokens.special[span.start : span.stop].all()) for span in spans]
    words = [(i, i + 1, span.label) for i, span in enumerate(spans) if span.start in starts]
    grids = [g for g in (_moved(g, owner) for g in tokens.grids) if g]
    return owner, Tokens([span.label for span in spans], special, words=words, grids=grids)


def _moved(grid: Any, owner: NDArray[np.intp]) -> Any:
    """A grid at its place among words, if no word holds two of its patches."""
    own = owner[grid.offset : grid.stop]
    return replace(grid, offset=int(own[0])) if len(set(own.tolist())) == len(own) else None


def _grouped(owners: NDArray[np.intp]) -> tuple[tuple[int, ...], NDArray[np.float64]]:
    """The groups present, in order, and the 0/1 matrix [group, member]."""
    groups = tuple(dict.fromkeys(owners.tolist()))
    return groups, np.equal.outer(groups, owners).astype(np.float64)
