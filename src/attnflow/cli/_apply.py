"""Methods over a graph, as both `explain` and `attribute` apply them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from attnflow.cli._estimate import announce
from attnflow.cli._say import voice

if TYPE_CHECKING:
    from attnflow.attribution import Attribution
    from attnflow.graph import AttentionGraph

Positions = Sequence[int | str] | None
Levels = Sequence[int] | None

PAGE_PAIRS = 50_000  # pairs of a flow that a page waits for: some seconds


@dataclass(frozen=True)
class Methods:
    """What is computed, and how."""

    names: tuple[str, ...]
    threads: int | None = None
    normalise: bool = False

    def __post_init__(self) -> None:
        for option, given in (("--threads", self.threads is not None), ("--normalise", self.normalise)):
            if given and "flow" not in self.names:
                raise click.UsageError(f"{option} is for flow, and --method is {', '.join(self.names)}.")

    @property
    def wanted(self) -> dict[str, Any]:
        """The options of mixing that these methods stand on, where they agree on them and none is given."""
        from attnflow.methods import wanted_mixing

        return wanted_mixing(*self.names)

    def over(self, graph: AttentionGraph, queries: Positions, levels: Levels) -> list[Attribution]:
        """One attribution a method."""
        return [self._one(graph, name, queries, levels) for name in self.names]

    def page(self, graph: AttentionGraph, found: Sequence[Attribution]) -> list[Attribution]:
        """The same for every query, where that takes little time: on a page one chooses another by a click."""
        return [self._every(graph, a) for a in found]

    def _every(self, graph: AttentionGraph, a: Attribution) -> Attribution:
        dear = a.method == "flow" and len(graph.tokens) ** 2 * len(a.levels) > PAGE_PAIRS
        return a if dear else self._one(graph, a.method, None, a.levels)

    def _one(self, graph: AttentionGraph, name: str, queries: Positions, levels: Levels) -> Attribution:
        from attnflow.methods import attribute

        options: dict[str, Any] = {}
        if name == "flow":
            announce(graph, queries, levels, self.threads)
            options = {"threads": self.threads, "normalise": self.normalise, "progress": voice().progress}
        return attribute(graph, name, queries=queries, levels=levels, **options)


def level_numbers(chosen: Sequence[int | str]) -> list[int] | None:
    """--level as the library takes it: None is all of them."""
    return None if "all" in chosen else [int(level) for level in chosen]
