"""Table 3: attention of a sentiment classifier against input gradients.

The paper's text speaks of the class token; its log (correlations_bert_sst_max) shows the largest score over all queries,
a rank correlation over dense ranks, and the gradient of the positive logit whatever the model predicts. All are measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

import attnflow as af
from attnflow import capture, evaluate

from . import sst2
from .beside import Beside, tests_table
from .contrast import PAIRS, Contrast, claim, contrasts_table, power
from .measure import METHODS
from .page import Claim, Page, as_csv, table
from .parts import loaded
from .published import TABLE_3, TABLE_3_LAYERS
from .store import Record, digest, in_chunks, write

VERSION = 1
SAMPLE = 100
BATCH = 16


class Way(NamedTuple):
    """One way to compute a cell of the table."""

    rows: str  # "class token" or "max over queries"
    target: str  # "positive" or "predicted": whose logit's gradient
    statistic: str
    special: bool  # whether [CLS] and [SEP] are inputs

    @property
    def name(self) -> str:
        """In words."""
        tokens = "all tokens" if self.special else "without special tokens"
        return f"{self.rows}, {self.target} logit, {self.statistic}, {tokens}"


PAPERS = Way("max over queries", "positive", "spearman_dense", True)  # as its log shows
STATED = Way("class token", "predicted", "spearman", True)  # as one would read its text
WAYS = [
    Way(rows, target, statistic, special)
    for rows in ("max over queries", "class token")
    for target in ("positive", "predicted")
    for statistic in ("spearman_dense", "spearman")
    for special in (True, False)
]


def run(given: str | None, data: Path, limit: int | None, runs: Path, out: Path, *, steps: int | None = None) -> Page:
    """100 test sentences as in the paper, and the development set, in every way."""
    page = Page("table3", "Table 3: SST-2, input gradients")
    model, tokenizer, name, key = _classifier(given, data, runs, steps)
    tested = sst2.read(data / "test.tsv")
    sets = {
        f"{SAMPLE} test sentences": Random(3).sample(tested, min(SAMPLE, len(tested)))[:limit],
        "development set": sst2.read(data / "dev.tsv")[:limit],
    }
    right, error = sst2.accuracy(model, tokenizer, sets["development set"])
    page.add(
        f"{name}; accuracy {right:.3f} ± {error:.3f} on {len(sets['development set'])} sentences of the development set. The paper has "
        "DistilBERT (`--sst2-model` takes it, or any other classifier, where a model hub is at hand). Reference: |Σ_d ∂logit/∂e_d| of each token."
    )
    cells: list[dict[str, Any]] = []
    for number, (label, rows) in enumerate(sets.items()):
        records = _measured(
            model, tokenizer, [text for text, _ in rows], runs / f"sst2-{number}-{digest(VERSION, key, rows)}"
        )
        reports = {way: _report(records, way) for way in WAYS}
        cells += _write(page, label, reports)
    write(out / "table3.csv", as_csv(cells))
    return page


def _classifier(given: str | None, data: Path, runs: Path, steps: int | None) -> tuple[Any, Any, str, str]:
    if given is None:
        model, tokenizer, name = sst2.tuned(data, runs, steps=steps)
    else:
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        name, tokenizer = given, loaded(AutoTokenizer, given, "--sst2-model")
        model = loaded(AutoModelForSequenceClassification, given, "--sst2-model").eval()
    weights = (parameter.detach().numpy().tobytes() for parameter in model.parameters())
    return model, tokenizer, name, digest(*weights)


def _measured(model: Any, tokenizer: Any, texts: Sequence[str], folder: Path) -> list[Record]:
    positive = max(model.config.id2label)  # SST-2's order: negative, positive

    def measure(chunk: Sequence[str], _: int) -> list[Record]:
        texts = list(chunk)
        stacks = capture.stack(model, texts, tokenizer, truncate=True, batch_size=BATCH)
        by_target = {
            name: capture.input_gradient(model, texts, tokenizer, target=target, truncate=True, batch_size=BATCH)
            for name, target in (("positive", positive), ("predicted", None))
        }
        records = []
        for number, stack in enumerate(stacks):
            record = _rows(stack)
            record["labels"], record["special"] = np.array(stack.tokens.labels), stack.tokens.special
            record |= {name: references[number].signed for name, references in by_target.items()}
            records.append(record)
        return records

    return in_chunks(texts, measure, folder, "SST-2")


def _rows(stack: af.AttentionStack) -> Record:
    """For each method the class token's row and the largest over all queries, at the paper's layers [level, input]."""
    levels = [layer - 1 for layer in TABLE_3_LAYERS if layer <= stack.layers]
    graph = af.mix(stack)
    found = {
        "raw": af.raw(af.mix(stack, residual=None), levels=levels),
        "rollout": af.rollout(graph, levels=levels),
        "flow": af.flow(graph, levels=levels),
    }
    record = {f"{name} class token": a.scores[:, 0] for name, a in found.items()}
    return record | {f"{name} max over queries": a.scores.max(axis=1) for name, a in found.items()}


def _report(records: Sequence[Record], way: Way) -> evaluate.Report:
    maps: dict[str, list[af.Attribution]] = {}
    for method in METHODS:
        maps[method] = []
        for record in records:
            tokens = af.Tokens(record["labels"].tolist(), record["special"])
            scores = record[f"{method} {way.rows}"][:, None]
            levels = tuple(layer - 1 for layer in TABLE_3_LAYERS[: len(scores)])
            names = tuple(f"L{level + 1}" for level in levels)
            maps[method].append(af.Attribution(scores, tokens, method, levels, (0,), tuple(range(len(tokens))), names))
    references = [record[way.target] for record in records]
    # Without special tokens the class token goes too: it is the query of one kind of row and nothing special to the other.
    return evaluate.compare(
        maps, references, statistic=way.statistic, absolute=True, count_own=way.special, count_special=way.special
    )


def _write(page: Page, label: str, reports: dict[Way, evaluate.Report]) -> list[dict[str, Any]]:
    places = range(len(next(iter(reports.values())).levels))
    printed = {name: row[: len(places)] for name, row in TABLE_3.items()}
    beside = {way: Beside(report, "reference", printed, 100, places) for way, report in reports.items()}
    page.add(f"## {label[:1].upper()}{label[1:]}")
    for way, title in ((PAPERS, "the way of the paper's log"), (STATED, "the way of the paper's text")):
        page.findings.append(f"**{label}, {title}** ({way.name}): {beside[way].closeness()}.")
        page.add(f"### {way.name}", beside[way].markdown())
        _which_is_higher(page, f"{label}, {title}", beside[way])
    rows = [
        [way.name, *(f"{_mean(reports[way], method):+.2f}" for method in METHODS), f"{one.distance():.2f}"]
        for way, one in beside.items()
    ]
    page.claims.append(_low(label, beside[PAPERS]))
    page.findings.append(f"**{label}, the way of computing**: {_spread(reports)}")
    page.add("### Every way, mean of the layers", table(["way", *METHODS, "mean distance from the paper"], rows))
    return [row for way, one in beside.items() for row in one.rows(sentences=label, **way._asdict())]


def _which_is_higher(page: Page, label: str, beside: Beside) -> None:
    """Rollout and flow against raw attention, which is all that the paper says of the table."""
    contrasts = [Contrast.of(beside, *pair) for pair in PAIRS]
    if not contrasts[0].tests:
        return
    to_raw = contrasts[:2]
    page.claims.append(claim(f"Table 3: rollout and flow are slightly better than raw attention ({label})", to_raw))
    page.findings += [f"{label}, {c.first} and {c.second}: {c.sentence()}" for c in to_raw]
    largest = max(abs(gap) for contrast in to_raw for gap in contrast.printed)
    page.findings.append(
        f"{label}, the tests: {power(to_raw)} The paper's differences from raw are {largest:.2f} at most."
    )
    page.add(
        "Which method is higher (bold: shown)",
        contrasts_table(contrasts),
        tests_table(beside.report, beside.reference),
    )


def _low(label: str, beside: Beside) -> Claim:
    """Whether all correlations are low; how low the paper does not say, so twice its largest is the limit."""
    printed = max(cell.mean for row in beside.printed.values() for cell in row)
    here = [cell.mean for method in beside.printed for cell in beside.cells(method)]
    return Claim(
        f"Table 3: all three methods have very low correlations ({printed:.2f} at most; {label})",
        f"{min(here):.2f} to {max(here):.2f}, the way of the paper's log",
        "yes" if max(here) <= 2 * printed else "no",
    )


def _mean(report: evaluate.Report, method: str) -> float:
    return float(np.mean([cell.mean for cell in report.cells if cell.method == method]))


def _spread(reports: dict[Way, evaluate.Report]) -> str:
    """How much the way of computing matters beside the method."""
    means = {way: {method: _mean(report, method) for method in METHODS} for way, report in reports.items()}
    between_ways = max(
        max(m[method] for m in means.values()) - min(m[method] for m in means.values()) for method in METHODS
    )
    between_methods = max(max(m.values()) - min(m.values()) for m in means.values())
    order = {tuple(sorted(METHODS, key=lambda method: -m[method])) for m in means.values()}
    return (
        f"over the {len(means)} ways a method's mean moves by up to {between_ways:.2f}, while within a way the methods differ by at most "
        f"{between_methods:.2f}; the ways give {len(order)} different orders of the three methods."
    )
