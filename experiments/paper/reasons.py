"""Tables 1 and 2: what was measured that goes with the differences from the paper."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnflow import evaluate

from .page import Claim, table
from .policies import BLANKED, COUNTED, EXCLUDED, correlations, set_beside
from .published import TABLE_1
from .store import Record

FEWEST = 20  # sentences worth a row of their own
QUICK = 100  # resamples where only means are read


def _drop(reports: dict[str, evaluate.Report], policy: str, key: str = "blank-out") -> str:
    raw, rollout = (reports[policy].cell(method, 0, key).mean for method in ("raw", "rollout"))
    return f"{raw:.2f} → {rollout:.2f}"


def first_level_claim(reports: dict[str, evaluate.Report]) -> Claim:
    """Whether the residual alone lowers the correlation."""
    raw, rollout = (reports[COUNTED].cell(method, 0, "blank-out").mean for method in ("raw", "rollout"))
    return Claim(
        "Table 1: at the first layer raw has 0.69, and with the residual (rollout) 0.32",
        f"{_drop(reports, COUNTED)} where the class token is an input without importance, {_drop(reports, EXCLUDED)} where it is left out",
        "in part" if rollout < raw else "no",
    )


def first_level(reports: dict[str, evaluate.Report], records: Sequence[Record]) -> str:
    """Why raw and rollout differ at the first layer."""
    raw, rollout = (reports[EXCLUDED].values["blank-out", method][:, 0] for method in ("raw", "rollout"))
    apart = float(np.nanmax(np.abs(raw - rollout)))
    own = np.mean([record["raw"][0, 0] for record in records])
    place = np.mean([np.mean(np.abs(r["blank"][1:]) < abs(float(r["class_drop"]))) for r in records])
    same = "exactly equal" if apart < 1e-9 else f"equal but for {apart:.1g}"
    return (
        f"**The drop at the first layer.** Rollout is there raw attention with half of the weight put on the class token's own entry (raw has "
        f"{own:.2f} there on average). Without the class token the two are {same} in every sentence: a drop can only come from that one entry. "
        f"Counted with an importance of 0, the correlation with blank-out goes {_drop(reports, COUNTED)}. Counted with what replacing it does "
        f"(more than replacing {place:.0%} of the words), it goes {_drop(reports, BLANKED)}; with gradients, {_drop(reports, COUNTED, 'gradient')}. "
        "The paper has 0.69 → 0.32 and 0.53 → 0.22: such a fall needs a class token that is counted and matters little."
    )


def reasons(records: Sequence[Record], reports: dict[str, evaluate.Report]) -> list[str]:
    """What was measured that goes with the differences from the paper."""
    last = len(reports[EXCLUDED].levels) - 1
    limited = np.mean([record["saturation"] for record in records], axis=0)
    flow = [reports[EXCLUDED].cell("flow", level, "blank-out").mean for level in range(last + 1)]
    dense = correlations(records, EXCLUDED, "spearman_dense", resamples=QUICK)
    rows = [f"L{level + 1} {limited[level]:.0%}, {flow[level]:.2f}" for level in range(last + 1)]
    both = {
        method: [report.cell(method, last, "blank-out").mean for report in (reports[EXCLUDED], dense)]
        for method in dense.methods
    }
    found = [
        "**Flow and its limits.** A flow that is limited by all that leaves the query, or by all that enters the input, no longer depends on "
        f"what lies between. The share of such flows, and flow's correlation with blank-out: {'; '.join(rows)}.",
        "**Dense ranks.** With the formula of the paper's released code instead of Spearman's, the last layer's correlations go "
        + ", ".join(f"{before:.2f} → {after:.2f} ({method})" for method, (before, after) in both.items())
        + ". The two differ only where scores are tied.",
    ]
    plain = [record for record in records if int(record["attractors"]) == 0]
    if FEWEST <= len(plain) < len(records):
        there = set_beside(reports[EXCLUDED], "blank-out", TABLE_1).distance()
        here = set_beside(correlations(plain, EXCLUDED, resamples=QUICK), "blank-out", TABLE_1).distance()
        found.append(
            f"**The sentences.** Most sentences of Linzen et al. have no attractor; of these {len(records)}, {len(plain)} have none. On those "
            f"alone Table 1's mean distance from the paper is {here:.2f} instead of {there:.2f}: the attractors "
            + ("do not make the difference." if here > there - 0.05 else "make part of the difference.")
        )
    return found


def by_attractors(records: Sequence[Record]) -> str:
    """Table 1 again for each number of attractors."""
    counts = np.array([int(record["attractors"]) for record in records])
    rows = []
    for number in sorted(set(counts.tolist())):
        chosen = [record for record, count in zip(records, counts, strict=True) if count == number]
        if len(chosen) < FEWEST:
            continue
        report = correlations(chosen, EXCLUDED, resamples=QUICK)
        name = "unknown" if number < 0 else str(number)
        rows += [
            [name, str(len(chosen)), method, *(f"{report.cell(method, i, 'blank-out').mean:.2f}" for i in range(len(report.levels)))]
            for method in report.methods
        ]  # fmt: skip
    if not rows:
        return "Too few sentences with the same number of attractors."
    levels = [f"L{i + 1}" for i in range(len(rows[0]) - 3)]
    note = f"Mean correlation with |blank-out|, class token excluded, for numbers of attractors that at least {FEWEST} sentences have."
    return note + "\n\n" + table(["attractors", "sentences", "method", *levels], rows)


def other_statistics(records: Sequence[Record]) -> str:
    """Table 1 again by other rank correlations."""
    rows = []
    for policy in (COUNTED, EXCLUDED):
        for statistic in ("spearman", "spearman_dense", "kendall"):
            report = correlations(records, policy, statistic, resamples=QUICK)
            rows += [
                [policy, statistic, method, *(f"{report.cell(method, i, 'blank-out').mean:.2f}" for i in range(len(report.levels)))]
                for method in report.methods
            ]  # fmt: skip
    note = (
        "Mean correlation with |blank-out|. `spearman_dense` is the formula of the paper's released code, 1 − 6 Σd²/(n(n²−1)) over dense ranks, "
        "which equals Spearman's only where nothing is tied; flows are tied where they are limited by the same cut."
    )
    return note + "\n\n" + table(["class token", "statistic", "method", *report.levels], rows)
