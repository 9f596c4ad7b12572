"""One attention call, as a layer made it: the operands and everything that changes the weights."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from attnflow.errors import CaptureError

# Options that do not change the weights: windows are in the mask already, dropout is off, the rest is bookkeeping.
_SILENT = {
    "dropout", "sliding_window", "deterministic", "output_attentions", "output_hidden_states", "use_cache", "position_ids",
    "cache_position", "cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "output_router_logits", "return_dict",
    "token_type_ids", "logits_to_keep", "num_items_in_batch", "past_key_values", "position_embeddings", "labels",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Call:
    """Shapes: query (batch, heads, queries, width); key and value (batch, key heads, keys, width).

    weights = softmax(cap(scale · query keyᵀ) + bias + mask), over the keys and, where a model has them, one sink per
    head that takes part in the softmax and writes nothing.
    """

    module: torch.nn.Module
    path: str
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    mask: torch.Tensor | None  # boolean (True: may attend) or to be added
    bias: torch.Tensor | None
    scale: float
    softcap: float | None
    sinks: torch.Tensor | None
    causal: bool
    options: dict[str, Any]  # as they came, for the model's own function

    @classmethod
    def of(
        cls,
        module: torch.nn.Module,
        path: str,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        options: dict[str, Any],
    ) -> Call:
        """Read transformers' keyword arguments; causality is decided as its sdpa function decides it."""
        scale = options.get("scaling")
        causal = options.get("is_causal")
        causal = getattr(module, "is_causal", True) if causal is None else causal
        return cls(
            module,
            path,
            query,
            key,
            value,
            mask,
            options.get("position_bias"),
            query.shape[-1] ** -0.5 if scale is None else float(scale),
            options.get("softcap"),
            options.get("s_aux"),
            bool(causal and mask is None and query.shape[2] > 1),
            options,
        )

    @property
    def own_function(self) -> Callable[..., tuple[torch.Tensor, torch.Tensor]] | None:
        """The model's own attention function, if an option came that the formula above does not know; else None."""
        known = {"scaling", "is_causal", "position_bias", "softcap", "s_aux"} | _SILENT
        strange = [
            name for name, value in self.options.items() if name not in known and isinstance(value, torch.Tensor)
        ]
        if not strange:
            return None
        found = getattr(sys.modules[type(self.module).__module__], "eager_attention_forward", None)
        if found is None:
            raise CaptureError(
                f"{self.path or type(self.module).__name__} changes its attention by {', '.join(strange)}, which attnflow does not know, and the "
                "model's code has no eager_attention_forward to ask. This model cannot be captured."
            )
        own: Callable[..., tuple[torch.Tensor, torch.Tensor]] = found
        return own

    def additive_mask(self) -> torch.Tensor | None:
        """The mask as eager functions want it: numbers to add to the scores."""
        lowest = torch.finfo(self.query.dtype).min
        if self.causal:
            size = self.query.shape[2], self.key.shape[2]
            return torch.full(size, lowest, dtype=self.query.dtype, device=self.query.device).triu(1)[None, None]
        if self.mask is None or self.mask.dtype != torch.bool:
            return self.mask
        return torch.zeros_like(self.mask, dtype=self.query.dtype).masked_fill_(~self.mask, lowest)
