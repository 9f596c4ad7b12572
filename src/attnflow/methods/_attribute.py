"""attribute: any method, over a stack or a graph, in one call."""

from __future__ import annotations

import inspect
from typing import Any

from attnflow.attribution import Attribution
from attnflow.errors import InvalidArgument, InvalidAttention, suggest
from attnflow.graph import AttentionGraph
from attnflow.methods._table import Method, method_called, wanted_mixing
from attnflow.mixing import mix
from attnflow.stack import AttentionStack

MIX_OPTIONS = tuple(inspect.signature(mix).parameters)[1:]


def attribute(
    attention: AttentionStack | AttentionGraph, method: str | Method = "rollout", **options: Any
) -> Attribution:
    """`method` (a name or a function) over a graph, or over a stack mixed on the way.

    Options of `mix` go to the mixing, the others (queries, levels, …) to the method. A method that stands on other options of
    `mix` than the usual ones (relevance) gets those, unless they are given.
    """
    function = method_called(method)
    mixing = {name: options.pop(name) for name in MIX_OPTIONS if name in options}
    check_options(function, options, MIX_OPTIONS)
    if isinstance(attention, AttentionGraph):
        if mixing:
            raise InvalidArgument(
                f"this graph is mixed already, so {', '.join(mixing)} cannot apply: give the AttentionStack."
            )
        return function(attention, **options)
    if not isinstance(attention, AttentionStack):
        raise InvalidAttention(
            f"expected an AttentionStack or an AttentionGraph, got a {type(attention).__name__}. Wrap arrays in AttentionStack(weights)."
        )
    return function(mix(attention, **{**wanted_mixing(method), **mixing}), **options)


def check_options(function: Method, options: dict[str, Any], others: tuple[str, ...] = ()) -> None:
    """Refuse an option that the method does not have, by name."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        raise InvalidArgument(f"{function!r} is no method: a method takes a graph, and queries= and levels=.") from None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    known = list(parameters)[1:]
    for name in options:
        if name not in known:
            raise InvalidArgument(f"unknown option {name!r}." + suggest(name, [*known, *others]))
