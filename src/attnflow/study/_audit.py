"""audit: how a model's reliance on words moves between two checkpoints, or between two kinds of text."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from attnflow import evaluate
from attnflow.errors import InvalidArgument, suggest
from attnflow.study._baselines import BASELINES
from attnflow.study._reliance import Group, Reading, compared, readings, reliance
from attnflow.study._subject import Subject
from attnflow.study._ways import Floats, Way
from attnflow.study._word_classes import word_class as by_lists
from attnflow.tables import save_as

KINDS = ("word list", "word class", "position", "special token", "word")


@dataclass(frozen=True)
class Move:
    """A group of words: the mean reliance on it on either side, and the difference.

    `n` and `other_n` are the inputs that hold such a word; `p_corrected` is Holm's over all groups of the audit.
    """

    kind: str
    group: str
    n: int
    other_n: int
    before: float
    after: float
    difference: float
    low: float
    high: float
    effect: float
    p: float
    p_corrected: float

    @property
    def verdict(self) -> str:
        """In which direction it moved, if that was shown."""
        if not self.p_corrected <= 0.05:
            return "no move shown"
        return "more" if self.difference > 0 else "less"


@dataclass(frozen=True, eq=False)
class Audit:
    """What moved: groups, the largest move shown first; and the inputs that moved most, with both readings of each."""

    moves: tuple[Move, ...]
    examples: tuple[tuple[int, float, Reading, Reading], ...]  # (input, distance, before, after)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"Audit({len(self.shown)} of {len(self.moves)} groups moved)"

    @property
    def shown(self) -> list[Move]:
        """The moves that are more than chance, the largest effect first."""
        found = [move for move in self.moves if move.verdict != "no move shown"]
        return sorted(found, key=lambda move: -abs(move.difference))

    def of(self, kind: str, group: str | None = None) -> list[Move]:
        """The moves of one kind of group, or of one group."""
        if kind not in KINDS:
            raise InvalidArgument(f"unknown kind of group {kind!r}." + suggest(kind, KINDS))
        return [move for move in self.moves if move.kind == kind and group in (None, move.group)]

    def to_text(self) -> str:
        """For a terminal."""
        from attnflow.study._audit_page import text

        return text(self)

    def to_markdown(self) -> str:
        """For a page."""
        from attnflow.study._audit_page import markdown

        return markdown(self)

    def to_csv(self) -> str:
        """One row for each group."""
        from attnflow.study._audit_page import as_csv

        return as_csv(self)

    def to_json(self) -> str:
        """Groups, examples and how it was made."""
        from attnflow.study._audit_page import as_json

        return as_json(self)

    def to_html(self) -> str:
        """One page that works from disk."""
        from attnflow.study._audit_page import audit_page

        return audit_page(self)

    @property
    def forms(self) -> dict[str, Callable[[], str]]:
        """What it can be written as, by the endings of files."""
        return {"html": self.to_html, "md": self.to_markdown, "csv": self.to_csv, "json": self.to_json, "txt": self.to_text}  # fmt: skip

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the form that the file's ending names."""
        return save_as(path, self.forms)


def audit(
    model_a: Any,
    model_b: Any,
    data: Any,
    data_b: Any = None,
    *,
    way: Way | str = "occlusion",
    replace: str = "remove",
    tokenizer: Any = None,
    tokenizer_b: Any = None,
    words: Mapping[str, Sequence[str]] | Sequence[str] = (),
    word_class: Callable[[str], str] | None = None,
    target: Any = None,
    least: int = 5,
    examples: int = 10,
    names: tuple[str, str] = ("A", "B"),
    truncate: bool = False,
    seed: int = 0,
) -> Audit:
    """What the answers of two models come from, group by group of words, and what moved between them.

    Without `data_b` both models read the same inputs, which are compared one by one (paired permutation tests). With it,
    `model_a` reads `data` and `model_b` reads `data_b`: two domains, perhaps of one model (two-sample permutation tests).
    `way`: "occlusion" (reliance is how far the answer's probability moves when a word is taken away, or replaced as `replace` says), or a `study.Way`, a method
    or another baseline (reliance is the share of the map on a word, in times of an even share). The groups are word classes
    (`word_class`: a function from a word to a class, English lists by default), quarters of the text, special tokens, the lists in `words`,
    and every word that at least `least` inputs hold, so that what nobody suspected is found too. p-values are Holm-corrected over
    all of them. A model's target is its own prediction, unless `target` names a class or token.
    """
    chosen = _way(way)
    one = Subject.of(model_a, data, tokenizer, target, truncate=truncate)
    other = Subject.of(model_b, data if data_b is None else data_b, tokenizer_b or tokenizer, target, truncate=truncate)
    before, after = (readings(subject, chosen, replace) for subject in (one, other))
    lists = {name: frozenset(word.lower() for word in several) for name, several in _lists(words).items()}
    tables = [reliance(side, word_class or by_lists, lists) for side in (before, after)]
    moves = _moves(*tables, paired=data_b is None, least=least, seed=seed)
    options = {
        "replace": replace, "way": chosen if isinstance(chosen, str) else chosen.name, "names": list(names), "inputs": [len(before), len(after)],
        "paired": data_b is None, "least": least, "seed": seed,
        "models": [getattr(s.model, "name_or_path", "") or type(s.model).__name__ for s in (one, other)],
    }  # fmt: skip
    return Audit(moves, _furthest(before, after, examples) if data_b is None else (), options)


def _way(way: Way | str) -> Way | str:
    if isinstance(way, Way) or way in BASELINES:
        return way
    return Way("raw", residual=None) if way == "raw" else Way(way)


def _lists(words: Mapping[str, Sequence[str]] | Sequence[str]) -> dict[str, Sequence[str]]:
    if isinstance(words, str):
        raise InvalidArgument(f"words is a list of words, or several by name; got the string {words!r}.")
    if isinstance(words, Mapping):
        return dict(words)
    return {"given words": list(words)} if words else {}


def _moves(
    before: dict[Group, Floats], after: dict[Group, Floats], *, paired: bool, least: int, seed: int
) -> tuple[Move, ...]:
    rows = {}
    for group in sorted(set(before) & set(after), key=lambda one: (KINDS.index(one[0]), one[1])):
        held = min(int((~np.isnan(table[group])).sum()) for table in (before, after))
        if group[0] == "word" and held < least:
            continue
        found = compared(before[group], after[group], paired=paired, seed=seed)
        if found:
            rows[group] = found
    corrected = evaluate.holm(np.array([row["p"] for row in rows.values()]))
    moves = [
        Move(*group, **row, p_corrected=float(p))  # type: ignore[arg-type]
        for (group, row), p in zip(rows.items(), corrected, strict=True)
    ]
    return tuple(sorted(moves, key=lambda move: (KINDS.index(move.kind), move.p_corrected, -abs(move.difference))))


def _furthest(
    before: Sequence[Reading], after: Sequence[Reading], count: int
) -> tuple[tuple[int, float, Reading, Reading], ...]:
    """The inputs whose reading moved most."""
    distances = np.array([one.distance(other) for one, other in zip(before, after, strict=True)])
    order = [int(i) for i in np.argsort(-np.nan_to_num(distances, nan=-1), kind="stable") if not np.isnan(distances[i])]
    return tuple((i, float(distances[i]), before[i], after[i]) for i in order[:count])
