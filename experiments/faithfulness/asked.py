"""Which maps are measured, and for which of the open questions."""

from __future__ import annotations

from dataclasses import dataclass

from attnflow.study import Way

RAW, ROLLOUT, FLOW = Way("raw", residual=None), Way("rollout"), Way("flow")
DROPPED = Way("rollout", special="drop")
GRADIENT, CHEFER, FLOW_GRADIENT = (
    Way("rollout", edges="gradient"),
    Way("rollout", edges="chefer"),
    Way("flow", edges="chefer"),
)
NORM, NORM_BOTH = Way("rollout", edges="norm"), Way("rollout", edges="norm:both")
ALTI, ZEROING, ROUTES = (
    Way("rollout", edges="alti"),
    Way("rollout", edges="value_zeroing"),
    Way("rollout", edges="routes"),
)
FLOW_ALTI = Way("flow", edges="alti")
EFFECTIVE, RAW_EFFECTIVE = Way("rollout", edges="effective"), Way("raw", edges="effective", residual=None)
MEASURED, W_RES = Way("rollout", residual="measured"), Way("rollout", residual="w_res")
FLOW_MEASURED = Way("flow", residual="measured")
HEADS_MAX, RAW_MAX = Way("rollout", heads="max"), Way("raw", heads="max", residual=None)
FIELD, FLOW_FIELD = (
    Way("rollout", options=(("receptive_field", True),)),
    Way("flow", options=(("receptive_field", True),)),
)

EVERYWHERE = [
    RAW, ROLLOUT, FLOW, DROPPED, GRADIENT, CHEFER, FLOW_GRADIENT, NORM, ALTI, FLOW_ALTI, ZEROING, EFFECTIVE, RAW_EFFECTIVE,
    MEASURED, W_RES, FLOW_MEASURED, HEADS_MAX, RAW_MAX,
]  # fmt: skip


@dataclass(frozen=True)
class Question:
    """An open question: the maps that it is about, and the pairs whose difference answers it (new, old)."""

    number: int
    title: str
    asks: str
    pairs: tuple[tuple[Way, Way], ...]

    @property
    def ways(self) -> list[str]:
        """The names of the maps, each once."""
        return list(dict.fromkeys(way.name for pair in self.pairs for way in pair))


QUESTIONS = [
    Question(1, "Does receptive-field normalisation help on a decoder?", "it helps", ((FIELD, ROLLOUT), (FLOW_FIELD, FLOW))),
    Question(2, "Does effective attention change anything?", "it helps", ((EFFECTIVE, ROLLOUT), (RAW_EFFECTIVE, RAW))),
    Question(3, "Do gradients help?", "they help", ((GRADIENT, ROLLOUT), (CHEFER, ROLLOUT), (FLOW_GRADIENT, FLOW))),
    Question(
        4, "How much do values and norms add over attention alone?", "they help",
        ((NORM, ROLLOUT), (ALTI, ROLLOUT), (ZEROING, ROLLOUT), (FLOW_ALTI, FLOW)),
    ),
    Question(5, "Is a measured residual better than one half?", "it helps", ((MEASURED, ROLLOUT), (W_RES, ROLLOUT), (FLOW_MEASURED, FLOW))),
    Question(6, "Rollout or flow?", "flow is better", ((FLOW, ROLLOUT), (FLOW_ALTI, ALTI), (FLOW_GRADIENT, CHEFER))),
    Question(7, "Heads: mean, max or learnt weights?", "it is better than the mean", ((HEADS_MAX, ROLLOUT), (RAW_MAX, RAW))),
]  # fmt: skip


def levels(method: str, count: int) -> list[Way]:
    """A method at every level below the top one."""
    return [Way(method, level=level) for level in range(count - 1)]
