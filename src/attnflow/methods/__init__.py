"""From a graph to attributions: raw, rollout, flow."""

from __future__ import annotations

from attnflow.methods._attribute import attribute
from attnflow.methods._by_head import by_head
from attnflow.methods._raw import raw
from attnflow.methods._rollout import rollout
from attnflow.methods._table import METHODS

__all__ = ["METHODS", "attribute", "by_head", "raw", "rollout"]
