"""Do attributions agree with what the model really uses, and with one another? Numbers, intervals and tests."""

from __future__ import annotations

from attnflow.evaluate._compare import compare
from attnflow.evaluate._correlations import STATISTICS, correlation
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
from attnflow.evaluate._perturbation import MEASURES, Curves, Measure, curves, measured, ranking
from attnflow.evaluate._ranking import (
    Effect,
    Pair,
    Place,
    all_pairs,
    difference_interval,
    effect_size,
    places,
    two_sample_test,
)
from attnflow.evaluate._report import Cell, Difference, Report
from attnflow.evaluate._shape import agreement, diagonal_mass, entropy, top_mass
from attnflow.evaluate._truth import AGAINST_TRUTH, against_truth

__all__ = [
    "AGAINST_TRUTH",
    "MEASURES",
    "STATISTICS",
    "Cell",
    "Curves",
    "Difference",
    "Effect",
    "Measure",
    "Pair",
    "PairedTest",
    "Place",
    "Report",
    "Summary",
    "against_truth",
    "agreement",
    "all_pairs",
    "bootstrap_interval",
    "compare",
    "correlation",
    "curves",
    "diagonal_mass",
    "difference_interval",
    "effect_size",
    "entropy",
    "holm",
    "measured",
    "paired_tests",
    "permutation_test",
    "places",
    "ranking",
    "smallest_detectable",
    "summarise",
    "top_mass",
    "two_sample_test",
    "wilcoxon_test",
]
