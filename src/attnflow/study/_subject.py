"""What is measured on: a model with its inputs, the features that may be taken away, and maps over these features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnflow import capture
from attnflow.errors import InvalidArgument, suggest
from attnflow.study._ways import Floats, Way

UNITS = ("token", "word")


@dataclass(frozen=True, eq=False)
class Features:
    """Groups of tokens that are taken away together: single tokens, or words. Special tokens are in none."""

    groups: tuple[tuple[int, ...], ...]
    count: int  # of the tokens
    labels: tuple[str, ...]

    @cached_property
    def of_token(self) -> NDArray[np.bool_]:
        """Which tokens are in which feature [feature, token]."""
        table = np.zeros((len(self.groups), self.count), dtype=np.bool_)
        for number, group in enumerate(self.groups):
            table[number, list(group)] = True
        return table

    def add_up(self, scores: Floats) -> Floats:
        """Scores of tokens as scores of features."""
        return np.asarray(self.of_token @ np.asarray(scores, dtype=np.float64)[: self.count])

    def tokens_kept(self, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Variants [variant, feature] as variants of tokens; tokens in no feature stay."""
        return np.asarray(~(~kept @ self.of_token))


def features_of(ablation: Any, unit: str) -> Features:
    """The features of an input: what its ablation may remove, token by token or word by word."""
    if unit not in UNITS:
        raise InvalidArgument(f"unknown unit {unit!r}." + suggest(unit, UNITS))
    tokens, removable = ablation.tokens, ablation.removable
    groups: list[tuple[int, ...]] = []
    labels = []
    starts = {word.start: word for word in tokens.words} if unit == "word" else {}
    position = 0
    while position < len(tokens):
        word = starts.get(position)
        stop = word.stop if word else position + 1
        inside = tuple(i for i in range(position, stop) if removable[i])
        if inside:
            groups.append(inside)
            labels.append(word.label if word else tokens.labels[position])
        position = stop
    return Features(tuple(groups), len(tokens), tuple(labels))


@dataclass(frozen=True, eq=False)
class Subject:
    """A model and inputs; what is found out about them is kept, so that every map and measure reads the same runs."""

    model: Any
    tokenizer: Any
    inputs: Sequence[Any]
    targets: list[Any]
    unit: str = "token"
    truncate: bool = False
    batch_size: int = 32
    _ablations: dict[str, list[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Any, data: Any, tokenizer: Any, target: Any, **options: Any) -> Subject:
        """Opened, the targets fixed: the class or token that the model predicts on the whole input, unless others are given."""
        inputs = list(data) if isinstance(data, Iterable) and not isinstance(data, str) else []
        if not inputs:
            raise InvalidArgument(
                "data is a list of inputs, at least one: texts, pairs of texts or lists of token ids."
            )
        loaded: Any = capture.load(model)
        if getattr(loaded, "main_input_name", "") != "pixel_values":
            tokenizer = capture.tokenizer_for(loaded, tokenizer, model if isinstance(model, str) else None)
        subject = cls(loaded, tokenizer, inputs, list(target) if isinstance(target, list) else [target] * len(inputs), **options)  # fmt: skip
        for number, one in enumerate(subject.ablations("mean")):  # needs no token of its own
            if not callable(one.target):
                subject.targets[number] = one.target
        return subject

    @property
    def asked(self) -> dict[str, Any]:
        """What every capture of these inputs is told."""
        return {"tokenizer": self.tokenizer, "truncate": self.truncate}

    def ablations(self, replace: str) -> list[Any]:
        """Each input as a function of which tokens are kept."""
        if replace not in self._ablations:
            self._ablations[replace] = capture.ablation(
                self.model,
                self.inputs,
                **self.asked,
                target=list(self.targets),
                replace=replace,
                batch_size=self.batch_size,
            )
        return self._ablations[replace]

    @cached_property
    def features(self) -> list[Features]:
        """Each input's features."""
        return [features_of(one, self.unit) for one in self.ablations("mean")]

    def predict(self, replace: str, number: int) -> Callable[[NDArray[np.bool_]], Floats]:
        """One input's target by which features are kept."""
        one, features = self.ablations(replace)[number], self.features[number]
        return lambda kept: one(features.tokens_kept(kept))

    def maps(self, ways: Iterable[Way]) -> dict[str, list[Floats]]:
        """Scores of every input's features, by way. The model runs once for each distinct mixing, whatever the methods."""
        by_mixing: dict[str, list[Way]] = {}
        for way in ways:
            by_mixing.setdefault(repr(way.mixing), []).append(way)
        found: dict[str, list[Floats]] = {}
        for some in by_mixing.values():
            graphs = self.graphs(some[0])
            for way in some:
                found[way.name] = [
                    features.add_up(way.scores(graph, features.count))
                    for graph, features in zip(graphs, self.features, strict=True)
                ]
        return found

    def graphs(self, way: Way) -> list[Any]:
        """Each input's graph, mixed as the way says."""
        found = capture.graph(self.model, list(self.inputs), **self.asked, target=list(self.targets), **way.mixing)
        return list(found)

    def of_references(self, several: Sequence[Any], *, size: bool) -> list[Floats]:
        """References as scores of features: their size, or with their sign."""
        rows = [one.scores if size else one.signed for one in several]
        return [features.add_up(row) for features, row in zip(self.features, rows, strict=True)]
