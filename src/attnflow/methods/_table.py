"""METHODS: the only list of methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attnflow.attribution import Attribution
from attnflow.errors import UnknownMethod, suggest
from attnflow.methods._flow import flow
from attnflow.methods._raw import raw
from attnflow.methods._relevance import relevance
from attnflow.methods._rollout import rollout

Method = Callable[..., Attribution]

METHODS: dict[str, Method] = {"raw": raw, "rollout": rollout, "flow": flow, "relevance": relevance}

# What a method wants of the graph it reads, unless something else was asked for.
_WANTED: dict[str, dict[str, Any]] = {"relevance": {"edges": "chefer", "residual": None, "renormalise": False}}


def method_called(method: str | Method) -> Method:
    """A method by its name; a function of the same form (graph, queries=, levels=) is taken as it is."""
    if callable(method):
        return method
    if not isinstance(method, str) or method not in METHODS:
        raise UnknownMethod(f"unknown method {method!r}." + suggest(method, METHODS))
    return METHODS[method]


def wanted_mixing(*methods: str | Method) -> dict[str, Any]:
    """The options of `mix` (and of a capture) that these methods stand on where others were not given, if they agree on them."""
    functions = [method_called(method) for method in methods]
    each = [next((own for name, own in _WANTED.items() if METHODS[name] is one), {}) for one in functions]
    return dict(each[0]) if each and all(own == each[0] for own in each) else {}
