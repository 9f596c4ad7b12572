"""mix: from every head of every layer to one matrix a level, in one documented order.

    edge rule → heads → what decoders need → discard → drop special tokens → residual → top_k and threshold → rows that sum to 1

`Recipe` holds the choices, checked once, and works layer by layer, so that whoever produces layers one at a time (a
model as it runs) mixes them by the same code.
"""

from __future__ import annotations

from attnflow.mixing._edges import EDGES, FUSIONS, EdgeRule
from attnflow.mixing._mix import mix, mixed_level, recipe_for
from attnflow.mixing._recipe import Recipe

__all__ = ["EDGES", "FUSIONS", "EdgeRule", "Recipe", "mix", "mixed_level", "recipe_for"]
