"""Sanity checks: a map that passes them may still be wrong; one that fails them is not about the model, or not about the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from attnflow import capture, evaluate
from attnflow.errors import InvalidArgument
from attnflow.study._baselines import baselines_called
from attnflow.study._subject import Subject
from attnflow.study._ways import Floats, Way, named

ALIKE = 0.9  # a rank correlation from which two maps of an input say the same


class Check(NamedTuple):
    """One map under one check: the mean rank correlation over inputs of the map before and after, and what is wanted of it.

    `passed` is None where the interval leaves it open.
    """

    check: str
    way: str
    n: int
    mean: float
    low: float
    high: float
    wanted: str
    passed: bool | None


WANTED = {
    "randomised weights": f"below {ALIKE}: the map must change with what the model has learnt",
    "permuted words": f"below {ALIKE}: the map must not depend on places alone",
    "other class": f"below {ALIKE}: the map of another class must be another one",
}


def sanity(
    model: Any,
    data: Any,
    ways: Sequence[Way | str] = ("raw", "rollout", "flow"),
    *,
    tokenizer: Any = None,
    baselines: Sequence[str] = (),
    target: Any = None,
    other: Any = None,
    truncate: bool = False,
    seed: int = 0,
) -> list[Check]:
    """Three checks of every way and baseline, as mean Spearman correlations with intervals.

    - randomised weights: the same input in a twin whose weights are shuffled (Adebayo et al. 2018).
    - permuted words: the input's tokens in random order; the two maps are compared *place by place*, so a map that looks at
      places and not at words stays the same.
    - other class: the map for another class or token than the predicted one (`other`, by default the next class); only
      maps that know a target can pass. Left out where the model has one output.
    """
    chosen, others = (
        named([Way("raw", residual=None) if way == "raw" else way for way in ways]),
        baselines_called(baselines),
    )
    subject = Subject.of(model, data, tokenizer, target, truncate=truncate)
    before = _maps(subject, chosen, others, seed)
    twin = Subject.of(capture.randomised(subject.model, seed), subject.inputs, subject.tokenizer, list(subject.targets), truncate=truncate)  # fmt: skip
    changed = {"randomised weights": _maps(twin, chosen, others, seed)}
    shuffled = Subject.of(subject.model, _permuted(subject, seed), subject.tokenizer, list(subject.targets))
    changed["permuted words"] = _maps(shuffled, chosen, others, seed)
    classes = _other_targets(subject, other)
    if classes is not None:
        away = Subject.of(subject.model, subject.inputs, subject.tokenizer, classes, truncate=truncate)
        changed["other class"] = _maps(away, chosen, others, seed)
    return [
        _checked(check, way, before[way], after[way], seed) for check, after in changed.items() for way in before
    ]  # fmt: skip


def _maps(subject: Subject, ways: dict[str, Way], others: dict[str, Any], seed: int) -> dict[str, list[Floats]]:
    found = subject.maps(ways.values())
    return found | {name: made(subject, "unk", seed) for name, made in others.items()}


def _permuted(subject: Subject, seed: int) -> list[list[int]]:
    """Every input's token ids, those that may be removed in random order, the others where they are."""
    if subject.tokenizer is None:
        raise InvalidArgument("the sanity checks permute words; an image has none. Give texts, or token ids.")
    rng = np.random.default_rng(seed)
    found = []
    for text, one in zip(subject.inputs, subject.ablations("mean"), strict=True):
        ids = text if not isinstance(text, str) else subject.tokenizer(text)["input_ids"]
        if isinstance(text, tuple) or len(ids) != len(one.tokens):
            raise InvalidArgument("words can be permuted in single texts, or token ids, that fit the model's length.")
        row = np.array(ids)
        places = np.flatnonzero(one.removable)
        row[places] = row[rng.permutation(places)]
        found.append([int(i) for i in row])
    return found


def _other_targets(subject: Subject, other: Any) -> list[Any] | None:
    if other is not None:
        return list(other) if isinstance(other, list) else [other] * len(subject.inputs)
    count = int(getattr(subject.model.config, "num_labels", 0) or 0)
    if not type(subject.model).__name__.endswith("ForSequenceClassification") or count < 2:
        return None
    return [(target + 1) % count if isinstance(target, int) else 0 for target in subject.targets]


def _checked(check: str, way: str, before: list[Floats], after: list[Floats], seed: int) -> Check:
    alike = np.array([_alike(one, other) for one, other in zip(before, after, strict=True)])
    [found] = evaluate.summarise(alike, seed=seed)
    low, high = (found.low, found.high) if found.n > 1 else (found.mean, found.mean)
    passed = True if high < ALIKE else False if low >= ALIKE else None
    return Check(check, way, found.n, found.mean, found.low, found.high, WANTED[check], passed)


def _alike(one: Floats, other: Floats) -> float:
    """Rank correlation; maps that are the same are alike even where all their scores tie."""
    if np.allclose(one, other, rtol=1e-6, atol=1e-12):
        return 1.0
    return evaluate.correlation(one, other)
