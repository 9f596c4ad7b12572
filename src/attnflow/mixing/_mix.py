"""mix: a whole stack at once."""

from __future__ import annotations

from typing import Any

from attnflow.errors import InvalidArgument
from attnflow.graph import AttentionGraph
from attnflow.mixing._edges import EDGES, Matrix
from attnflow.mixing._recipe import Recipe
from attnflow.stack import AttentionStack, checked_stack


def mix(
    stack: AttentionStack,
    edges: str = "attention",
    heads: Any = "mean",
    residual: Any = 0.5,
    top_k: int | None = None,
    threshold: float | None = None,
    discard: float | None = None,
    *,
    drop_special: bool = False,
    renormalise: bool = True,
    receptive_field: bool = False,
    distance_discount: bool = False,
    set_aside: Any = None,
) -> AttentionGraph:
    """Mix the heads of a stack into a graph, A = (1 − α) W + α I, in this order.

    1. `edges`: "attention" (A), "gradient" ((mean over heads of ∇A ⊙ A)⁺) or "chefer" (mean over heads of (∇A ⊙ A)⁺).
    2. `heads`: "mean", "max", "min", one head's number, weights per head or per layer and head (shares: divided by their
       sum), or a function (heads, n, n) → (n, n).
    3. For decoders, each row keeping its sum. `set_aside`: nobody but themselves takes from these positions or tokens; "sinks"
       are the keys that, level by level, get more than 30 % of the attention of those that see them. `receptive_field`: column j
       is divided by the number of queries that see j. `distance_discount`: entry (i, j) is divided by |i − j| + 1.
    4. `discard`: this share of each level's entries, the smallest, becomes 0; what goes to special tokens is kept.
    5. `drop_special`: special tokens leave the graph.
    6. `residual`: α, one for all, one per layer, or one per layer and query; None is no residual.
    7. `top_k` and `threshold`: of each row only the k largest entries (ties stay), and only those above the threshold.
    8. `renormalise`: rows sum to 1 again; a row that lost everything keeps its own token, which is the limit of a
       vanishing residual.

    The default is the paper's A = 0.5 W + 0.5 I (Abnar & Zuidema 2020, section 3).
    """
    made = recipe_for(
        stack, edges=edges, heads=heads, residual=residual, top_k=top_k, threshold=threshold, discard=discard,
        drop_special=drop_special, renormalise=renormalise, receptive_field=receptive_field,
        distance_discount=distance_discount, set_aside=set_aside,
    )  # fmt: skip
    names = [f"layer {layer}" for layer in range(stack.layers)]
    return AttentionGraph(
        [mixed_level(stack, made, layer) for layer in range(stack.layers)],
        made.kept_tokens,
        names,
        options=made.options,
    )


def recipe_for(stack: AttentionStack, **options: Any) -> Recipe:
    """These options of `mix`, checked for this stack."""
    stack = checked_stack(stack)
    made = Recipe(stack.tokens, stack.layers, stack.heads, **options)
    if EDGES[made.edges].needs_gradients and stack.gradients is None:
        raise InvalidArgument(
            f"edges={made.edges!r} needs gradients, and this stack has none. "
            'Give AttentionStack(weights, gradients=…), or capture with record=("attention", "gradients").'
        )
    return made


def mixed_level(stack: AttentionStack, made: Recipe, layer: int) -> Matrix:
    """One layer of a stack as a level."""
    return made.level(layer, stack.weights[layer], None if stack.gradients is None else stack.gradients[layer])
