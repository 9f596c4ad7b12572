"""norm: the length of what each key contributed (Kobayashi et al. 2020, 2021; GlobEnc, Modarressi et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from attnflow.capture.rules._parts import Parts
from attnflow.capture.rules._record import LayerRecord
from attnflow.capture.rules._rule import Edges, check_choice

LAYERNORMS = ("none", "first", "both")
_AT_ONCE = 4 << 20  # weights that are multiplied at once: 32 MB


@dataclass(frozen=True)
class Norm:
    """N[i, j] = ‖L(Σ_h A[h, i, j] v_j^h W_O^h + 1[i = j] x_i)‖₂.

    L are the norms that the sum passes, as linear maps (statistics fixed): none of them (Kobayashi et al. 2020, with the
    residual of 2021), the "first" (ATTNRESLN-N, 2021), or "both", the one after the feed-forward part too, which itself is left
    out (N_Enc of GlobEnc). In pre-norm layers the sum passes no norm and the three are one; the norm before the attention is in v.

    Needs the layer (FAMILIES). Rows are lengths, not proportions: `mix` divides each by its sum, and any method may be used;
    with `renormalise=False` rollout is GlobEnc's plain product, and flow takes lengths as capacities.
    """

    with_layernorm: str = "first"
    residual: bool = True
    name: ClassVar[str] = "norm"
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_choice("with_layernorm", self.with_layernorm, LAYERNORMS)

    def __call__(self, record: LayerRecord) -> Edges:
        """By Gram matrices: ‖Σ_h a_h u_h‖² = Σ a_g a_h u_g·u_h, so that no vector (queries, keys, width) is made."""
        parts = Parts.of(record, self.with_layernorm, residual=self.residual)
        matrix = squared_lengths(parts).clamp_(min=0).sqrt_()
        if parts.own is None:
            return Edges(matrix)
        if parts.cross:
            return Edges(matrix, parts.own.double().norm(dim=-1))
        torch.diagonal(matrix).copy_(own_parts(parts).norm(dim=-1))
        return Edges(matrix)


def squared_lengths(parts: Parts) -> torch.Tensor:
    """‖Σ_h A[h, i, j] u_j^h‖² · scale² (queries, keys), without the residual; in float64, since parts may cancel."""
    vectors = parts.vectors.permute(1, 0, 2).double()  # (keys, heads, width)
    gram = torch.bmm(vectors, vectors.transpose(1, 2))
    heads, queries, keys = parts.weights.shape
    found = torch.empty(queries, keys, dtype=torch.float64, device=gram.device)
    step = max(1, _AT_ONCE // (heads * queries))
    for start in range(0, keys, step):
        some = slice(start, start + step)
        shares = parts.weights[:, :, some].permute(2, 1, 0).double()  # (keys, queries, heads)
        found[:, some] = (torch.bmm(shares, gram[some]) * shares).sum(-1).T
    return found * parts.scale.double()[:, None] ** 2


def own_parts(parts: Parts) -> torch.Tensor:
    """T_i(x_i) (queries, width), what each query contributes to itself, the residual with it."""
    shares = torch.diagonal(parts.weights, dim1=1, dim2=2)  # (heads, queries)
    made = torch.einsum("hq,hqd->qd", shares, parts.vectors).double() * parts.scale.double()[:, None]
    return made if parts.own is None else made + parts.own.double()
