"""From a graph to attributions: raw, rollout, flow, relevance."""

from __future__ import annotations

from attnflow.methods._attribute import attribute
from attnflow.methods._bottleneck import Bottleneck, bottleneck
from attnflow.methods._bounds import flow_bounds
from attnflow.methods._by_head import by_head
from attnflow.methods._flow import flow
from attnflow.methods._heads import head_importance
from attnflow.methods._raw import raw
from attnflow.methods._relevance import relevance
from attnflow.methods._rollout import rollout
from attnflow.methods._table import METHODS, wanted_mixing
from attnflow.methods._uniform import against_uniform

__all__ = [
    "METHODS", "Bottleneck", "against_uniform", "attribute", "bottleneck", "by_head", "flow", "flow_bounds", "head_importance", "raw",
    "relevance", "rollout", "wanted_mixing",
]  # fmt: skip
