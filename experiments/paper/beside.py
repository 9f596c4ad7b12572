"""A report beside the paper's table: the difference of each cell, and whether sampling alone explains it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from attnflow import evaluate

from .page import table
from .published import Row


@dataclass(frozen=True)
class Beside:
    """One reference of a report and the table of the paper that it repeats; `places` are the paper's levels in it."""

    report: evaluate.Report
    reference: str
    printed: Mapping[str, Row]
    paper_n: int
    places: Sequence[int]

    def cells(self, method: str) -> list[evaluate.Cell]:
        """The report's cells that the paper has too."""
        return [self.report.cell(method, place, self.reference) for place in self.places]

    @property
    def levels(self) -> list[str]:
        """Their names."""
        return [self.report.levels[place] for place in self.places]

    def difference(self, method: str, number: int) -> tuple[float, float]:
        """Ours − the paper's, and how large a difference sampling alone makes (95 %, from both standard deviations)."""
        ours, theirs = self.cells(method)[number], self.printed[method][number]
        spread = math.sqrt(ours.sd**2 / max(ours.n, 1) + theirs.sd**2 / self.paper_n)
        return ours.mean - theirs.mean, 1.96 * spread + 0.005  # and the paper's rounding

    def markdown(self) -> str:
        """Three rows a method: ours with its interval, the paper's, the difference; * is more than sampling explains."""
        rows = []
        for method, theirs in self.printed.items():
            rows.append([f"**{method}**", *(str(cell) for cell in self.cells(method))])
            rows.append([f"{method}, paper", *(f"{cell.mean:.2f} ± {cell.sd:.2f}" for cell in theirs)])
            gaps = [self.difference(method, number) for number in range(len(theirs))]
            rows.append(["difference", *(f"{gap:+.2f}{'*' if abs(gap) > reach else ''}" for gap, reach in gaps)])
        return table(["", *self.levels], rows)

    def rows(self, **labels: Any) -> list[dict[str, Any]]:
        """The same for a CSV file."""
        found = []
        for method, theirs in self.printed.items():
            for number, (cell, printed) in enumerate(zip(self.cells(method), theirs, strict=True)):
                gap, reach = self.difference(method, number)
                found.append({
                    **labels, "reference": self.reference, "method": method, "level": cell.level, "n": cell.n,
                    "undefined": cell.undefined, "mean": cell.mean, "sd": cell.sd, "low": cell.low, "high": cell.high,
                    "paper_mean": printed.mean, "paper_sd": printed.sd, "difference": gap, "sampling_reach": reach,
                })  # fmt: skip
        return found

    def distance(self) -> float:
        """The mean absolute difference of all cells."""
        gaps = [abs(self.difference(method, i)[0]) for method in self.printed for i in range(len(self.places))]
        return float(np.mean(gaps))

    def closeness(self) -> str:
        """How near the whole table comes."""
        gaps = {
            (method, level): self.difference(method, number)
            for method in self.printed
            for number, level in enumerate(self.levels)
        }
        sizes = {key: abs(gap) for key, (gap, _) in gaps.items()}
        worst = max(sizes, key=lambda key: sizes[key])
        inside = sum(abs(gap) <= reach for gap, reach in gaps.values())
        ours = [cell.mean for method in self.printed for cell in self.cells(method)]
        theirs = [cell.mean for row in self.printed.values() for cell in row]
        rho = float(stats.spearmanr(ours, theirs).statistic)
        return (
            f"the {len(gaps)} means differ from the paper's by {np.median(list(sizes.values())):.2f} in the median and by "
            f"{sizes[worst]:.2f} at most ({worst[0]}, {worst[1]}). Sampling alone explains {inside} of the {len(gaps)} differences. "
            f"Ranked by size, the cells go with the paper's by a Spearman correlation of {rho:.2f}"
        )


def tests_table(report: evaluate.Report, reference: str) -> str:
    """All paired tests of a reference."""
    header = [
        "level",
        "methods",
        "mean difference",
        "95 % interval",
        "effect (d)",
        "p",
        "p (Holm)",
        "detectable",
        "result",
    ]
    rows = [
        [
            d.level, f"{d.first} − {d.second}", f"{d.difference:+.3f}", f"[{d.low:+.3f}, {d.high:+.3f}]", f"{d.effect:+.2f}",
            f"{d.p:.2g}", f"{d.p_corrected:.2g}", f"{d.detectable:.3f}", d.verdict,
        ]
        for d in report.differences
        if d.reference == reference
    ]  # fmt: skip
    return table(header, rows)
