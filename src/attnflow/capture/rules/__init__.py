"""rules: what an edge is worth, where that needs more than the recorded attention. One file a rule.

A rule is a function from a LayerRecord (one attention of one input, with the layer around it) to a matrix (queries,
keys). `capture.graph(…, edges=…)` takes a rule's name ("alti", "norm:both"), an object of one of these classes, or any
function. Names are loaded when they are first used, since most need torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attnflow.capture.rules._names import RESIDUAL_NAMES, RULES, split, variants
from attnflow.errors import needing

if TYPE_CHECKING:
    from attnflow.capture.rules._alti import Alti
    from attnflow.capture.rules._effective import Effective
    from attnflow.capture.rules._families import FAMILIES, Family
    from attnflow.capture.rules._norm import Norm
    from attnflow.capture.rules._record import LayerRecord
    from attnflow.capture.rules._routes import Routes, feed_forward
    from attnflow.capture.rules._rule import Edges
    from attnflow.capture.rules._value_zeroing import ValueZeroing

__all__ = [
    "FAMILIES", "RESIDUAL_NAMES", "RULES", "Alti", "Edges", "Effective", "Family", "LayerRecord", "Norm", "Routes", "ValueZeroing",
    "feed_forward", "split", "variants",
]  # fmt: skip

_HOMES = {
    "FAMILIES": "_families", "Family": "_families", "LayerRecord": "_record", "Edges": "_rule", "feed_forward": "_routes",
    **{entry.class_name: entry.module for entry in RULES.values()},
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing("attnflow.capture", "models", ("torch", "transformers")):
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
