"""capture: from a model and an input to attention. The only part of attnflow that knows torch and transformers.

Nothing heavy is imported until a name is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attnflow.errors import needing

if TYPE_CHECKING:
    from attnflow.capture import rules
    from attnflow.capture._ablated import Ablation
    from attnflow.capture._ablation import ablation
    from attnflow.capture._captum import captum
    from attnflow.capture._capture import graph, stack
    from attnflow.capture._grad_cam import grad_cam
    from attnflow.capture._models import load, processor_for, tokenizer_for
    from attnflow.capture._randomise import randomised
    from attnflow.capture._reference import Reference
    from attnflow.capture._references import blank_out, input_gradient
    from attnflow.capture._watched import watched

__all__ = [
    "Ablation",
    "Reference",
    "ablation",
    "blank_out",
    "captum",
    "grad_cam",
    "graph",
    "input_gradient",
    "load",
    "processor_for",
    "randomised",
    "rules",
    "stack",
    "tokenizer_for",
    "watched",
]

_HOMES = {
    "graph": "_capture",
    "stack": "_capture",
    "blank_out": "_references",
    "input_gradient": "_references",
    "captum": "_captum",
    "load": "_models",
    "processor_for": "_models",
    "tokenizer_for": "_models",
    "watched": "_watched",
    "Reference": "_reference",
    "Ablation": "_ablated",
    "ablation": "_ablation",
    "grad_cam": "_grad_cam",
    "randomised": "_randomise",
}


def __getattr__(name: str) -> Any:
    if name == "rules":
        return import_module(f"{__name__}.rules")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing("attnflow.capture", "models", ("torch", "transformers")):
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
