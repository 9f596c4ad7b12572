"""head_importance: what the removal of one head does to the map."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnflow.errors import InvalidArgument
from attnflow.methods._attribute import MIX_OPTIONS, check_options
from attnflow.methods._table import Method, method_called, wanted_mixing
from attnflow.mixing import Recipe, mix, recipe_for
from attnflow.stack import AttentionStack, checked_stack


def head_importance(
    stack: AttentionStack,
    method: str | Method = "rollout",
    queries: int | str | Iterable[int | str] | None = None,
    level: int = -1,
    **options: Any,
) -> NDArray[np.float64]:
    """How much the map changes when one head is taken out of its layer: [layer, head], each from 0 to 1.

    The other heads of the layer are mixed as before (a mean is over one head less; a layer of one head leaves its residual), the
    method runs again, and the two maps are compared row by row as shares: half the sum of the absolute differences, which is
    the share of a query's attribution that moved elsewhere, averaged over `queries`. Options of `mix` and of the method may be given.
    """
    function = method_called(method)
    stack = checked_stack(stack)
    mixing = wanted_mixing(method) | {name: options.pop(name) for name in MIX_OPTIONS if name in options}
    check_options(function, options, MIX_OPTIONS)
    heads = mixing.get("heads", "mean")
    if np.ndim(heads) == 0 and not isinstance(heads, str) and not callable(heads):
        raise InvalidArgument(f"heads={heads!r} is one head alone: there is no other to take out. Mix all of them.")
    recipe_for(stack, **mixing)  # whose checks come first
    graph = mix(stack, **mixing)
    whole = _shares(function(graph, queries=queries, levels=[level], **options).scores[0])
    found = np.zeros((stack.layers, stack.heads))
    for layer, head in np.ndindex(found.shape):
        changed = graph.with_level(layer, _level_without(stack, mixing, heads, layer, head))
        without = _shares(function(changed, queries=queries, levels=[level], **options).scores[0])
        found[layer, head] = np.abs(whole - without).sum(axis=-1).mean() / 2
    return found


def _level_without(stack: AttentionStack, mixing: dict[str, Any], heads: Any, layer: int, head: int) -> NDArray[Any]:
    others = np.arange(stack.heads) != head
    weights = stack.weights[layer][others]
    gradients = None if stack.gradients is None else stack.gradients[layer][others]
    left = heads if isinstance(heads, str) or callable(heads) else np.asarray(heads, dtype=np.float64)[..., others]
    given = left if isinstance(left, np.ndarray) else None
    row = None if given is None else (given[layer] if given.ndim == 2 else given)
    if not len(weights) or (row is not None and not row.any()):
        made = Recipe(stack.tokens, stack.layers, 1, **{**mixing, "heads": "mean"})
        return made.finish(layer, np.zeros(stack.weights.shape[2:]))
    # One layer's weights count, whatever is left of the others'.
    chosen = left if row is None else row
    made = Recipe(stack.tokens, stack.layers, len(weights), **{**mixing, "heads": chosen})
    return made.level(layer, weights, gradients)


def _shares(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    sums = np.abs(rows).sum(axis=-1, keepdims=True)
    shares: NDArray[np.float64] = np.divide(rows, sums, out=np.zeros_like(rows), where=sums > 0)
    return shares
