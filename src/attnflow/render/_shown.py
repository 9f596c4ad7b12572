"""What may be shown: an attribution, a bottleneck or a view of either. All become views here."""

from __future__ import annotations

from typing import Any, TypeAlias

from attnflow.attribution import Attribution
from attnflow.errors import InvalidArgument
from attnflow.methods import Bottleneck
from attnflow.render._describe import view
from attnflow.render._flow_view import flow_view
from attnflow.render._view import FlowView, View

Shown: TypeAlias = Attribution | Bottleneck | View | FlowView


def as_view(shown: Shown, *, query: int | str | None = None, words: bool = False, image: Any = None) -> View | FlowView:
    """Any of them as a view that opens at `query`."""
    if isinstance(shown, Attribution):
        return view(shown, query=query, words=words, image=image)
    if isinstance(shown, FlowView):
        return shown
    if isinstance(shown, View):
        return shown.opened(query)
    if isinstance(shown, Bottleneck):
        return flow_view(shown)
    raise InvalidArgument(
        f"there is no picture of a {type(shown).__name__}: give an Attribution (rollout(graph)), a Bottleneck or a View."
    )


def listed(shown: Any) -> list[Any]:
    """One or several as a list."""
    several = list(shown) if isinstance(shown, list | tuple) else [shown]
    if not several:
        raise InvalidArgument("there is nothing to draw: give at least one attribution.")
    return several
