"""The open questions: each a figure, a table and one sentence of answer, from the pairs of maps that it is about."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import attnflow as af
from attnflow import capture, evaluate, study
from experiments.paper.page import Page, as_csv, listed, table
from experiments.paper.store import write

from . import figures
from .asked import QUESTIONS, ROLLOUT, Question
from .headline import ABOUT, headline
from .subjects import BUNDLED, verb_texts

LEARNT = "rollout, learnt heads"
SATURATION_TEXTS = 30
DEPTH = "encoder: verb number"  # the column whose maps are measured at every level


@dataclass(frozen=True)
class Compared:
    """Two maps on one subject: the mean of new − old by the subject's headline, and whether it is more than chance."""

    subject: str
    new: str
    old: str
    measure: str
    n: int
    old_mean: float
    new_mean: float
    difference: float
    low: float
    high: float
    effect: float
    effect_low: float
    effect_high: float
    p: float
    detectable: float
    p_corrected: float = math.nan

    @property
    def verdict(self) -> str:
        """Better, worse, or not shown."""
        if not self.p_corrected <= 0.05:
            return "no difference shown"
        return "better" if self.difference > 0 else "worse"


def compare(question: Question, found: Mapping[str, study.Evidence]) -> list[Compared]:
    """Every pair on every subject that has both maps, Holm-corrected over all of the question."""
    pairs = [(new.name, old.name) for new, old in question.pairs]
    if question.number == 7:
        pairs.append((LEARNT, ROLLOUT.name))
    rows = [
        _one(subject, evidence, new, old)
        for subject, evidence in found.items()
        for new, old in pairs
        if new in evidence.ways and old in evidence.ways
    ]
    corrected = evaluate.holm(np.array([row.p for row in rows]))
    return [Compared(**{**asdict(row), "p_corrected": float(p)}) for row, p in zip(rows, corrected, strict=True)]


def _one(subject: str, evidence: study.Evidence, new: str, old: str) -> Compared:
    measure, alone = headline(evidence)
    values = alone.values[measure, ""]
    columns = [values[:, [alone.ways.index(name)]] for name in (new, old)]
    [test] = evaluate.paired_tests(*columns, resamples=20_000)
    effect = evaluate.effect_size((columns[0] - columns[1])[:, 0], resamples=1_000)
    detectable = evaluate.smallest_detectable(test.sd, test.n)
    return Compared(
        subject, new, old, measure, test.n, float(np.nanmean(columns[1])), float(np.nanmean(columns[0])), test.difference, test.low,
        test.high, *effect, test.p, detectable,
    )  # fmt: skip


def answer(question: Question, rows: Sequence[Compared]) -> str:
    """One sentence: how often, where, and by how much."""
    parts = []
    for verdict in ("better", "worse"):
        some = [row for row in rows if row.verdict == verdict]
        if some:
            effects = [row.effect for row in some if math.isfinite(row.effect)]
            size = f", effects {min(effects):+.2f} to {max(effects):+.2f}" if effects else ""
            parts.append(f"{verdict} in {len(some)} of {len(rows)} comparisons{size} ({_where(some)})")
    open_ = [row for row in rows if row.verdict == "no difference shown"]
    if open_:
        smallest, largest = (edge(row.detectable for row in open_) for edge in (min, max))
        counts = sorted({row.n for row in open_})
        parts.append(
            f"no difference shown in {len(open_)} (n = {counts[0]} to {counts[-1]}; alone, differences from {smallest:.2f} to {largest:.2f} up would have been found)"
        )
    better, worse = (sum(row.verdict == verdict for row in rows) for verdict in ("better", "worse"))
    return f"**{_summary(question, better, worse, len(rows))}** " + "; ".join(parts) + "."


def _where(rows: Sequence[Compared]) -> str:
    """Map by map, the subjects."""
    by_map: dict[str, list[str]] = {}
    for row in rows:
        by_map.setdefault(row.new, []).append(row.subject)
    return "; ".join(f"“{name}” on {listed(several)}" for name, several in by_map.items())


