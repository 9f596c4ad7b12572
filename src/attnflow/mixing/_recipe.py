"""Recipe: the options of a mix, checked once, applied layer by layer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnflow.artifacts import jsonable
from attnflow.errors import InvalidArgument, InvalidAttention, suggest
from attnflow.mixing._choices import check_sparsity, head_shares, residual_shares
from attnflow.mixing._decoders import by_distance, by_receptive_field, positions_aside, set_aside, sinks_in
from attnflow.mixing._edges import EDGES, FUSIONS, Matrix
from attnflow.mixing._steps import (
    at_least_float32,
    average,
    checked_fusion,
    kept_entries,
    to_proportions,
    without_smallest,
)
from attnflow.tokens import Tokens


@dataclass(frozen=True, eq=False)
class Recipe:
    """The options of a mix, checked against the tokens, layers and heads they are for."""

    tokens: Tokens
    layers: int
    head_count: int
    edges: str = "attention"
    heads: Any = "mean"
    residual: Any = 0.5
    top_k: int | None = None
    threshold: float | None = None
    discard: float | None = None
    drop_special: bool = False
    renormalise: bool = True
    receptive_field: bool = False
    distance_discount: bool = False
    set_aside: Any = None
    shares: NDArray[np.float64] | None = field(init=False)  # of the heads [layer, head], where they are averaged
    alpha: NDArray[np.float64] = field(init=False)  # of the residual [layer, query]
    aside: Any = field(init=False)  # which positions are set aside, or "sinks"

    def __post_init__(self) -> None:
        if not isinstance(self.edges, str) or self.edges not in EDGES:
            raise InvalidArgument(
                f"unknown edge rule {self.edges!r}."
                + suggest(self.edges, EDGES)
                + " Rules that read the model's layers (norm, "
                "alti, …) need the model: attnflow.capture.graph(…, edges=…)."
            )
        check_sparsity(self.top_k, self.threshold, self.discard, len(self.tokens))
        if self.drop_special and self.tokens.special.all():
            raise InvalidArgument("all tokens are special, so drop_special would leave none.")
        object.__setattr__(self, "shares", head_shares(self.heads, self.layers, self.head_count))
        object.__setattr__(self, "alpha", residual_shares(self.residual, self.layers, len(self.tokens)))
        object.__setattr__(self, "aside", positions_aside(self.set_aside, self.tokens))

    @property
    def options(self) -> dict[str, Any]:
        """What was chosen, for the record."""
        chosen = ("edges", "heads", "residual", "top_k", "threshold", "discard", "drop_special", "renormalise")
        made = {name: jsonable(getattr(self, name)) for name in chosen}
        rarer = {name: getattr(self, name) for name in ("receptive_field", "distance_discount", "set_aside")}
        return made | {
            name: jsonable(value) for name, value in rarer.items() if value is not None and value is not False
        }

    def level(self, layer: int, weights: Matrix, gradients: Matrix | None = None) -> Matrix:
        """One layer's heads (heads, n, n) as a level."""
        return self.finish(layer, self.fused(layer, weights, gradients))

    def fused(self, layer: int, weights: Matrix, gradients: Matrix | None = None) -> Matrix:
        """One layer's heads as one matrix by the edge rule, before `finish`; the matrices need not be square."""
        rule = EDGES[self.edges]
        matrices = rule.per_head(at_least_float32(weights), None if gradients is None else at_least_float32(gradients))
        fused = rule.fused(self._fuse(layer, matrices))
        if callable(self.heads) and fused.min(initial=0) < 0:
            raise InvalidAttention(
                f"a function given as heads must not return negative numbers; got {fused.min():.4g}."
            )
        return fused

    def _fuse(self, layer: int, matrices: Matrix) -> Matrix:
        if self.shares is not None:
            return average(self.shares[layer], matrices)
        if isinstance(self.heads, str):
            return FUSIONS[self.heads](matrices)
        return checked_fusion(self.heads(matrices), matrices.shape[1:])

    def finish(self, layer: int, matrix: Matrix, out: Matrix | None = None, *, distances: bool = True) -> Matrix:
        """What follows once the heads are one matrix: from `set_aside` to rows that sum to 1.

        `out` takes the level, and may be the matrix itself. `distances`: whether queries and keys are of one sequence.
        """
        matrix = self._seen_fairly(matrix, distances=distances)
        if self.discard:
            matrix = without_smallest(matrix, self.discard, self.tokens.special)
        alpha = self.alpha[layer]
        if self.drop_special:
            kept = ~self.tokens.special
            matrix, alpha = matrix[kept][:, kept], alpha[kept]
        level: Matrix = np.multiply(matrix, (1 - alpha).astype(matrix.dtype)[:, None], out=out)
        np.einsum("ii->i", level)[:] += alpha.astype(matrix.dtype)  # a view of the diagonal
        if self.top_k is not None or self.threshold is not None:
            level *= kept_entries(level, self.top_k, self.threshold)
        if self.renormalise:
            to_proportions(level)
        return level

    def _seen_fairly(self, matrix: Matrix, *, distances: bool) -> Matrix:
        """What decoders need, in the order sinks, receptive field, distance."""
        if self.aside is not None:
            matrix = set_aside(matrix, sinks_in(matrix) if isinstance(self.aside, str) else self.aside)
        if self.receptive_field:
            matrix = by_receptive_field(matrix)
        return by_distance(matrix) if self.distance_discount and distances else matrix

    @property
    def kept_tokens(self) -> Tokens:
        """The tokens of the finished graph."""
        return self.tokens.select(~self.tokens.special) if self.drop_special else self.tokens
