"""Advice: one line under a picture where its method is known to mislead."""

from __future__ import annotations

import numpy as np

from attnflow.attribution import Attribution

SATURATED = 0.5  # from this share of pairs on, the limit of most flows lies at their ends and not in between
HIGH_LEVEL = 2  # above the second block, what is attended to is a mixture (Abnar & Zuidema 2020, figure 3)


def advice(a: Attribution, level: int) -> str:
    """What the reader of this level (its place in the attribution) should know, or nothing."""
    number = a.levels[level]
    if a.saturation is not None and a.saturation.either[level] >= SATURATED:
        share = a.saturation.either[level]
        return (
            f"Saturated: {share:.0%} of the flows stop at a trivial cut, at the query or at the input, so this map hardly "
            "tells inputs apart. Look at a lower level, at rollout, or at a pair's bottleneck."
        )
    if a.method == "raw" and number >= HIGH_LEVEL:
        return (
            f"Raw attention of {a.level_names[level]}: its keys are already mixtures of many tokens, so it does not say "
            "which inputs matter. Use rollout or flow."
        )
    if (
        a.method in ("rollout", "flow")
        and number >= HIGH_LEVEL
        and not a.options.get("receptive_field")
        and _decoder(a)
    ):
        return (
            "A decoder: every later position can see the first tokens, so these gather weight level by level whatever "
            "they say. Compare inputs with care, or normalise by the receptive field."
        )
    return ""


def is_causal(a: Attribution) -> bool:
    """Whether no query takes anything from an input that comes after it (and some come after it)."""
    after = np.greater.outer(a.inputs, a.queries).T
    return bool(after.any() and not a.scores[:, after].any())


def _decoder(a: Attribution) -> bool:
    """The row of a last token has nothing after it to tell by; what captured it may have said where it is read."""
    return is_causal(a) or str(a.options.get("query_is", "")).startswith("the last token")
