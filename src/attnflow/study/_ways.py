"""Ways to make a map: one choice on every axis, from the edge rule to the special tokens. Names and commands for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnflow.errors import InvalidArgument, suggest
from attnflow.graph import AttentionGraph
from attnflow.methods import attribute

SPECIAL = ("keep", "drop")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Way:
    """One way to make a map: what `capture.graph` is told (edges, residual, heads, options), the method, and its level.

    `residual="own"` is the edge rule's: 0.5 for attention weights.

    `special="drop"`: special tokens leave the graph, all but the query, which a classifier's answer is read at; the rows
    that sum to 1 do so again. `options` are further ones of `capture.graph`, as pairs. `label` is a name of one's own.
    """

    method: str = "rollout"
    edges: str = "attention"
    residual: Any = "own"
    heads: Any = "mean"
    level: int = -1
    special: str = "keep"
    options: tuple[tuple[str, Any], ...] = ()
    label: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.special not in SPECIAL:
            raise InvalidArgument(
                f"unknown policy for special tokens {self.special!r}." + suggest(self.special, SPECIAL)
            )
        for name in ("heads", "residual"):  # a way is the key that its results are found by
            object.__setattr__(self, name, _hashable(getattr(self, name)))

    @property
    def name(self) -> str:
        """The method, and what differs from the default."""
        if self.label:
            return self.label
        said = [
            name.replace("_", " ") + ("" if value is True else f" {_word(value)}") for name, value in self._differing()
        ]
        return ", ".join([self.method, *said])

    @property
    def flags(self) -> str:
        """The same for the command line."""
        said = [
            f"--{name.replace('_', '-')}" + ("" if value is True else f" {_word(value)}")
            for name, value in self._differing()
        ]
        return " ".join([f"--method {self.method}", *said])

    @property
    def mixing(self) -> dict[str, Any]:
        """What `capture.graph` is told."""
        chosen = {"edges": self.edges, "residual": self.residual, "heads": self.heads}
        return {name: list(map(_listed, v)) if isinstance(v, tuple) else v for name, v in chosen.items()} | dict(
            self.options
        )

    def _differing(self) -> list[tuple[str, Any]]:
        named = [one for one in fields(self) if one.name not in ("method", "label", "options")]
        return [
            *((one.name, getattr(self, one.name)) for one in named if getattr(self, one.name) != one.default),
            *self.options,
        ]

    def scores(self, graph: AttentionGraph, count: int) -> Floats:
        """The map of one input at the position that its output is read from: a score for each of its first `count` tokens."""
        query = int(graph.options["query"])
        kept = np.arange(len(graph.tokens))
        if self.special == "drop":
            graph, kept = without_special(graph, query)
            query = int(np.flatnonzero(kept == query)[0])
        # One row is soon found: threads would cost more than they save, and processes are there for many inputs.
        threads = {"threads": 1} if self.method == "flow" else {}
        found = attribute(graph, self.method, queries=[query], levels=[self.level], **threads)
        scores = np.zeros(max(count, int(kept[-1]) + 1))
        scores[kept[list(found.inputs)]] = found.scores[0, 0]
        return scores[:count]


def without_special(graph: AttentionGraph, query: int) -> tuple[AttentionGraph, NDArray[np.intp]]:
    """The graph without special tokens, the query staying, and the positions left.

    Rows that were proportions are so again; one that had given everything to special tokens keeps its own token.
    """
    keep = ~graph.tokens.special
    keep[query] = True
    kept = np.flatnonzero(keep)
    levels = np.stack([graph.read(number)[np.ix_(kept, kept)] for number in range(len(graph))])
    for matrix, proportions in zip(levels, graph.proportions, strict=True):
        if proportions:
            empty = matrix.sum(axis=1) <= 0
            matrix[empty] = np.eye(len(kept))[empty]
            matrix /= matrix.sum(axis=1, keepdims=True)
    thinned = AttentionGraph(
        levels, graph.tokens.select(keep), graph.names, graph.kinds, graph.passive[:, kept], graph.options,
        signed=graph.signed,
    )  # fmt: skip
    return thinned, kept


def ways(
    method: Any = ("raw", "rollout", "flow"),
    edges: Any = "attention",
    residual: Any = "own",
    heads: Any = "mean",
    level: Any = -1,
    special: Any = "keep",
    **options: Any,
) -> list[Way]:
    """Every combination of what is given; a list on an axis is several choices.

    Raw attention reads one level, in which the residual only moves the query's own entry, so it is asked for without one.
    """
    axes = [_several(axis) for axis in (method, edges, residual, heads, level, special)]
    others = [[(name, one) for one in _several(values)] for name, values in options.items()]
    found = [
        Way(name, rule, None if name == "raw" else share, mixed, top, policy, more)
        for name, rule, share, mixed, top, policy in product(*axes)
        for more in product(*others)
    ]
    return list(dict.fromkeys(found))


def named(several: Sequence[Any]) -> dict[str, Way]:
    """Ways by their names; a bare method's name is a way, too."""
    found: dict[str, Way] = {}
    for one in several:
        way = Way(one) if isinstance(one, str) else one
        if not isinstance(way, Way):
            raise InvalidArgument(f"a way is a study.Way or a method's name, got {one!r}.")
        if way.name in found and found[way.name] != way:
            raise InvalidArgument(f"two different ways are called {way.name!r}: give them labels.")
        found[way.name] = way
    return found


def _several(axis: Any) -> list[Any]:
    return list(axis) if isinstance(axis, list | tuple) else [axis]


def _hashable(value: Any) -> Any:
    value = value.tolist() if hasattr(value, "tolist") else value
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


def _listed(value: Any) -> Any:
    return list(map(_listed, value)) if isinstance(value, tuple) else value


def _word(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_word, value)) if not any(isinstance(v, Iterable) and not isinstance(v, str) for v in value) else "weights"  # fmt: skip
    return "none" if value is None else getattr(value, "__name__", None) or str(value)
