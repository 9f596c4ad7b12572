"""How much a model relies on each group of words, input by input."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attnflow import evaluate
from attnflow.study._baselines import BASELINES
from attnflow.study._subject import Subject
from attnflow.study._ways import Floats, Way
from attnflow.tokens import Tokens

Group = tuple[str, str]  # (kind, name)

QUARTERS = ("first quarter", "second quarter", "third quarter", "last quarter")


EFFECTS = ("occlusion",)  # scores with a unit of their own: by how much the probability falls


@dataclass(frozen=True, eq=False)
class Reading:
    """One input as a model reads it: its words (special tokens among them), and how much of the answer lies on each.

    By a map: its share, in times of an even share. By occlusion: by how much the target's probability moves. (As shares, the
    noise of inputs on which nothing has an effect would count as much as the effects of the others.)
    """

    labels: tuple[str, ...]
    special: tuple[bool, ...]
    values: Floats

    def distance(self, other: Reading) -> float:
        """How far two readings of the same words are apart: ½ Σ |p − q| over the words; NaN for other words."""
        if self.labels != other.labels:
            return math.nan
        return float(np.abs(self.values - other.values).sum() / 2)


def readings(subject: Subject, way: Way | str, replace: str) -> list[Reading]:
    """Each input's map over words."""
    tokens = [one.tokens for one in subject.ablations(replace)]
    if isinstance(way, Way):
        rows = [way.scores(graph, len(own)) for graph, own in zip(subject.graphs(way), tokens, strict=True)]
    else:
        rows = [
            features.of_token.T @ row
            for features, row in zip(subject.features, BASELINES[way](subject, replace, 0), strict=True)
        ]
    return [_reading(own, row, shares=way not in EFFECTS) for own, row in zip(tokens, rows, strict=True)]


def _reading(tokens: Tokens, scores: Floats, *, shares: bool) -> Reading:
    """Sub-words added up to words; negative scores of a map count as none, effects by their size."""
    starts = {word.start: word for word in tokens.words}
    labels, special, sums = [], [], []
    position = 0
    while position < len(tokens):
        word = starts.get(position)
        stop = word.stop if word else position + 1
        labels.append(word.label.lower() if word else tokens.labels[position])
        special.append(bool(tokens.special[position:stop].all()))
        part = scores[position:stop]
        sums.append(float(np.maximum(part, 0).sum() if shares else np.abs(part).sum()))
        position = stop
    row = np.array(sums)
    if shares:
        row = row / row.sum() * len(row) if row.sum() > 0 else np.ones(len(row))
    return Reading(tuple(labels), tuple(special), row)


def groups_of(
    reading: Reading, word_class: Callable[[str], str], lists: Mapping[str, frozenset[str]]
) -> list[tuple[Group, ...]]:
    """The groups that each word of an input is in."""
    own = [place for place, special in enumerate(reading.special) if not special]
    rank = {place: number for number, place in enumerate(own)}
    found: list[tuple[Group, ...]] = []
    for place, (label, special) in enumerate(zip(reading.labels, reading.special, strict=True)):
        if special:
            found.append((("special token", label),))
            continue
        quarter = QUARTERS[min(3, 4 * rank[place] // len(own))]
        named = [("word list", name) for name, words in lists.items() if label in words]
        found.append((("word class", word_class(label)), ("position", quarter), *named, ("word", label)))
    return found


def reliance(
    several: Sequence[Reading], word_class: Callable[[str], str], lists: Mapping[str, frozenset[str]]
) -> dict[Group, Floats]:
    """For each group and input the mean over the group's words; NaN where the input has no such word."""
    found: dict[Group, Floats] = {}
    for number, reading in enumerate(several):
        held: dict[Group, list[float]] = {}
        for value, groups in zip(reading.values.tolist(), groups_of(reading, word_class, lists), strict=True):
            for group in groups:
                held.setdefault(group, []).append(value)
        for group, values in held.items():
            row = found.setdefault(group, np.full(len(several), np.nan))
            row[number] = float(np.mean(values))
    return found


def compared(before: Floats, after: Floats, *, paired: bool, seed: int) -> dict[str, float]:
    """The move of a group's mean from one side to the other, with interval, effect size and p."""
    if paired:
        both = ~np.isnan(before) & ~np.isnan(after)
        [test] = evaluate.paired_tests(after[both], before[both], seed=seed) if both.sum() > 1 else [None]
        if test is None:
            return {}
        effect = evaluate.effect_size(after[both] - before[both], resamples=200, seed=seed).size
        means = float(before[both].mean()), float(after[both].mean())
        return {"n": test.n, "other_n": test.n, "before": means[0], "after": means[1], "difference": test.difference,
                "low": test.low, "high": test.high, "effect": effect, "p": test.p}  # fmt: skip
    one, other = before[~np.isnan(before)], after[~np.isnan(after)]
    if min(len(one), len(other)) < 2:
        return {}
    low, high = evaluate.difference_interval(other, one, seed=seed)
    pooled = math.sqrt((one.var(ddof=1) + other.var(ddof=1)) / 2)
    difference = float(other.mean() - one.mean())
    return {"n": len(one), "other_n": len(other), "before": float(one.mean()), "after": float(other.mean()),
            "difference": difference, "low": low, "high": high, "effect": difference / pooled if pooled > 0 else math.nan,
            "p": evaluate.two_sample_test(other, one, seed=seed)}  # fmt: skip
