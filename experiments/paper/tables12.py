"""Tables 1 and 2: which map of the class token goes with what the model needs?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnflow import evaluate

from .beside import Beside, tests_table, verdicts
from .measure import attributions
from .page import Page, as_csv, table
from .published import PROVENANCE, TABLE_1, TABLE_2, Row
from .store import Record, write

# How the class token, which is the query, is treated as an input.
COUNTED, BLANKED, EXCLUDED = "counted", "counted, blanked too", "excluded"
ABOUT = {
    COUNTED: "the class token is one of the inputs; blank-out leaves it alone, so its importance is 0",
    BLANKED: "the class token is one of the inputs and is replaced by UNK as well, so it has an importance of its own",
    EXCLUDED: "the class token is the query only and left out of the correlation",
}


def run(records: Sequence[Record], about: str, out: Path) -> Page:
    """Correlations under each policy, beside the paper's, with tests."""
    page = Page("tables12", "Tables 1 and 2: verb number, blank-out and input gradients")
    page.add(_method(records, about))
    reports = {policy: _report(records, policy) for policy in (COUNTED, BLANKED, EXCLUDED)}
    cells: list[dict[str, Any]] = []
    tests: list[dict[str, Any]] = []
    for title, key, printed, policies in (
        ("Table 1: blank-out", "blank-out", TABLE_1, (COUNTED, BLANKED, EXCLUDED)),
        ("Table 2: input gradients", "gradient", TABLE_2, (COUNTED, EXCLUDED)),
    ):
        page.add(f"## {title}", *_one_table(page, title.split(":")[0], key, printed, {p: reports[p] for p in policies}))
        for policy in policies:
            for reference in reports[policy].references:
                if reference.startswith(key):
                    beside = _beside(reports[policy], reference, printed)
                    cells += beside.rows(table=title, policy=policy)
            tests += [
                {"policy": policy, **_flat(d)} for d in reports[policy].differences if d.reference.startswith(key)
            ]
    page.findings.append(_first_level(reports, records))
    page.add("## Other ways to count", _other_statistics(records))
    write(out / "tables12.csv", as_csv(cells))
    write(out / "tables12_tests.csv", as_csv(tests))
    return page


def _method(records: Sequence[Record], about: str) -> str:
    pieces = [len(record["labels"]) for record in records]
    right = np.mean([float(record["probability"]) > 0.5 for record in records])
    return (
        f"{len(records)} {about}; {np.mean(pieces):.1f} tokens on average ({min(pieces)} to {max(pieces)}, the class token included). "
        f"The model gives the correct number on {right:.1%} of them. Its attention is averaged over heads; raw is without, rollout and flow "
        "with the residual (0.5 W + 0.5 I). Blank-out: the fall of the correct class's probability when a token becomes UNK, its size "
        "(|·|) or with its sign. Gradients: of the correct class's logit, summed over the embedding's dimensions, its size; and the L2 norm. "
        "Spearman's correlation with average ranks, for each sentence; mean ± standard deviation over sentences, "
        "95 % bootstrap interval of the mean. A sentence in which one side is constant has no correlation and is left out. "
        "Tests are paired permutations of signs, Holm-corrected within a policy. An asterisk marks a difference from the paper that is "
        "more than sampling and rounding explain.\n\n"
        "What may differ from the paper besides chance: its model, code and test sentences for these tables were never released, so the model "
        "here is another one (other training text, sub-words, pretraining on masked words and auxiliary losses; see its card), the sentences are "
        "another sample, and the paper does not say whether the class token was counted, how ties were ranked, or of which logit the gradient "
        "was.\n\n" + PROVENANCE
    )


def _report(records: Sequence[Record], policy: str, statistic: str = "spearman") -> evaluate.Report:
    references = {
        "blank-out": [np.abs(_blank(record, policy)) for record in records],
        "blank-out, signed": [_blank(record, policy) for record in records],
        "gradient": [np.abs(record["gradient"]) for record in records],
        "gradient, L2": [record["gradient_l2"] for record in records],
    }
    return evaluate.compare(attributions(records), references, statistic=statistic, count_own=policy != EXCLUDED)


