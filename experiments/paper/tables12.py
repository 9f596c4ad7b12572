"""Tables 1 and 2: which map of the class token goes with what the model needs?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnflow import evaluate

from .beside import Beside, tests_table
from .contrast import PAIRS, Contrast, claim, contrasts_table, power
from .page import Claim, Page, as_csv
from .policies import ABOUT, BLANKED, COUNTED, EXCLUDED, correlations, set_beside
from .published import PROVENANCE, TABLE_1, TABLE_2, Row
from .reasons import by_attractors, first_level, first_level_claim, other_statistics, reasons
from .store import Record, write

NEAR = 0.1  # correlations that differ by less are called alike


def run(records: Sequence[Record], about: str, out: Path) -> Page:
    """Correlations under each policy, beside the paper's, with tests."""
    page = Page("tables12", "Tables 1 and 2: verb number, blank-out and input gradients")
    page.add(_method(records, about))
    reports = {policy: correlations(records, policy) for policy in (COUNTED, BLANKED, EXCLUDED)}
    page.claims.append(first_level_claim(reports))
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
                    cells += set_beside(reports[policy], reference, printed).rows(table=title, policy=policy)
            tests += [
                {"policy": policy, **_flat(d)} for d in reports[policy].differences if d.reference.startswith(key)
            ]
    page.findings += [first_level(reports, records), *reasons(records, reports)]
    page.add("## Other ways to count", other_statistics(records), "## By attractors", by_attractors(records))
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


def _one_table(
    page: Page, name: str, key: str, printed: dict[str, Row], reports: dict[str, evaluate.Report]
) -> list[str]:
    beside = {policy: set_beside(report, key, printed) for policy, report in reports.items()}
    distances = {policy: one.distance() for policy, one in beside.items()}
    nearest = min(distances, key=lambda policy: distances[policy])
    each = ", ".join(f"{policy} {distance:.2f}" for policy, distance in distances.items())
    page.findings.append(
        f"**{name}, how near.** With the class token {nearest}, {beside[nearest].closeness()}. Mean distance from the paper by what is done "
        f"with the class token: {each}."
    )
    contrasts = [Contrast.of(beside[EXCLUDED], *pair) for pair in PAIRS]
    if contrasts[0].tests:
        page.claims += _claims(name, contrasts, beside[EXCLUDED])
        page.findings += [
            f"**{name}, {c.first} and {c.second}** (class token excluded). {c.sentence()}" for c in contrasts
        ]
        page.findings.append(f"**{name}, the tests.** {power(contrasts)}")
    blocks = []
    for policy, report in reports.items():
        blocks += [
            f"### {reference}, class token {policy}\n\n({ABOUT[policy]})\n\n{set_beside(report, reference, printed).markdown()}"
            for reference in report.references
            if reference.startswith(key)
        ]
        pairs = [Contrast.of(beside[policy], *pair) for pair in PAIRS]
        if pairs[0].tests:
            blocks.append(
                f"Which method is higher, {key}, class token {policy} (bold: shown)\n\n{contrasts_table(pairs)}"
            )
        blocks.append(f"Paired tests, {key}, class token {policy}:\n\n{tests_table(report, key)}")
    return blocks


def _claims(name: str, contrasts: Sequence[Contrast], beside: Beside) -> list[Claim]:
    """What the paper's text reads off the table."""
    raw_rollout, raw_flow, rollout_flow = contrasts
    last = {method: (beside.cells(method)[-1].mean, beside.printed[method][-1].mean) for method in beside.printed}
    near = [abs(ours - theirs) < NEAR for ours, theirs in last.values()]
    return [
        claim(f"{name}: rollout and flow are better correlated than raw attention", (raw_rollout, raw_flow)),
        claim(f"{name}: flow is more reliable than rollout", (rollout_flow,)),
        Claim(
            f"{name}: at the last layer "
            + ", ".join(f"{method} has {theirs:.2f}" for method, (_, theirs) in last.items()),
            ", ".join(f"{method} {ours:.2f}" for method, (ours, _) in last.items()),
            "yes" if all(near) else "in part" if any(near) else "no",
        ),
    ]


def _flat(difference: evaluate.Difference) -> dict[str, Any]:
    return {**vars(difference), "effect": difference.effect, "verdict": difference.verdict}