def _summary(question: Question, better: int, worse: int, count: int) -> str:
    if not count:
        return "Not measured."
    if better and not worse:
        return f"Where a difference was shown, {question.asks}."
    if worse and not better:
        return f"Where a difference was shown, the opposite of “{question.asks}”."
    if better and worse:
        return f"It depends: {question.asks} in {better}, the opposite holds in {worse}."
    return "No difference was shown anywhere."


def page(question: Question, found: Mapping[str, study.Evidence], out: Path) -> Page:
    """qN.md with its figure and table."""
    made = Page(f"question{question.number}", f"{question.number}. {question.title}")
    rows = compare(question, found)
    if not rows:
        made.skipped = "none of the subjects that it is about was measured"
        return made
    made.findings.append(answer(question, rows))
    bars = [figures.Bar(f"{row.new}  −  {row.old}", row.effect, row.effect_low, row.effect_high, row.subject) for row in rows if math.isfinite(row.effect)]  # fmt: skip
    axis = "effect size (Hedges' g of paired differences, 95 % interval); right of zero the first is better"
    made.add(figures.intervals(bars, question.title, axis, out / made.name, zero=True))
    header = [
        "subject",
        "maps",
        "measure",
        "old",
        "new",
        "difference [95 % interval]",
        "effect",
        "p (Holm)",
        "n",
        "detectable",
        "result",
    ]
    made.add(table(header, [_row(row) for row in rows]))
    made.add(
        "\n".join(f"* {name}: {about}." for name, about in ABOUT.items() if any(row.measure == name for row in rows))
    )
    write(out / f"{made.name}.csv", as_csv([{**asdict(row), "verdict": row.verdict} for row in rows]))
    if question.number == 6 and DEPTH in found:
        _by_depth(made, found[DEPTH], out)
    return made


def _row(row: Compared) -> list[str]:
    return [
        row.subject, f"{row.new} − {row.old}", row.measure, f"{row.old_mean:.3f}", f"{row.new_mean:.3f}",
        f"{row.difference:+.3f} [{row.low:+.3f}, {row.high:+.3f}]", f"{row.effect:+.2f}", f"{row.p_corrected:.2g}", str(row.n),
        f"{row.detectable:.3f}", row.verdict,
    ]  # fmt: skip


def _by_depth(made: Page, evidence: study.Evidence, out: Path) -> None:
    """Rollout and flow at every level, and how many of the flows are stopped at a trivial cut."""
    _, alone = headline(evidence)
    means = np.nanmean(next(iter(alone.values.values())), axis=0)
    saturated = saturation()
    count = len(saturated)
    series = {}
    for method in ("rollout", "flow"):
        names = [f"{method}, level {level}" for level in range(count - 1)] + [method]
        series[method] = [float(means[alone.ways.index(name)]) for name in names]
    series["flows stopped at a trivial cut"] = saturated
    title = "Verb number: gain by layer, and the share of flows that only their ends limit"
    made.add("## By depth", figures.lines(series, title, "gain; share", out / "depth"))
    rows = [[name, *(f"{value:.3f}" for value in values)] for name, values in series.items()]
    made.add(table(["", *(f"L{level + 1}" for level in range(count))], rows))
    gap = np.array(series["flow"]) - np.array(series["rollout"])
    agreed = evaluate.correlation(gap, np.array(saturated))
    made.findings.append(
        f"By depth: flow − rollout is {', '.join(f'{value:+.3f}' for value in gap)} from L1 up, where {', '.join(f'{share:.0%}' for share in saturated)} of the "
        f"flows are limited at their ends alone (rank correlation {agreed:+.2f} over {count} layers): a saturated flow has the same value for many inputs and ranks them by chance."
    )  # fmt: skip


def saturation(count: int = SATURATION_TEXTS) -> list[float]:
    """For each layer of the bundled model, the share of the class token's flows that equal a trivial cut."""
    graphs = capture.graph(str(BUNDLED), verb_texts(count, "saturation"))
    found = [af.flow(graph, queries=[0], threads=1).saturation for graph in graphs]
    return [float(share) for share in np.mean([one.either for one in found if one is not None], axis=0)]


def pages(found: Mapping[str, study.Evidence], out: Path) -> list[Page]:
    """All questions."""
    made: list[Any] = [page(question, found, out) for question in QUESTIONS]
    for one in made:
        one.write(out)
    return made
