"""faithfulness: which maps tell the truth about a model, measured on the model itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from attnflow import evaluate
from attnflow.errors import InvalidArgument, suggest
from attnflow.study._baselines import BY_REPLACEMENT, baselines_called
from attnflow.study._evidence import Evidence, Key
from attnflow.study._subject import Subject
from attnflow.study._ways import Floats, Way, named

REFERENCES = ("occlusion", "gradient", "integrated gradients")
WAYS = ("raw", "rollout", "flow")
BASELINES = ("random", "last layer", "occlusion", "gradient", "integrated gradients", "grad-cam", "shap")

Table = dict[Key, Floats]


def faithfulness(
    model: Any,
    data: Any,
    ways: Sequence[Way | str] = WAYS,
    *,
    tokenizer: Any = None,
    baselines: Sequence[str] = BASELINES,
    replace: str | Sequence[str] = ("unk", "remove"),
    references: Sequence[str] = REFERENCES,
    target: Any = None,
    truth: Sequence[Any] | None = None,
    unit: str = "token",
    steps: int | None = 10,
    share: float = 0.2,
    truncate: bool = False,
    batch_size: int = 32,
    seed: int = 0,
    progress: bool = False,
) -> Evidence:
    """Every way and baseline on every input, by every measure: Evidence, with intervals, tests and places.

    `data`: a list of texts (or pairs, or token ids). `ways` are `study.Way`, or names of methods; `study.ways(edges=…, residual=…,
    …)` makes all combinations. What a map ranks highest is taken away, or is all that is kept, and the target's probability
    is watched (`evaluate.MEASURES`); `replace` says what is put in the place of a token, and several are measured apart,
    because the replacement changes who wins. `target` as in `capture.blank_out`; by default what the model predicts. `references`:
    baselines whose size each map is correlated with (Spearman). `truth`: for each input the positions, or a mask, of the
    tokens that the output depends on, where that is known. `unit`: "token" or "word". `steps` and `share` are those of
    `evaluate.curves` and of the measures that look at one place of a curve.
    """
    replacements = [replace] if isinstance(replace, str) else list(replace)
    if not replacements:
        raise InvalidArgument("faithfulness needs a replacement: unk, mask, pad, remove or mean.")
    chosen, others = (
        named([Way("raw", residual=None) if way == "raw" else way for way in ways]),
        baselines_called(baselines),
    )
    if both := set(chosen) & set(others):
        raise InvalidArgument(f"{sorted(both)} are names of baselines: give these ways other labels.")
    if not chosen and not others:
        raise InvalidArgument("there is nothing to measure: give at least one way or baseline.")
    for name in references:
        if name not in REFERENCES:
            raise InvalidArgument(f"unknown reference {name!r}." + suggest(name, REFERENCES))
    subject = Subject.of(model, data, tokenizer, target, unit=unit, truncate=truncate, batch_size=batch_size)
    shown = tqdm(total=len(subject.inputs) * len(replacements), disable=not progress, unit="input")
    fixed = subject.maps(chosen.values())
    fixed |= {name: made(subject, replacements[0], seed) for name, made in others.items() if name not in BY_REPLACEMENT}
    importances = {name: made(subject, replacements[0], seed) for name, made in baselines_called(references).items() if name not in BY_REPLACEMENT}  # fmt: skip
    values: Table = {}
    for replacement in replacements:
        moving = {name: made(subject, replacement, seed) for name, made in others.items() if name in BY_REPLACEMENT}
        maps = {name: (fixed | moving)[name] for name in (*chosen, *others)}
        values |= _perturbed(subject, maps, replacement, steps, share, seed, shown)
        if "occlusion" in references:
            own = moving.get("occlusion") or baselines_called(["occlusion"])["occlusion"](subject, replacement, seed)
            values["correlation with occlusion", replacement] = _correlations(maps, own)
    shown.close()
    for name, rows in importances.items():
        values[f"correlation with {name}", ""] = _correlations(maps, rows)
    if truth is not None:
        values |= _against_truth(subject, maps, truth)
    options = {
        "model": getattr(subject.model, "name_or_path", "") or type(subject.model).__name__, "replace": replacements,
        "unit": unit, "steps": steps, "share": share, "seed": seed, "inputs": len(subject.inputs),
        "flags": {name: way.flags for name, way in chosen.items()},
    }  # fmt: skip
    return Evidence(values, tuple(maps), options)


def _perturbed(
    subject: Subject,
    maps: dict[str, list[Floats]],
    replace: str,
    steps: int | None,
    share: float,
    seed: int,
    shown: Any,
) -> Table:
    """Every measure that is read off curves [input, map]; NaN for an input without features."""
    found = {name: np.full((len(subject.inputs), len(maps)), np.nan) for name in evaluate.MEASURES}
    for number, features in enumerate(subject.features):
        shown.update()
        if not features.groups:
            continue
        rows = [several[number] for several in maps.values()]
        made = evaluate.curves(rows, subject.predict(replace, number), steps=steps, seed=seed + number)
        for name, table in found.items():
            table[number] = [evaluate.measured(one, name, share) for one in made]
    return {(name, replace): table for name, table in found.items()}


def _correlations(maps: dict[str, list[Floats]], importances: list[Floats]) -> Floats:
    """Spearman's correlation of each map with the size of an importance [input, map]."""
    wanted = [np.abs(row) for row in importances]
    return np.array(
        [[evaluate.correlation(rows[number], row) for rows in maps.values()] for number, row in enumerate(wanted)]
    )


def _against_truth(subject: Subject, maps: dict[str, list[Floats]], truth: Sequence[Any]) -> Table:
    if len(truth) != len(subject.inputs):
        raise InvalidArgument(f"truth has {len(truth)} inputs, the data {len(subject.inputs)}.")
    found = {name: np.full((len(truth), len(maps)), np.nan) for name in evaluate.AGAINST_TRUTH}
    for number, (features, one) in enumerate(zip(subject.features, truth, strict=True)):
        mask = _mask(one, features.count, number)
        for place, rows in enumerate(maps.values()):
            scored = evaluate.against_truth(rows[number], features.add_up(mask) > 0)
            for name, value in scored.items():
                found[name][number, place] = value
    return {(name, "truth"): table for name, table in found.items()}


def _mask(one: Any, count: int, number: int) -> Floats:
    given = np.asarray(one)
    mask = np.zeros(count)
    if (given.dtype == np.bool_ and given.shape == (count,)) or (
        given.ndim == 1 and given.dtype.kind in "iu" and (given.size == 0 or (given.min() >= 0 and given.max() < count))
    ):
        mask[given] = 1
    else:
        raise InvalidArgument(
            f"the truth of input {number} is positions or a mask of its {count} tokens, got {one!r:.80}."
        )
    return mask
