"""value_zeroing: how far the layer's output turns when a key's value is taken away (Mohebbi et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from attnflow.capture.rules._record import LayerRecord
from attnflow.capture.rules._rule import Edges

# Layers are run for so many (key, query) pairs at once: larger batches gained nothing.
_AT_ONCE = 4096


@dataclass(frozen=True)
class ValueZeroing:
    """D[i, t] = 1 − cos(h_i, h_i with v_t = 0), h the layer's output, in all heads, the layer's input left as it was.

    The layer is run again for each key, many keys at a time: n times the cost of a forward pass in all. Everything in
    the layer counts (residual, norms, feed-forward part), so no residual is added. Decoders are compared before the model's final norm.

    Needs the layer (FAMILIES). Rows become proportions: any method may be used. A row that no key moves keeps its own token.
    """

    name: ClassVar[str] = "value_zeroing"
    residual: ClassVar[bool] = True  # it counts, and cannot be left out
    signed: ClassVar[bool] = False

    def __call__(self, record: LayerRecord) -> Edges:
        """Without a key, a head's output is what it was less that key's weight times its value; the rest runs as it did."""
        queries, keys = record.weights.shape[1:]
        heads = torch.einsum("hqk,hkd->qhd", record.weights, record.value)
        clean = _directions(record.output)
        turned = torch.empty(queries, keys, dtype=torch.float64, device=clean.device)
        step = max(1, _AT_ONCE // queries)
        for start in range(0, keys, step):
            some = slice(start, min(start + step, keys))
            taken = torch.einsum("hqk,hkd->kqhd", record.counted[:, :, some], record.value[:, some])
            changed = _directions(record.known.again(heads - taken))
            # 1 − cos as half the squared distance, which does not drown in rounding when the two are close
            turned[:, some] = (changed - clean).pow(2).sum(-1).T / 2
            record.advance(some.stop - some.start)
        return Edges(torch.where((record.counted > 0).any(0), turned, 0))


def _directions(vectors: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.normalize(vectors.double(), dim=-1)
