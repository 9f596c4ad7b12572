"""alti: how much nearer the output lies to what a key contributed (Ferrando, Gállego & Costa-jussà 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from attnflow.capture.rules._norm import own_parts, squared_lengths
from attnflow.capture.rules._parts import Parts
from attnflow.capture.rules._record import LayerRecord
from attnflow.capture.rules._rule import Edges, check_choice

DISTANCES = ("l1", "l2")


@dataclass(frozen=True)
class Alti:
    """C[i, j] = max(0, ‖y_i‖ − ‖y_i − T_i(x_j)‖), rows divided by their sums.

    T_i(x_j) are the vectors of `Parts`, y_i = Σ_j T_i(x_j) + biases is the attention block's output: after the LayerNorm in
    post-norm layers, the sum itself in pre-norm layers. Lengths are Σ|·| ("l1", the paper's choice) or Euclidean ("l2").

    Needs the layer (FAMILIES). Rows become proportions: any method may be used. The residual is counted in, so a rollout adds none.
    """

    distance: str = "l1"
    residual: bool = True
    name: ClassVar[str] = "alti"
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_choice("distance", self.distance, DISTANCES)

    def __call__(self, record: LayerRecord) -> Edges:
        """Euclidean lengths need no vector (queries, keys, width); sums of absolute values do, made in blocks of queries."""
        parts = Parts.of(record, "first", residual=self.residual)
        whole = parts.whole
        matrix = (
            whole.abs().sum(-1, keepdim=True) - parts.distances(whole)
            if self.distance == "l1"
            else _lengths(parts, whole)
        )
        own = None
        if parts.cross and parts.own is not None:
            order = 1 if self.distance == "l1" else 2
            own = nearer(whole, parts.own, order)
        return Edges(matrix.clamp_(min=0), own)


def nearer(whole: torch.Tensor, part: torch.Tensor, order: int) -> torch.Tensor:
    """max(0, ‖whole‖ − ‖whole − part‖) for each row."""
    length = torch.linalg.vector_norm
    left = length(whole, order, -1, dtype=torch.float64) - length(whole - part, order, -1, dtype=torch.float64)
    kept: torch.Tensor = left.clamp_(min=0)
    return kept


def _lengths(parts: Parts, whole: torch.Tensor) -> torch.Tensor:
    """‖y − T‖² = ‖y‖² − 2 y·T + ‖T‖², each by products of matrices."""
    y = whole.double()
    shared = torch.zeros(parts.weights.shape[1:], dtype=torch.float64, device=y.device)
    for weights, vectors in zip(parts.weights, parts.vectors, strict=True):
        shared += weights * (y @ vectors.double().T)
    shared *= parts.scale.double()[:, None]
    squares = squared_lengths(parts)
    if parts.own is not None and not parts.cross:
        own = own_parts(parts)
        torch.diagonal(shared).copy_((y * own).sum(-1))
        torch.diagonal(squares).copy_(own.pow(2).sum(-1))
    length = y.norm(dim=-1, keepdim=True)
    nearness: torch.Tensor = length - (length**2 - 2 * shared + squares).clamp_(min=0).sqrt_()
    return nearness
