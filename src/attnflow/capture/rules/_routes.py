"""routes: information-flow routes, the share of each key in what a block writes (Ferrando & Voita 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from attnflow.capture.rules._alti import nearer
from attnflow.capture.rules._parts import Parts
from attnflow.capture.rules._record import LayerRecord
from attnflow.capture.rules._rule import Edges
from attnflow.errors import CaptureError

_FLOOR = 1e-5


@dataclass(frozen=True)
class Routes:
    """prox(part, whole) = max(‖whole‖₁ − ‖whole − part‖₁, 1e-5), divided by the sum over all parts.

    The parts of an attention block are what each head took from each key, A[h, i, j] v_j^h W_O^h, and what is carried, x_i; the whole is their
    sum with the bias, which is no part. An edge is the sum over heads. A key that may not be seen is no part, so causal
    graphs stay causal. The paper drops edges below a threshold: `mix`'s `threshold`.

    The paper's graph has a second block a layer, the feed-forward part {what it writes, what is carried}. It acts on each
    position alone: between positions it is an identity, whatever its shares, so it is no level here. `feed_forward` tells its
    share, by which the paper prunes it.

    Needs the layer (FAMILIES). Rows are proportions: any method may be used.
    """

    residual: bool = True
    name: ClassVar[str] = "routes"
    signed: ClassVar[bool] = False

    def __call__(self, record: LayerRecord) -> Edges:
        """Head by head, so that no vector (heads, queries, keys, width) is made."""
        parts = Parts.of(record, "none", residual=self.residual)
        matrix = torch.zeros(parts.weights.shape[1:], dtype=torch.float64, device=parts.vectors.device)
        whole = parts.whole
        length = whole.abs().sum(-1, keepdim=True)
        for rows in record.rows():
            for weights, vectors in zip(parts.weights[:, rows], parts.vectors, strict=True):
                scaled = weights * parts.scale[rows, None]
                left = torch.addcmul(whole[rows, None], scaled[..., None], vectors, value=-1).abs_().sum(-1)
                matrix[rows] += torch.where(weights > 0, (length[rows] - left).clamp_(min=_FLOOR), 0)
        if parts.own is None:
            return Edges(matrix / matrix.sum(-1, keepdim=True).clamp(min=1e-300))
        own = nearer(whole, parts.own, 1).clamp_(min=_FLOOR)
        total = matrix.sum(-1) + own
        return Edges(matrix / total[:, None], own / total)


def feed_forward(record: LayerRecord) -> torch.Tensor:
    """The share of the feed-forward part in a pre-norm layer's output, for each position, by the same proximity.

    The parts are what it writes and what is carried past it, x + attention; the whole is the layer's output. For the last attention
    of a layer: what comes after an earlier one is more than the feed-forward part.
    """
    if record.known.sublayer.after is not None:
        raise CaptureError(
            f"{record.path} is in a post-norm layer, whose output is no sum of what the feed-forward part writes and what is carried."
        )
    passed, whole = record.carried + record.written, record.output
    wrote, kept = (nearer(whole, part, 1).clamp_(min=_FLOOR) for part in (whole - passed, passed))
    return wrote / (wrote + kept)
