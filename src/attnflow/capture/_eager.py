"""Models outside transformers' attention interface: DeBERTa-v2, BLOOM, Falcon, XLNet and their like.

They form the weights themselves when asked with `output_attentions`, all heads of all layers at once; there is no
smaller way in without a copy of their code.
"""

from __future__ import annotations

from typing import Any

import torch

from attnflow.capture._levels import Seen
from attnflow.errors import CaptureError


def seen_in(outputs: Any, model: torch.nn.Module) -> list[Seen]:
    """The attentions inside a model output, in the order of the layers; empty if there are none."""
    name = type(model).__name__
    if any(hasattr(outputs, field) for field in ("global_attentions", "encoder_global_attentions")):
        raise CaptureError(
            f"{name} cannot be captured: its attention is a window around each position plus a few global tokens, which is "
            "not an n × n matrix. Use a model with full attention."
        )
    encoder = _seen(name, getattr(outputs, "encoder_attentions", None), "encoder")
    cross = _seen(name, getattr(outputs, "cross_attentions", None), "decoder", cross=True)
    decoder = _seen(name, getattr(outputs, "decoder_attentions", None), "decoder")
    if not decoder:
        return _seen(name, getattr(outputs, "attentions", None), "")
    if cross and len(cross) != len(decoder):
        raise CaptureError(
            f"{name} cannot be captured: {len(decoder)} decoder layers, but cross-attention in {len(cross)}."
        )
    paired = [seen for pair in zip(decoder, cross, strict=True) for seen in pair] if cross else decoder
    return encoder + paired


def _seen(name: str, attentions: Any, side: str, *, cross: bool = False) -> list[Seen]:
    found = []
    for weights in attentions or ():
        if isinstance(weights, list | tuple):  # XLNet with two streams: the first is the content's
            weights = weights[0]
        if weights is None:
            continue
        if weights.ndim != 4:
            raise CaptureError(
                f"{name} cannot be captured: what it returns as attention has shape {tuple(weights.shape)}, and not (batch, heads, n, n)."
            )
        if weights.amin() < 0:
            raise CaptureError(
                f"{name} cannot be captured: what it returns as attention has negative numbers, so it comes from before the softmax."
            )
        found.append(Seen("", weights, side=side, cross=cross))
    return found
