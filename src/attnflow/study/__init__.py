"""study: which maps tell the truth about a model, and how models differ. From a model and data to reports.

Nothing heavy is imported until a name is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnflow.study._audit import Audit, Move, audit
    from attnflow.study._baselines import BASELINES
    from attnflow.study._evidence import Evidence, Result
    from attnflow.study._faithfulness import faithfulness
    from attnflow.study._head_weights import learn_heads
    from attnflow.study._sanity import Check, sanity
    from attnflow.study._ways import Way, ways

__all__ = [
    "BASELINES",
    "Audit",
    "Check",
    "Evidence",
    "Move",
    "Result",
    "Way",
    "audit",
    "faithfulness",
    "learn_heads",
    "sanity",
    "ways",
]

_HOMES = {
    "BASELINES": "_baselines",
    "Evidence": "_evidence",
    "Result": "_evidence",
    "Way": "_ways",
    "Audit": "_audit",
    "Check": "_sanity",
    "Move": "_audit",
    "audit": "_audit",
    "faithfulness": "_faithfulness",
    "learn_heads": "_head_weights",
    "sanity": "_sanity",
    "ways": "_ways",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
