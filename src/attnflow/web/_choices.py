"""What a question may choose from, read from the library, so that a new rule or method appears by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnflow import __version__
from attnflow.capture import rules
from attnflow.methods import METHODS
from attnflow.mixing import EDGES
from attnflow.web._limits import Limits
from attnflow.web._models import Served

HEADS = ("mean", "max", "min")
ROWS = ("auto", "all", "query")
RESIDUALS = ("own", *rules.RESIDUAL_NAMES)


def edges() -> dict[str, bool]:
    """Every edge rule by name, and whether it needs gradients."""
    return {name: rule.needs_gradients for name, rule in EDGES.items()} | dict.fromkeys(rules.variants(), False)


def choices(models: Mapping[str, Served], limits: Limits) -> dict[str, Any]:
    """For /api/choices."""
    return {
        "models": [
            {"name": one.name, "kind": one.kind, "layers": one.layers, "heads": one.heads, "reads": one.reads}
            for one in models.values()
        ],
        "methods": list(METHODS),
        "edges": [{"name": name, "needs_gradients": needs} for name, needs in edges().items()],
        "residuals": list(RESIDUALS),
        "limits": {"tokens": limits.tokens, "body": limits.body, "seconds": limits.seconds, "pairs": limits.pairs},
        "version": __version__,
    }
