"""METHODS: the only list of methods."""

from __future__ import annotations

from collections.abc import Callable

from attnflow.attribution import Attribution
from attnflow.errors import UnknownMethod, suggest
from attnflow.methods._flow import flow
from attnflow.methods._raw import raw
from attnflow.methods._rollout import rollout

Method = Callable[..., Attribution]

METHODS: dict[str, Method] = {"raw": raw, "rollout": rollout, "flow": flow}


def method_called(method: str | Method) -> Method:
    """A method by its name; a function of the same form (graph, queries=, levels=) is taken as it is."""
    if callable(method):
        return method
    if not isinstance(method, str) or method not in METHODS:
        raise UnknownMethod(f"unknown method {method!r}." + suggest(method, METHODS))
    return METHODS[method]
