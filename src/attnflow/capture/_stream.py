"""Readers: what is kept of each attention call while the model runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from attnflow.capture._attend import attend, weigh
from attnflow.capture._by_rule import ByRule
from attnflow.capture._call import Call
from attnflow.capture._levels import Seen
from attnflow.capture._shelf import Shelf
from attnflow.errors import CaptureError, InvalidArgument
from attnflow.mixing import Recipe
from attnflow.tokens import Tokens


class Stream:
    """Mixes the heads of each call block by block, so that layers · n² numbers are kept and never heads · n².

    A function given as `heads` wants all queries at once; only then are one layer's heads held together.
    """

    def __init__(self, heads: Any = "mean", dtype: torch.dtype | None = None) -> None:
        self.heads = heads
        self.dtype = dtype
        self.seen: list[Seen] = []
        self.shelf = Shelf()

    def __call__(self, call: Call) -> torch.Tensor:
        """Answer one attention call and keep its mixed weights."""
        batch, heads, queries, _ = call.query.shape
        fuse = _fusion(self.heads, len(self.seen), heads)
        keys = call.key.shape[2] + (call.sinks is not None)
        stored = self.shelf.room((batch, queries, keys), self.dtype or _wide(call))
        # On another device the layer is put together there, and moved once.
        kept = stored if call.query.device.type == "cpu" else torch.empty_like(stored, device=call.query.device)
        if fuse is None:
            collected = torch.zeros(batch, heads, queries, keys, dtype=call.query.dtype, device=call.query.device)

            def take(start: int, stop: int, weights: torch.Tensor) -> None:
                _place(collected[:, :, start:stop], weights, call.sinks is not None)

        else:

            def take(start: int, stop: int, weights: torch.Tensor) -> None:
                _place(kept[:, start:stop], fuse(weights), call.sinks is not None)

        output = attend(call, take)
        if fuse is None:
            for item in range(batch):
                kept[item] = torch.from_numpy(self._by_function(collected[item], len(self.seen)))
        if kept is not stored:
            stored.copy_(kept)
        self.seen.append(Seen(call.path, stored, call.sinks is not None))
        return output

    def mixed(self, layer: int, weights: torch.Tensor) -> torch.Tensor:
        """All heads of a layer (batch, heads, queries, keys) that came at once."""
        fuse = _fusion(self.heads, layer, weights.shape[1])
        wide = weights.float()
        if fuse is None:
            return torch.stack([torch.from_numpy(self._by_function(item, layer)) for item in wide])
        return fuse(wide).to(self.dtype or torch.float32).cpu()

    def _by_function(self, weights: torch.Tensor, layer: int) -> Any:
        array = weights.float().cpu().numpy()
        mixed = Recipe(Tokens.of(None, 1), layer + 1, len(array), heads=self.heads).fused(layer, array)
        return np.ascontiguousarray(mixed, dtype=np.float32)


class Record:
    """Keeps all heads of each call; with `gradients`, as the tensors that the output was computed from."""

    def __init__(self, *, gradients: bool = False, first: ByRule | None = None) -> None:
        self.gradients = gradients
        self.first = first  # measures the residual in a run of its own, before this one
        self.seen: list[Seen] = []

    def __call__(self, call: Call) -> torch.Tensor:
        """Answer one attention call and keep all of its weights."""
        if self.gradients:
            if not torch.is_grad_enabled():
                raise CaptureError("gradients were asked for, but the model turns them off while it runs.")
            if not call.query.requires_grad:  # frozen weights: the chain starts here
                call.query.requires_grad_()
            output, weights = weigh(call)
            self.seen.append(Seen(call.path, weights, call.sinks is not None))
            return output
        batch, heads, queries, _ = call.query.shape
        shape = (batch, heads, queries, call.key.shape[2] + (call.sinks is not None))
        kept = torch.empty(shape, dtype=_wide(call), device=call.query.device)

        def take(start: int, stop: int, weights: torch.Tensor) -> None:
            _place(kept[:, :, start:stop], weights, call.sinks is not None)

        output = attend(call, take)
        self.seen.append(Seen(call.path, kept.cpu(), call.sinks is not None))
        return output

    def take_shares(self) -> None:
        """The residual that was measured in the run before, to what this one kept."""
        for one, measured in zip(self.seen, self.first.seen if self.first else (), strict=self.first is not None):
            one.alpha = measured.alpha


Fusion = Callable[[torch.Tensor], torch.Tensor]


def _fusion(heads: Any, layer: int, count: int) -> Fusion | None:
    """What `mix` does with heads, on the model's device: from (batch, heads, block, keys); None for a function."""
    if callable(heads):
        return None
    shape: tuple[int, ...] = np.shape(heads) if not isinstance(heads, str) else ()
    layers = shape[0] if len(shape) == 2 else layer + 1
    if layer >= layers:
        raise InvalidArgument(f"head weights were given for {layers} layers, and the model has more.")
    shares = Recipe(Tokens.of(None, 1), layers, count, heads=heads).shares
    if shares is None:
        return {"max": lambda weights: weights.amax(1), "min": lambda weights: weights.amin(1)}[heads]
    row = shares[layer]
    if (row == row[0]).all():
        return lambda weights: weights.mean(1)
    if np.count_nonzero(row) == 1:
        chosen = int(row.argmax())
        return lambda weights: weights[:, chosen]
    return lambda weights: torch.einsum("h,bhqk->bqk", torch.from_numpy(row).to(weights), weights)


def _place(kept: torch.Tensor, block: torch.Tensor, sink: bool) -> None:
    """Write a block whose keys may end early (causal); its last column is the sink's, wherever it ends."""
    seen = block.shape[-1] - sink
    kept[..., :seen] = block[..., :seen]
    if seen < kept.shape[-1] - sink:
        kept[..., seen : kept.shape[-1] - sink] = 0
    if sink:
        kept[..., -1] = block[..., -1]


def _wide(call: Call) -> torch.dtype:
    return torch.float64 if call.query.dtype == torch.float64 else torch.float32
