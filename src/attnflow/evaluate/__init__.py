"""Do attributions agree with what the model really uses, and with one another? Numbers, intervals and tests."""

from __future__ import annotations

from attnflow.evaluate._compare import compare
from attnflow.evaluate._correlations import STATISTICS
from attnflow.evaluate._inference import (
    PairedTest,
    Summary,
    bootstrap_interval,
    holm,
    paired_tests,
    permutation_test,
    smallest_detectable,
    summarise,
    wilcoxon_test,
)
from attnflow.evaluate._report import Cell, Difference, Report
from attnflow.evaluate._shape import agreement, diagonal_mass, entropy, top_mass

__all__ = [
    "STATISTICS",
    "Cell",
    "Difference",
    "PairedTest",
    "Report",
    "Summary",
    "agreement",
    "bootstrap_interval",
    "compare",
    "diagonal_mass",
    "entropy",
    "holm",
    "paired_tests",
    "permutation_test",
    "smallest_detectable",
    "summarise",
    "top_mass",
    "wilcoxon_test",
]
