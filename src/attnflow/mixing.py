"""mix: from every head of every layer to one matrix a level, in one documented order.

    edge rule → heads → discard → drop special tokens → residual → top_k and threshold → rows that sum to 1

`Recipe` holds the choices, checked once, and works layer by layer, so that whoever produces layers one at a time (a
model as it runs) mixes them by the same code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnflow.arrays import as_floats, row_sums
from attnflow.artifacts import jsonable
from attnflow.errors import InvalidArgument, InvalidAttention, suggest
from attnflow.graph import AttentionGraph
from attnflow.stack import AttentionStack, checked_stack
from attnflow.tokens import Tokens, checked_index, whole_number

Matrix = NDArray[Any]
Fuse = Callable[[Matrix], Matrix]  # (heads, n, n) → (n, n)


class EdgeRule(NamedTuple):
    """What counts as the strength of an edge: a value per head, and what is done after the heads are fused."""

    per_head: Callable[[Matrix, Matrix | None], Matrix]
    fused: Callable[[Matrix], Matrix]
    needs_gradients: bool


def _positive(matrix: Matrix) -> Matrix:
    return np.maximum(matrix, 0)


def _weighted(weights: Matrix, gradients: Matrix | None) -> Matrix:
    if gradients is None:
        raise InvalidArgument("this edge rule needs gradients, which were not recorded.")
    return weights * gradients


EDGES: dict[str, EdgeRule] = {
    # A (Abnar & Zuidema 2020)
    "attention": EdgeRule(lambda weights, _: weights, lambda matrix: matrix, False),
    # (mean over heads of ∇A ⊙ A)⁺: gradient rollout (Gildenblat 2020)
    "gradient": EdgeRule(_weighted, _positive, True),
    # mean over heads of (∇A ⊙ A)⁺ (Chefer, Gur & Wolf 2021, eq. 5)
    "chefer": EdgeRule(
        lambda weights, gradients: _positive(_weighted(weights, gradients)), lambda matrix: matrix, True
    ),
}

FUSIONS: dict[str, Fuse] = {
    "max": lambda matrices: matrices.max(axis=0),
    "min": lambda matrices: matrices.min(axis=0),
}


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
    shares: NDArray[np.float64] | None = field(init=False)  # of the heads [layer, head], where they are averaged
    alpha: NDArray[np.float64] = field(init=False)  # of the residual [layer, query]

    def __post_init__(self) -> None:
        if not isinstance(self.edges, str) or self.edges not in EDGES:
            raise InvalidArgument(f"unknown edge rule {self.edges!r}." + suggest(self.edges, EDGES))
        _check_sparsity(self.top_k, self.threshold, self.discard, len(self.tokens))
        if self.drop_special and self.tokens.special.all():
            raise InvalidArgument("all tokens are special, so drop_special would leave none.")
        object.__setattr__(self, "shares", _shares(self.heads, self.layers, self.head_count))
        object.__setattr__(self, "alpha", _alpha(self.residual, self.layers, len(self.tokens)))

    @property
    def options(self) -> dict[str, Any]:
        """What was chosen, for the record."""
        chosen = ("edges", "heads", "residual", "top_k", "threshold", "discard", "drop_special", "renormalise")
        return {name: jsonable(getattr(self, name)) for name in chosen}

    def level(self, layer: int, weights: Matrix, gradients: Matrix | None = None) -> Matrix:
        """One layer's heads (heads, n, n) as a level."""
        return self.finish(layer, self.fused(layer, weights, gradients))

    def fused(self, layer: int, weights: Matrix, gradients: Matrix | None = None) -> Matrix:
        """One layer's heads as one matrix by the edge rule, before `finish`; the matrices need not be square."""
        rule = EDGES[self.edges]
        matrices = rule.per_head(
            _at_least_float32(weights), None if gradients is None else _at_least_float32(gradients)
        )
        fused = rule.fused(self._fuse(layer, matrices))
        if callable(self.heads) and fused.min(initial=0) < 0:
            raise InvalidAttention(
                f"a function given as heads must not return negative numbers; got {fused.min():.4g}."
            )
        return fused

    def _fuse(self, layer: int, matrices: Matrix) -> Matrix:
        if self.shares is not None:
            return _average(self.shares[layer], matrices)
        if isinstance(self.heads, str):
            return FUSIONS[self.heads](matrices)
        return _checked_fusion(self.heads(matrices), matrices.shape[1:])

    def finish(self, layer: int, matrix: Matrix, out: Matrix | None = None) -> Matrix:
        """What follows once the heads are one matrix: from `discard` to rows that sum to 1.

        `out` takes the level, and may be the matrix itself.
        """
        if self.discard:
            matrix = _discard(matrix, self.discard, self.tokens.special)
        alpha = self.alpha[layer]
        if self.drop_special:
            kept = ~self.tokens.special
            matrix, alpha = matrix[kept][:, kept], alpha[kept]
        level: Matrix = np.multiply(matrix, (1 - alpha).astype(matrix.dtype)[:, None], out=out)
        np.einsum("ii->i", level)[:] += alpha.astype(matrix.dtype)  # a view of the diagonal
        if self.top_k is not None or self.threshold is not None:
            level *= _kept(level, self.top_k, self.threshold)
        if self.renormalise:
            _to_proportions(level)
        return level

    @property
    def kept_tokens(self) -> Tokens:
        """The tokens of the finished graph."""
        return self.tokens.select(~self.tokens.special) if self.drop_special else self.tokens


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
) -> AttentionGraph:
    """Mix the heads of a stack into a graph, A = (1 − α) W + α I, in this order.

    1. `edges`: "attention" (A), "gradient" ((mean over heads of ∇A ⊙ A)⁺) or "chefer" (mean over heads of (∇A ⊙ A)⁺).
    2. `heads`: "mean", "max", "min", one head's number, weights per head or per layer and head (shares: divided by their
       sum), or a function (heads, n, n) → (n, n).
    3. `discard`: this share of each level's entries, the smallest, becomes 0; what goes to special tokens is kept.
    4. `drop_special`: special tokens leave the graph.
    5. `residual`: α, one for all, one per layer, or one per layer and query; None is no residual.
    6. `top_k` and `threshold`: of each row only the k largest entries (ties stay), and only those above the threshold.
    7. `renormalise`: rows sum to 1 again; a row that lost everything keeps its own token, which is the limit of a
       vanishing residual.

    The default is the paper's A = 0.5 W + 0.5 I (Abnar & Zuidema 2020, section 3).
    """
    made = recipe_for(
        stack, edges=edges, heads=heads, residual=residual, top_k=top_k, threshold=threshold, discard=discard,
        drop_special=drop_special, renormalise=renormalise,
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


def _check_sparsity(top_k: Any, threshold: Any, discard: Any, count: int) -> None:
    if top_k is not None and not 1 <= (whole_number(top_k) or 0) <= count:
        raise InvalidArgument(f"top_k must be a whole number from 1 to the number of tokens, {count}; got {top_k!r}.")
    for name, value in (("threshold", threshold), ("discard", discard)):
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if value is not None and not (number and 0 <= value < 1):
            raise InvalidArgument(f"{name} must be a number from 0 to below 1, got {value!r}.")


def _alpha(residual: Any, layers: int, count: int) -> NDArray[np.float64]:
    """α for each layer and query."""
    shapes = f"a number, {layers} of them (one per layer), or shape ({layers}, {count}) (one per layer and query)"
    try:
        alpha = as_floats(0.0 if residual is None else residual, "residual").astype(np.float64)
    except InvalidAttention:
        raise InvalidArgument(f"residual must be None or {shapes}; got {residual!r}.") from None
    if alpha.shape not in ((), (layers,), (layers, count)):
        raise InvalidArgument(f"residual must be None or {shapes}; got shape {alpha.shape}.")
    if not ((alpha >= 0) & (alpha <= 1)).all():
        raise InvalidArgument(f"residual is a share from 0 to 1, got {residual!r}.")
    return np.broadcast_to(alpha[:, None] if alpha.ndim == 1 else alpha, (layers, count))


def _shares(heads: Any, layers: int, count: int) -> NDArray[np.float64] | None:
    """The heads' shares [layer, head], or None where they are not averaged (maximum, minimum, a function)."""
    if isinstance(heads, str):
        if heads not in ("mean", *FUSIONS):
            raise InvalidArgument(f"unknown way to mix heads {heads!r}." + suggest(heads, ["mean", *FUSIONS]))
        return np.full((layers, count), 1 / count) if heads == "mean" else None
    if callable(heads):
        return None
    if np.ndim(heads) == 0 and whole_number(heads) is not None:
        return np.tile(np.arange(count) == checked_index(heads, count, "head"), (layers, 1)).astype(np.float64)
    wanted = f"a name, a head's number, a function, {count} weights (one per head) or shape ({layers}, {count}) (one per layer and head)"
    try:
        weights = as_floats(heads, "heads").astype(np.float64)
    except InvalidAttention:
        raise InvalidArgument(f"heads must be {wanted}; got {heads!r}.") from None
    if weights.shape not in ((count,), (layers, count)):
        raise InvalidArgument(f"heads must be {wanted}; got shape {weights.shape}.")
    table = np.broadcast_to(weights, (layers, count))
    if not np.isfinite(table).all() or (table < 0).any() or not (table.sum(axis=1) > 0).all():
        raise InvalidArgument("head weights must be finite, not negative, and not all zero in a layer.")
    shares: NDArray[np.float64] = table / table.sum(axis=1, keepdims=True)
    return shares


def _average(shares: NDArray[np.float64], matrices: Matrix) -> Matrix:
    used = np.flatnonzero(shares)
    if len(used) == 1:
        alone: Matrix = matrices[used[0]]
        return alone
    # one pass over the heads: np.average would copy them all, and BLAS loses time in threads on a busy machine
    averaged: Matrix = np.einsum("h,hij->ij", shares.astype(matrices.dtype), matrices)
    return averaged


def _checked_fusion(fused: Any, shape: tuple[int, ...]) -> Matrix:
    matrix = np.asarray(fused)
    if matrix.shape != shape or matrix.dtype.kind not in "fiub" or not np.isfinite(matrix).all():
        raise InvalidAttention(
            f"a function given as heads must return finite numbers of shape {shape}; got {matrix.dtype} of shape {matrix.shape}."
        )
    return matrix if matrix.dtype.kind == "f" else matrix.astype(np.float64)


def _discard(matrix: Matrix, share: float, protected: NDArray[np.bool_]) -> Matrix:
    """The smallest `share` of all entries becomes 0; ties stay, and so does what goes to protected (special) tokens.

    The quantile is over the whole matrix, as in vit-explain (Gildenblat 2020), which means to protect the class token
    and protects the first entry alone.
    """
    count = int(matrix.size * share)
    smallest_kept = np.partition(matrix.ravel(), count)[count]
    thinned: Matrix = matrix * ((matrix >= smallest_kept) | protected)
    return thinned


def _kept(level: Matrix, top_k: int | None, threshold: float | None) -> NDArray[np.bool_]:
    """Which entries stay: each row's `top_k` largest, ties included, and of those what lies above the threshold."""
    kept: NDArray[np.bool_] = np.ones(level.shape, dtype=np.bool_)
    if top_k is not None and top_k < level.shape[1]:
        kept &= level >= np.partition(level, -top_k, axis=1)[:, -top_k, None]
    if threshold is not None:
        kept &= level > threshold
    return kept


def _to_proportions(level: Matrix) -> None:
    """Divide each row by its sum, in place; an empty row keeps its own token."""
    sums = row_sums(level)
    empty = sums <= 0
    level /= np.where(empty, 1, sums).astype(level.dtype)[:, None]  # not times 1 / sum, which may overflow
    np.einsum("ii->i", level)[empty] = 1


def _at_least_float32(array: Matrix) -> Matrix:
    wide: Matrix = array if array.dtype.itemsize >= 4 else array.astype(np.float32)
    return wide
