"""What each key contributed to each query, past the norms: the vectors that `norm` measures and `alti` compares."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import torch

from attnflow.capture.rules._diagonal import Diagonal
from attnflow.capture.rules._record import LayerRecord, weighted

_BLOCK = 1 << 19  # numbers in a block of vectors: 2 MB, which the processor's cache holds
_ROWS = 64  # queries in a block


@dataclass(frozen=True, eq=False)
class Parts:
    """T_i(x_j) = L(Σ_h A[h, i, j] v_j^h W_O^h + 1[i = j] x_i): L are the norms on the way, their statistics fixed.

    L's own division by σ, which depends on the query alone, is kept apart as `scale`. `own` (queries, width) is what the
    residual connection contributes; of an attention to another sequence it is no key's. `constant` is what no key contributed: the
    biases. All of it adds up to the true output: Σ_j T_i(x_j) + constant_i (+ own_i where keys are another sequence's).
    """

    weights: torch.Tensor  # (heads, queries, keys)
    vectors: torch.Tensor  # (heads, keys, width), L applied but for its division
    scale: torch.Tensor  # (queries)
    own: torch.Tensor | None
    constant: torch.Tensor
    cross: bool

    @classmethod
    def of(cls, record: LayerRecord, with_layernorm: str, *, residual: bool) -> Parts:
        """The parts of one attention; `residual`: whether what is carried counts."""
        written, after = record.diagonals(with_layernorm)
        vectors, scale = record.vectors, torch.ones(record.weights.shape[1], dtype=torch.float64)
        constant = record.bias.double().expand(record.weights.shape[1], -1)
        for one in written:
            vectors, scale = one.fold(vectors), scale.to(one.sigma) / one.sigma
            constant = one(constant) + one.beta
        own = _through(record.carried, after) if residual else None
        return cls(record.counted, vectors, scale.to(vectors), own, constant.to(vectors), record.cross)

    def block(self, rows: slice = slice(None)) -> torch.Tensor:
        """T_i(x_j) for some queries (queries, keys, width)."""
        made = weighted(self.weights[:, rows], self.vectors) * self.scale[rows, None, None]
        if self.own is not None and not self.cross:
            positions = torch.arange(self.weights.shape[1], device=made.device)[rows]
            made[torch.arange(len(positions), device=made.device), positions] += self.own[rows]
        return made

    def distances(self, whole: torch.Tensor) -> torch.Tensor:
        """‖whole_i − T_i(x_j)‖₁ (queries, keys): one product and one sum a block of some queries and some keys.

        Both, since products of matrices with few rows are slow: at 512 tokens whole rows took ten times as long.
        """
        shares = (self.weights * self.scale[:, None]).permute(2, 1, 0)  # (keys, queries, heads)
        vectors = self.vectors.permute(1, 0, 2)
        keys, queries, _ = shares.shape
        found = torch.empty(queries, keys, dtype=whole.dtype, device=whole.device)
        some = max(1, _BLOCK // (_ROWS * whole.shape[-1]))
        for top, left in product(range(0, queries, _ROWS), range(0, keys, some)):
            rows, columns = slice(top, top + _ROWS), slice(left, left + some)
            block = shares[columns, rows]
            parts = torch.baddbmm(whole[rows].expand(len(block), -1, -1), block, vectors[columns], alpha=-1)
            if self.own is not None and not self.cross:
                both = torch.arange(keys, device=whole.device)[max(top, left) : min(rows.stop, columns.stop)]
                parts[both - left, both - top] -= self.own[both]
            found[rows, columns] = parts.abs_().sum(-1).T
        return found

    @property
    def whole(self) -> torch.Tensor:
        """Their sum with the constant (queries, width): the output, if all heads count and the residual does."""
        summed = torch.einsum("hqk,hkd->qd", self.weights, self.vectors) * self.scale[:, None] + self.constant
        return summed if self.own is None else summed + self.own


def _through(rows: torch.Tensor, diagonals: list[Diagonal]) -> torch.Tensor:
    for one in diagonals:
        rows = one(rows)
    return rows
