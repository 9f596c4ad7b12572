"""Evidence: every measure of every map on every input, and what can and cannot be concluded from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from attnflow import evaluate
from attnflow.arrays import frozen
from attnflow.errors import InvalidArgument, suggest
from attnflow.study._ways import Floats
from attnflow.tables import save_as

Key = tuple[str, str]  # (measure, replacement)

CHANCE = "random"
NOTHING_SHOWN = "no difference shown"


@dataclass(frozen=True)
class Result:
    """One map by one measure: its mean and place, and how it stands to the best one and to chance.

    `difference` is its mean minus the best one's, on the same inputs; `effect` that in standard deviations (Hedges' g of
    paired differences). p-values are Holm's over all pairs of maps of this measure and replacement, so that the best one
    may be picked afterwards. `detectable` is the difference to the best one that would have been found with a power of 0.8.
    """

    measure: str
    replace: str
    way: str
    n: int
    undefined: int
    mean: float
    sd: float
    low: float
    high: float
    place: float
    place_low: float
    place_high: float
    best: str
    difference: float
    effect: float
    effect_low: float
    effect_high: float
    p: float
    detectable: float
    verdict: str
    beats_chance: str


@dataclass(frozen=True, eq=False)
class Evidence:
    """Values [input, map] for each (measure, replacement); `ways` are the maps' names, baselines among them.

    Printed, it is the tables; `results` are all of it, `leaders` the answer, `save` writes .html, .md, .csv, .json or .txt.
    """

    values: Mapping[Key, Floats]
    ways: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tables = {key: frozen(np.asarray(table, dtype=np.float64)) for key, table in self.values.items()}
        for key, table in tables.items():
            if table.ndim != 2 or table.shape[1] != len(self.ways) or not len(table):
                raise InvalidArgument(f"{key} needs values [input, {len(self.ways)} maps], got shape {table.shape}.")
        object.__setattr__(self, "values", tables)

    def __repr__(self) -> str:
        return f"Evidence({len(self.ways)} maps × {self.inputs} inputs × {len(self.values)} measures)"

    def __str__(self) -> str:
        return self.to_text()

    @property
    def inputs(self) -> int:
        """How many inputs there are."""
        return len(next(iter(self.values.values())))

    @property
    def measures(self) -> list[str]:
        """The measures' names, in order."""
        return list(dict.fromkeys(measure for measure, _ in self.values))

    @property
    def replacements(self) -> list[str]:
        """The replacements, in order; what does not depend on one stands under an empty name."""
        return list(dict.fromkeys(replace for _, replace in self.values))

    def higher_is_better(self, measure: str) -> bool:
        """Correlations and hits: yes. Of the curves' measures, those that say so."""
        known = evaluate.MEASURES.get(measure)
        return True if known is None else known.higher_is_better

    def of(self, measure: str, replace: str | None = None) -> list[Result]:
        """The results of one measure, best first; with the first replacement it was measured with, if none is named."""
        keys = [key for key in self.values if key[0] == measure and replace in (None, key[1])]
        if not keys:
            raise InvalidArgument(
                f"no results for {measure!r} with replacement {replace!r}." + suggest(measure, self.measures)
            )
        return self._by_key[keys[0]]

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """Every result."""
        return tuple(result for key in self.values for result in self._by_key[key])

    @cached_property
    def _by_key(self) -> dict[Key, list[Result]]:
        return {key: self._results(key) for key in self.values}

    def leaders(self, measure: str, replace: str | None = None) -> list[str]:
        """The best map, and those that were not shown to be worse."""
        results = self.of(measure, replace)
        return [one.way for one in results if one.way == one.best or one.verdict == NOTHING_SHOWN]

    def only(self, ways: Sequence[str]) -> Evidence:
        """Some of the maps, compared among themselves."""
        for name in ways:
            if name not in self.ways:
                raise InvalidArgument(f"no map is called {name!r}." + suggest(name, self.ways))
        chosen = [self.ways.index(name) for name in ways]
        return Evidence({key: table[:, chosen] for key, table in self.values.items()}, tuple(ways), self.options)

    @classmethod
    def joined(cls, parts: Sequence[Evidence]) -> Evidence:
        """The same maps and measures on more inputs."""
        if len({(part.ways, tuple(part.values)) for part in parts}) != 1:
            raise InvalidArgument("only evidence with the same maps and measures can be joined.")
        values = {key: np.concatenate([part.values[key] for part in parts]) for key in parts[0].values}
        return cls(values, parts[0].ways, {**parts[0].options, "inputs": sum(part.inputs for part in parts)})

    def _results(self, key: Key) -> list[Result]:
        measure, replace = key
        table = self.values[key]
        seed = int(self.options.get("seed", 0))
        known = ~np.isnan(table).all(axis=0)
        if not known.any():
            return []
        summaries = evaluate.summarise(table, seed=seed)
        better = self.higher_is_better(measure)
        found = np.full((len(self.ways), 3), np.nan)
        found[known] = evaluate.places(table[:, known], higher_is_better=better, seed=seed)
        means = np.array([one.mean for one in summaries])
        best = int(np.nanargmax(means if better else -means))
        pairs = evaluate.all_pairs(table, seed=seed)
        results = []
        for number, (way, summary) in enumerate(zip(self.ways, summaries, strict=True)):
            row = self._against_best(table, number, best, pairs, better)
            chance = self._against_chance(number, pairs, better)
            place, place_low, place_high = found[number].tolist()
            results.append(
                Result(
                    measure, replace, way, **summary._asdict(), place=place, place_low=place_low, place_high=place_high,
                    best=self.ways[best], **row, beats_chance=chance,
                )
            )  # fmt: skip
        return sorted(results, key=lambda one: (np.isnan(one.place), one.place))

    def _against_best(self, table: Floats, number: int, best: int, pairs: Any, better: bool) -> dict[str, Any]:
        names = ("difference", "effect", "effect_low", "effect_high", "p", "detectable", "verdict")
        pair = pairs.get((min(number, best), max(number, best)))
        if pair is None:
            alone = "best" if number == best else NOTHING_SHOWN
            return dict(zip(names, (0.0, 0.0, 0.0, 0.0, np.nan, np.nan, alone), strict=True))
        effect = evaluate.effect_size(table[:, number] - table[:, best], resamples=500)
        difference = pair.difference if number < best else -pair.difference
        verdict = "worse" if self._shown(pair) and (difference < 0) == better else NOTHING_SHOWN
        return dict(zip(names, (difference, *effect, pair.p_corrected, pair.detectable, verdict), strict=True))

    def _against_chance(self, number: int, pairs: Any, better: bool) -> str:
        if CHANCE not in self.ways or self.ways[number] == CHANCE:
            return ""
        chance = self.ways.index(CHANCE)
        pair = pairs.get((min(number, chance), max(number, chance)))
        if pair is None or not self._shown(pair):
            return NOTHING_SHOWN
        difference = pair.difference if number < chance else -pair.difference
        return "better" if (difference > 0) == better else "worse"

    def _shown(self, pair: Any) -> bool:
        return bool(pair.p_corrected <= 0.05)

    def to_text(self) -> str:
        """For a terminal."""
        from attnflow.study._tables import text

        return text(self)

    def to_markdown(self) -> str:
        """For a page."""
        from attnflow.study._tables import markdown

        return markdown(self)

    def to_csv(self) -> str:
        """One row for each result."""
        from attnflow.study._tables import as_csv

        return as_csv(self.results)

    def to_json(self) -> str:
        """The results and how they were made; what is not a number is null."""
        from attnflow.study._tables import as_json

        return as_json(self)

    def to_html(self) -> str:
        """One page that works from disk."""
        from attnflow.study._page import evidence_page

        return evidence_page(self)

    @property
    def forms(self) -> dict[str, Callable[[], str]]:
        """What it can be written as, by the endings of files."""
        return {"html": self.to_html, "md": self.to_markdown, "csv": self.to_csv, "json": self.to_json, "txt": self.to_text}  # fmt: skip

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the form that the file's ending names."""
        return save_as(path, self.forms)
