"""One number for each map: how much sooner the answer comes with what it ranks first than it goes without; or the truth."""

from __future__ import annotations

import numpy as np

from attnflow import study

GAIN = "gain"
SEPARATION = "separation"

ABOUT = {
    GAIN: "the mean height of the insertion curve above the deletion curve (symmetric relevance gain, Blücher et al. 2024), over both replacements",
    SEPARATION: "how often a token that the answer depends on scores higher than another one (1 always, 0.5 chance)",
}


def headline(evidence: study.Evidence) -> tuple[str, study.Evidence]:
    """Where the truth is known, the separation; else the gain: AOPC comprehensiveness − AOPC sufficiency."""
    if (SEPARATION, "truth") in evidence.values:
        return SEPARATION, _alone(evidence, SEPARATION, evidence.values[SEPARATION, "truth"])
    return GAIN, gain(evidence)


def gain(evidence: study.Evidence) -> study.Evidence:
    """The gain alone, averaged over the replacements."""
    return _alone(evidence, GAIN, np.mean([gains(evidence, one) for one in replaced(evidence)], axis=0))


def gains(evidence: study.Evidence, replace: str) -> np.ndarray:
    """The gain with one replacement [input, map]."""
    needed, enough = (evidence.values[f"AOPC {name}", replace] for name in ("comprehensiveness", "sufficiency"))
    return np.asarray(needed - enough)


def replaced(evidence: study.Evidence) -> list[str]:
    """The replacements that were measured with."""
    return [replace for measure, replace in evidence.values if measure == "AOPC sufficiency"]


def _alone(evidence: study.Evidence, name: str, table: np.ndarray) -> study.Evidence:
    return study.Evidence({(name, ""): table}, evidence.ways, evidence.options)
