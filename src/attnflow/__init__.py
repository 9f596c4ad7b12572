"""attnflow: how much of what each position of a transformer says came from each input token.

The names below are loaded when they are first used, so that importing attnflow costs little more than nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "AttentionGraph": "graph",
    "AttentionStack": "stack",
    "Attribution": "attribution",
    "AttnflowError": "errors",
    "Bottleneck": "methods",
    "METHODS": "methods",
    "PatchGrid": "tokens",
    "Tokens": "tokens",
    "against_uniform": "methods",
    "attribute": "methods",
    "bottleneck": "methods",
    "by_head": "methods",
    "explain": "_explain",
    "flow": "methods",
    "flow_bounds": "methods",
    "head_importance": "methods",
    "mix": "mixing",
    "raw": "methods",
    "relevance": "methods",
    "rollout": "methods",
}
_ROOMS = ("batch", "capture", "errors", "evaluate", "render", "study")  # modules that are part of the public face

__all__ = [
    "METHODS",
    "AttentionGraph",
    "AttentionStack",
    "AttnflowError",
    "Attribution",
    "Bottleneck",
    "PatchGrid",
    "Tokens",
    "against_uniform",
    "attribute",
    "batch",
    "bottleneck",
    "by_head",
    "capture",
    "errors",
    "evaluate",
    "explain",
    "flow",
    "flow_bounds",
    "head_importance",
    "mix",
    "raw",
    "relevance",
    "render",
    "rollout",
    "study",
]

if TYPE_CHECKING:
    from attnflow import batch, capture, errors, evaluate, render, study
    from attnflow._explain import explain
    from attnflow.attribution import Attribution
    from attnflow.errors import AttnflowError
    from attnflow.graph import AttentionGraph
    from attnflow.methods import (
        METHODS,
        Bottleneck,
        against_uniform,
        attribute,
        bottleneck,
        by_head,
        flow,
        flow_bounds,
        head_importance,
        raw,
        relevance,
        rollout,
    )  # fmt: skip
    from attnflow.mixing import mix
    from attnflow.stack import AttentionStack
    from attnflow.tokens import PatchGrid, Tokens


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(f"attnflow.{_HOMES[name]}"), name)
        globals()[name] = value  # the next look-up does not come here
        return value
    if name in _ROOMS:
        return importlib.import_module(f"attnflow.{name}")
    raise AttributeError(f"module 'attnflow' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
