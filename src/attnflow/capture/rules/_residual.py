"""Residual rules: how much of a position is carried past its attention, measured in the model."""

from __future__ import annotations

from collections.abc import Callable

import torch

from attnflow.capture.rules._norm import own_parts
from attnflow.capture.rules._parts import Parts
from attnflow.capture.rules._record import LayerRecord


def measured(record: LayerRecord) -> torch.Tensor:
    """α_i = ‖x_i‖ / (‖x_i‖ + ‖attention output_i‖), for each query; 1 where attention writes nothing."""
    return share(record.carried, record.written)


def w_res(record: LayerRecord) -> torch.Tensor:
    """α_i = 1 − r_i, r_i = ‖mixing_i‖ / (‖mixing_i‖ + ‖preserving_i‖) (Kobayashi et al. 2021; W-Res of GlobEnc).

    mixing_i = Σ_{j≠i} Σ_h A[h, i, j] v_j^h W_O^h is what came from others, preserving_i = Σ_h A[h, i, i] v_i^h W_O^h + x_i what is
    the query's own, attention to itself included. So the level is r_i · (row i without its diagonal, divided by its
    sum) + (1 − r_i) · I. (GlobEnc's released code leaves the diagonal in, and takes the ratio past both LayerNorms.)
    """
    parts = Parts.of(record, "none", residual=True)
    assert parts.own is not None
    mixed = torch.einsum("hqk,hkd->qd", parts.weights, parts.vectors) * parts.scale[:, None]
    preserved = parts.own if record.cross else own_parts(parts)
    return share(preserved, mixed + parts.own - preserved)


def share(kept: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """‖kept‖ / (‖kept‖ + ‖other‖) for each row."""
    mine, theirs = kept.double().norm(dim=-1), other.double().norm(dim=-1)
    return torch.where(theirs > 0, mine / (mine + theirs).clamp(min=1e-300), torch.ones_like(mine))


RESIDUALS: dict[str, Callable[[LayerRecord], torch.Tensor]] = {"measured": measured, "w_res": w_res}
