"""From attributions and references to rows of numbers: which query is read, and which inputs count."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnflow.arrays import as_floats
from attnflow.attribution import Attribution
from attnflow.errors import InvalidArgument, suggest
from attnflow.evaluate._rows import Floats, Rows

OVER: dict[str, Callable[[Floats], Floats]] = {
    "max": lambda scores: np.asarray(scores.max(axis=1)),
    "mean": lambda scores: np.asarray(scores.mean(axis=1)),
}


@dataclass(frozen=True)
class Choice:
    """Which row of an attribution is compared, and which inputs of it.

    `query`: an index or token; None where only one query was asked for. `over`: instead of one query, the "max" or "mean"
    over all of them. `count_own` keeps the query's own token, `count_special` the other special tokens.
    """

    query: int | str | None = None
    over: str | None = None
    count_own: bool = True
    count_special: bool = True

    def __post_init__(self) -> None:
        if self.over is not None and self.over not in OVER:
            raise InvalidArgument(f"unknown way to join queries {self.over!r}." + suggest(self.over, OVER))
        if self.over is not None and (self.query is not None or not self.count_own):
            raise InvalidArgument("over= joins all queries, so there is no single query to name or to leave out.")

    def scores(self, attribution: Attribution) -> Floats:
        """The compared row at every level [level, input], the inputs that do not count left out."""
        if self.over is not None:
            table = OVER[self.over](attribution.scores)
        else:
            table = attribution.scores[:, attribution.queries.index(self._position(attribution))]
        return np.asarray(table[:, self.kept(attribution)])

    def kept(self, attribution: Attribution) -> NDArray[np.bool_]:
        """Which of the attribution's inputs count."""
        inputs = np.array(attribution.inputs)
        kept = np.ones(len(inputs), dtype=np.bool_)
        own = None if self.over is not None else self._position(attribution)
        if not self.count_special:
            kept &= ~attribution.tokens.special[inputs] | (inputs == own)
        if own is not None and not self.count_own:
            kept &= inputs != own
        return kept

    def _position(self, attribution: Attribution) -> int:
        if self.query is not None:
            position = attribution.tokens.position(self.query)
            if position not in attribution.queries:
                asked = ", ".join(map(str, attribution.queries[:20]))
                raise InvalidArgument(f"query {self.query!r} was not asked for in {attribution!r}; there are: {asked}.")
            return position
        if len(attribution.queries) > 1:
            raise InvalidArgument(
                f"this attribution has {len(attribution.queries)} queries: say which one is compared (query=0, or a token), "
                'or how they are joined (over="max").'
            )
        return attribution.queries[0]


def by_method(attributions: Any) -> dict[str, list[Attribution]]:
    """One list of attributions, one per sentence, for each method; a bare list is sorted by the attributions' own method."""
    found: dict[str, list[Attribution]] = {}
    if isinstance(attributions, Mapping):
        found = {str(name): _attributions(several) for name, several in attributions.items()}
    else:
        for attribution in _attributions(attributions):
            found.setdefault(attribution.method, []).append(attribution)
    counts = {name: len(several) for name, several in found.items()}
    if not counts or not all(counts.values()):
        raise InvalidArgument("no attribution was given: give at least one for each method.")
    if len(set(counts.values())) > 1:
        each = ", ".join(f"{name}: {count}" for name, count in counts.items())
        raise InvalidArgument(f"every method needs one attribution for each sentence, in the same order; got {each}.")
    _check_alike(found)
    return found


def _attributions(several: Any) -> list[Attribution]:
    found = [several] if isinstance(several, Attribution) else list(several)
    for item in found:
        if not isinstance(item, Attribution):
            raise InvalidArgument(f"expected an Attribution, got a {type(item).__name__}.")
    return found


def _check_alike(methods: Mapping[str, Sequence[Attribution]]) -> None:
    first = next(iter(methods.values()))[0]
    for name, several in methods.items():
        for number, (attribution, other) in enumerate(zip(several, next(iter(methods.values())), strict=True)):
            if attribution.levels != first.levels:
                raise InvalidArgument(
                    f"all attributions must have the same levels; {name!r}, sentence {number} has {attribution.levels}, the first one {first.levels}."
                )
            if attribution.inputs != other.inputs or attribution.tokens.labels != other.tokens.labels:
                raise InvalidArgument(
                    f"sentence {number} of {name!r} has other tokens than the other methods have there."
                )


def by_reference(references: Any, sentences: Sequence[Attribution]) -> dict[str, list[Floats]]:
    """One list of importances [input], one per sentence, for each reference."""
    named = references if isinstance(references, Mapping) else {"reference": references}
    if not named:
        raise InvalidArgument("no reference was given.")
    return {str(name): _importances(str(name), several, sentences) for name, several in named.items()}


def _importances(name: str, several: Any, sentences: Sequence[Attribution]) -> list[Floats]:
    several = [several] if _is_one(several) else several
    if len(several) != len(sentences):
        raise InvalidArgument(f"{name} has {len(several)} sentences, the attributions have {len(sentences)}.")
    return [
        _importance(name, number, item, of) for number, (item, of) in enumerate(zip(several, sentences, strict=True))
    ]


def _importance(name: str, number: int, item: Any, of: Attribution) -> Floats:
    values = as_floats(_values(item), f"{name} of sentence {number}").astype(np.float64, copy=False)
    values = values.reshape(-1) if values.size == max(values.shape, default=0) else values
    if values.ndim != 1 or len(values) not in (len(of.tokens), len(of.inputs)):
        raise InvalidArgument(
            f"{name} of sentence {number} must hold one number for each of its {len(of.tokens)} tokens, got shape {values.shape}."
        )
    if not np.isfinite(values).all():
        raise InvalidArgument(
            f"{name} of sentence {number} holds NaN or infinity at input {np.argmin(np.isfinite(values))}."
        )
    return values[list(of.inputs)] if len(values) == len(of.tokens) else values


def _is_one(several: Any) -> bool:
    """Whether these are the importances of one sentence, and not a list of those."""
    if isinstance(several, Attribution):
        return True
    if hasattr(several, "__array__"):
        return np.asarray(several).ndim == 1
    return len(several) > 0 and np.ndim(_values(several[0])) == 0


def _values(item: Any) -> Any:
    return item.scores if isinstance(item, Attribution) else item


def score_rows(several: Sequence[Attribution], choice: Choice) -> list[Rows]:
    """For each level, the compared rows of all sentences."""
    tables = [choice.scores(attribution) for attribution in several]
    return [Rows.of([table[level] for table in tables]) for level in range(len(several[0].levels))]
