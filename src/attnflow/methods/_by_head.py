"""by_head: one attribution for each head."""

from __future__ import annotations

from typing import Any

from attnflow.attribution import Attribution
from attnflow.errors import InvalidArgument, suggest
from attnflow.graph import AttentionGraph
from attnflow.methods._attribute import MIX_OPTIONS, check_options
from attnflow.methods._table import Method, method_called, wanted_mixing
from attnflow.mixing import mixed_level, recipe_for
from attnflow.stack import AttentionStack, checked_stack
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
    mixing = wanted_mixing(method) | {name: options.pop(name) for name in MIX_OPTIONS if name in options}
    check_options(function, options, MIX_OPTIONS)
    number = checked_index(level, checked_stack(stack).layers, "level")
    mixed = recipe_for(stack, **mixing)
    below_mixed = [mixed_level(stack, mixed, layer) for layer in range(number)] if below == "mixed" else None
    names = [f"layer {layer}" for layer in range(number + 1)]
    attributions = []
    for head in range(stack.heads):
        alone = recipe_for(stack, **{**mixing, "heads": head})
        under = below_mixed or [mixed_level(stack, alone, layer) for layer in range(number)]
        made = {**mixed.options, "head": head, "below": below}
        graph = AttentionGraph([*under, mixed_level(stack, alone, number)], mixed.kept_tokens, names, options=made)
        attributions.append(function(graph, levels=[number], **options))
    return attributions
