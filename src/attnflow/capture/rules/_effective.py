"""effective: attention without the part that the values cannot show (Brunner et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from attnflow.capture.rules._record import LayerRecord
from attnflow.capture.rules._rule import Edges


@dataclass(frozen=True)
class Effective:
    """A_eff = A U Uᵀ for each head, U an orthonormal basis of the space that the columns of V (keys, width) span; then the mean.

    What of a row of A lies outside that space is lost in A V: A_eff V = A V. With no more tokens than V has rank, which
    is at most the width of a head, nothing is lost and A_eff = A. (The paper takes V W_O, which spans the same space
    while W_O has full rank.) The projection knows no causality: entries for later keys are usual.

    Needs the attention call alone. Entries may be negative and rows need not sum to 1, so the graph is signed: raw and
    rollout read it, flow and relevance refuse.
    """

    name: ClassVar[str] = "effective"
    signed: ClassVar[bool] = True

    def __call__(self, record: LayerRecord) -> Edges:
        """Averaged over the heads that count."""
        values = record.value.double()
        mean = torch.zeros(record.weights.shape[1:], dtype=torch.float64, device=values.device)
        for factor, weights, value in zip(record.factors.tolist(), record.weights.double(), values, strict=True):
            if factor:
                basis = column_space(value)
                mean += factor * ((weights @ basis) @ basis.T)
        return Edges(mean / float(record.factors.sum()))


def column_space(matrix: torch.Tensor) -> torch.Tensor:
    """An orthonormal basis (rows, rank) of what the columns span."""
    left, values, _ = torch.linalg.svd(matrix, full_matrices=False)
    # Numbers that came through float32 are noise below its rounding, however precisely they are decomposed.
    small = values.max() * max(matrix.shape) * torch.finfo(torch.float32).eps
    basis: torch.Tensor = left[:, values > small]
    return basis
