"""How the class token, which is the query, is treated as an input of the correlation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from attnflow import evaluate

from .beside import Beside
from .measure import attributions
from .published import Row
from .store import Record

COUNTED, BLANKED, EXCLUDED = "counted", "counted, blanked too", "excluded"
ABOUT = {
    COUNTED: "the class token is one of the inputs; blank-out leaves it alone, so its importance is 0",
    BLANKED: "the class token is one of the inputs and is replaced by UNK as well, so it has an importance of its own",
    EXCLUDED: "the class token is the query only and left out of the correlation",
}


def correlations(
    records: Sequence[Record], policy: str, statistic: str = "spearman", *, resamples: int = 10_000
) -> evaluate.Report:
    """All methods against all references; few `resamples` will do where only means are read."""
    references = {
        "blank-out": [np.abs(blank_out(record, policy)) for record in records],
        "blank-out, signed": [blank_out(record, policy) for record in records],
        "gradient": [np.abs(record["gradient"]) for record in records],
        "gradient, L2": [record["gradient_l2"] for record in records],
    }
    return evaluate.compare(
        attributions(records), references, statistic=statistic, count_own=policy != EXCLUDED, resamples=resamples
    )


def blank_out(record: Record, policy: str) -> NDArray[np.float64]:
    """By how much the correct class's probability falls, a number for each token."""
    blank = np.array(record["blank"])
    if policy == BLANKED:
        blank[0] = float(record["class_drop"])
    return blank


def set_beside(report: evaluate.Report, reference: str, printed: dict[str, Row]) -> Beside:
    """A reference of the report and the paper's table of it."""
    levels = min(len(report.levels), len(printed["raw"]))  # a smaller model has fewer
    return Beside(report, reference, {name: row[:levels] for name, row in printed.items()}, 2000, range(levels))