def _blank(record: Record, policy: str) -> NDArray[np.float64]:
    blank = np.array(record["blank"])
    if policy == BLANKED:
        blank[0] = float(record["class_drop"])
    return blank


def _beside(report: evaluate.Report, reference: str, printed: dict[str, Row]) -> Beside:
    levels = min(len(report.levels), len(printed["raw"]))  # a smaller model has fewer
    return Beside(report, reference, {name: row[:levels] for name, row in printed.items()}, 2000, range(levels))


def _one_table(
    page: Page, name: str, key: str, printed: dict[str, Row], reports: dict[str, evaluate.Report]
) -> list[str]:
    distances = {policy: _beside(report, key, printed).distance() for policy, report in reports.items()}
    nearest = min(distances, key=lambda policy: distances[policy])
    each = ", ".join(f"{policy} {distance:.2f}" for policy, distance in distances.items())
    page.findings.append(
        f"**{name}**, class token {nearest}: {_beside(reports[nearest], key, printed).closeness()}. "
        f"Mean absolute difference from the paper by policy: {each}."
    )
    for policy in dict.fromkeys((nearest, EXCLUDED)):
        page.findings += [
            f"{name}, class token {policy}: {verdicts(reports[policy], key, *pair)}."
            for pair in (("raw", "rollout"), ("raw", "flow"), ("rollout", "flow"))
        ]
    blocks = []
    for policy, report in reports.items():
        blocks += [
            f"### {reference}, class token {policy}\n\n({ABOUT[policy]})\n\n{_beside(report, reference, printed).markdown()}"
            for reference in report.references
            if reference.startswith(key)
        ]
        blocks.append(f"Paired tests, {key}, class token {policy}:\n\n{tests_table(report, key)}")
    return blocks


def _first_level(reports: dict[str, evaluate.Report], records: Sequence[Record]) -> str:
    """Why raw and rollout differ at the first layer."""

    def drop(policy: str, key: str = "blank-out") -> str:
        raw, rollout = (reports[policy].cell(method, 0, key).mean for method in ("raw", "rollout"))
        return f"{raw:.2f} → {rollout:.2f}"

    raw, rollout = (reports[EXCLUDED].values["blank-out", method][:, 0] for method in ("raw", "rollout"))
    apart = float(np.nanmax(np.abs(raw - rollout)))
    own = np.mean([record["raw"][0, 0] for record in records])
    place = np.mean([np.mean(np.abs(r["blank"][1:]) < abs(float(r["class_drop"]))) for r in records])
    same = "exactly equal" if apart < 1e-9 else f"equal but for {apart:.1g}"
    return (
        f"**The drop at the first layer.** There rollout is raw attention with half of the weight put on the class token's own entry (on average "
        f"{own:.2f} before). With the class token excluded the two are {same} in every sentence, so a drop there can only come from that one entry. "
        f"Counted with an importance of 0, Spearman with blank-out goes {drop(COUNTED)}; counted with what replacing it does (more than "
        f"replacing {place:.0%} of the words), {drop(BLANKED)}; with gradients, {drop(COUNTED, 'gradient')}. The paper has 0.69 → 0.32 and "
        "0.53 → 0.22: such a fall needs a class token that is counted and matters little."
    )


def _other_statistics(records: Sequence[Record]) -> str:
    rows = []
    for policy in (COUNTED, EXCLUDED):
        for statistic in ("spearman", "spearman_dense", "kendall"):
            report = _report(records, policy, statistic)
            rows += [
                [policy, statistic, method, *(f"{report.cell(method, i, 'blank-out').mean:.2f}" for i in range(len(report.levels)))]
                for method in report.methods
            ]  # fmt: skip
    note = (
        "Mean correlation with |blank-out|. `spearman_dense` is the formula of the paper's released code, 1 − 6 Σd²/(n(n²−1)) over dense ranks, "
        "which equals Spearman's only where nothing is tied; flows are tied where they are limited by the same cut."
    )
    return note + "\n\n" + table(["class token", "statistic", "method", *report.levels], rows)


def _flat(difference: evaluate.Difference) -> dict[str, Any]:
    return {**vars(difference), "effect": difference.effect, "verdict": difference.verdict}
