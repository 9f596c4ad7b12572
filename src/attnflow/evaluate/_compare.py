"""compare: how well attributions agree with reference importances, with intervals and tests."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from attnflow.artifacts import jsonable
from attnflow.attribution import Attribution
from attnflow.errors import InvalidArgument, suggest
from attnflow.evaluate._correlations import RowStatistic, Statistic, statistic_called
from attnflow.evaluate._inference import TESTS, holm, paired_tests, smallest_detectable, summarise
from attnflow.evaluate._report import Cell, Difference, Report
from attnflow.evaluate._rows import Floats, Rows
from attnflow.evaluate._select import Choice, by_method, by_reference, score_rows

BY = ("level", "method")
UNDEFINED = ("omit", "zero")


def compare(
    attributions: Any,
    references: Any,
    by: str = "level",
    *,
    statistic: str | RowStatistic = "spearman",
    query: int | str | None = None,
    over: str | None = None,
    count_own: bool = True,
    count_special: bool = True,
    absolute: bool = False,
    undefined: str = "omit",
    ties: float = 1e-9,
    test: str = "permutation",
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Report:
    """Correlate attributions with reference importances, sentence by sentence, and average over sentences.

    `attributions`: for each method a list, one per sentence ({"rollout": [...], "flow": [...]}); a bare list is sorted by
    method. `references`: one array of importances per sentence, a number for each token, or several references by name.
    An Attribution of one level and query will do, and so will what `capture.blank_out` returns (its size; give its
    `.signed` for the direction). What is compared is the row of `query` (an index or a token, needed when there are
    several), or the "max" or "mean" `over` all queries.

    - `by="level"`: one result per level; `by="method"`: each sentence's correlations averaged over its levels first.
    - `statistic`: "spearman" (ties by average ranks), "kendall" (τ_b), "spearman_dense" (the released code of Abnar &
      Zuidema 2020, see there), or a function of two arrays.
    - `count_own=False` leaves the query's own token out, `count_special=False` the other special tokens.
    - `absolute=True` compares with the size of the references; otherwise with their signed values.
    - `ties`: values nearer than this share of their row's largest are tied (searched flows differ in the last digits).
    - `undefined`: a row of one input, or of equal values, has no rank correlation. "omit" leaves the sentence out of that
      cell and counts it; "zero" takes it as 0.
    - `test`: every pair of methods on the same sentences, by "permutation" of signs or "wilcoxon"; all p-values of the
      report are Holm-corrected together. Intervals are bootstrapped over sentences.
    """
    for value, known, what in ((by, BY, "by"), (undefined, UNDEFINED, "undefined"), (test, TESTS, "test")):
        if value not in known:
            raise InvalidArgument(f"unknown value for {what} {value!r}." + suggest(value, known))
    choice = Choice(query, over, count_own, count_special)
    methods = by_method(attributions)
    sentences = next(iter(methods.values()))
    kept = [choice.kept(attribution) for attribution in sentences]
    values: dict[tuple[str, str], Floats] = {}  # (reference, method): [sentence, cell]
    rows = {name: score_rows(several, choice) for name, several in methods.items()}
    for reference, importances in by_reference(references, sentences).items():
        wanted = Rows.of([row[mask] for row, mask in zip(importances, kept, strict=True)])
        if absolute:
            wanted = Rows(np.abs(wanted.values), wanted.owner, wanted.count)
        for name, levels in rows.items():
            values[reference, name] = _correlations(levels, wanted, statistic_called(statistic), ties, undefined, by)
    options = {
        "by": by, "statistic": jsonable(statistic), "query": query, "over": over, "count_own": count_own,
        "count_special": count_special, "absolute": absolute, "undefined": undefined, "ties": ties, "test": test,
        "confidence": confidence, "resamples": resamples, "seed": seed, "sentences": len(sentences),
    }  # fmt: skip
    names = _cell_names(sentences[0], by)
    return Report(_cells(values, names, options), _differences(values, names, options), values, options)


def _correlations(
    levels: list[Rows], wanted: Rows, statistic: Statistic, ties: float, undefined: str, by: str
) -> Floats:
    found = np.stack([statistic(level, wanted, ties) for level in levels], axis=1)
    if undefined == "zero":
        found = np.nan_to_num(found, nan=0.0)
    if by == "level":
        return found
    present = ~np.isnan(found)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(present, found, 0.0).sum(axis=1, keepdims=True) / present.sum(axis=1, keepdims=True))


def _cell_names(attribution: Attribution, by: str) -> list[str]:
    return list(attribution.level_names) if by == "level" else ["all levels"]


def _cells(values: Mapping[tuple[str, str], Floats], names: list[str], options: Mapping[str, Any]) -> tuple[Cell, ...]:
    keywords = {name: options[name] for name in ("confidence", "resamples", "seed")}
    keys = [(*key, name) for key in values for name in names]
    summaries = summarise(np.hstack(list(values.values())), **keywords)
    return tuple(Cell(*key, **summary._asdict()) for key, summary in zip(keys, summaries, strict=True))


def _differences(
    values: Mapping[tuple[str, str], Floats], names: list[str], options: Mapping[str, Any]
) -> tuple[Difference, ...]:
    pairs = [(one, other) for one, other in combinations(values, 2) if one[0] == other[0]]
    if options["sentences"] < 2 or not pairs:
        return ()
    keywords = {name: options[name] for name in ("test", "confidence", "resamples", "seed")}
    keys = [(*one, other[1], name) for one, other in pairs for name in names]
    first, second = (np.hstack([values[pair[side]] for pair in pairs]) for side in (0, 1))
    tests = paired_tests(first, second, **keywords)
    corrected = holm(np.array([test.p for test in tests]))
    alpha, count = 1 - options["confidence"], int((~np.isnan(corrected)).sum())
    return tuple(
        Difference(
            *key,
            **test._asdict(),
            p_corrected=float(p),
            alpha=alpha,
            detectable=smallest_detectable(test.sd, test.n, alpha=alpha, tests=count),
        )
        for key, test, p in zip(keys, tests, corrected, strict=True)
    )
