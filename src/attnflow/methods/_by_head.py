"""by_head: one attribution for each head."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from attnflow.attribution import Attribution
from attnflow.errors import InvalidArgument, suggest
from attnflow.methods._attribute import MIX_OPTIONS, check_options
from attnflow.methods._table import Method, method_called
from attnflow.mixing import mix, mixed_level, recipe_for
from attnflow.stack import AttentionStack
from attnflow.tokens import checked_index

BELOW = ("mixed", "own")


def by_head(
    stack: AttentionStack, method: str | Method = "rollout", below: str = "mixed", level: int = -1, **options: Any
) -> list[Attribution]:
    """One attribution per head, at one level.

    `below="mixed"` is appendix A.1 of Abnar & Zuidema (2020): the head alone at `level`, the levels below it mixed as
    `options` say. The paper prints Ã(i, k) = A(i, k) · Ā(i) for head k of layer i; Ā(i) must be the rollout of the
    layers *below* i, or else layer i would count twice, and that is how it is read here. The head's own level gets the
    same residual as the others. `below="own"`: the head of the same number in every layer, its own chain to the input.
    """
    function = method_called(method)
    if below not in BELOW:
        raise InvalidArgument(f"unknown value for below {below!r}." + suggest(below, BELOW))
    if "heads" in options and below == "own":
        raise InvalidArgument('heads cannot be chosen when below="own": every head goes its own way.')
    if "levels" in options:
        raise InvalidArgument("by_head looks at one level: give level=, not levels=.")
    mixing = {name: options.pop(name) for name in MIX_OPTIONS if name in options}
    check_options(function, options, MIX_OPTIONS)
    number = checked_index(level, stack.layers, "level")
    mixed = mix(stack, **mixing)[: number + 1] if below == "mixed" else None
    attributions = []
    for head in range(stack.heads):
        alone = {**mixing, "heads": head}
        if mixed is None:
            graph = mix(stack, **alone)
        else:
            graph = mixed.with_level(number, mixed_level(stack, recipe_for(stack, **alone), number))
        found = function(graph, levels=[number], **options)
        attributions.append(replace(found, options={**found.options, "head": head, "below": below}))
    return attributions
