"""Grad-CAM for transformers: one more reference, from the activations of a layer instead of its attention."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from attnflow.capture._batch import Batch, padded
from attnflow.capture._gradients import differentiable
from attnflow.capture._images import image_batches
from attnflow.capture._jobs import Setting, opened, samples_in
from attnflow.capture._models import check_weights
from attnflow.capture._query import positions_of
from attnflow.capture._reference import Reference
from attnflow.capture._run import forward
from attnflow.capture._session import borrowed
from attnflow.capture._targets import per_input, values
from attnflow.errors import CaptureError
from attnflow.tokens import checked_index


def grad_cam(
    model: Any,
    inputs: Any,
    tokenizer: Any = None,
    *,
    target: Any = None,
    layer: int = -1,
    words: bool = False,
    truncate: bool = False,
) -> Any:
    """Grad-CAM (Selvaraju et al. 2017) over the vectors h that enter a block, tokens or patches in the place of pixels: a Reference.

        α_d = mean over tokens of ∂y/∂h_d,   score_i = max(0, Σ_d α_d h_id)

    `layer` is the block, the last one by default: what leaves it is read at one token only. `target` as in `blank_out`.
    """
    setting = Setting(tokenizer, target=target, words=words, truncate=truncate)
    loaded, tokenizer, kind, source = opened(model, inputs, setting)
    check_weights(loaded)
    if kind.endswith("image"):
        singles = list(image_batches(loaded, source, 1))
    else:
        singles = [padded(loaded, [sample], tokenizer) for sample in samples_in(loaded, source, kind, tokenizer)]
    results = []
    with borrowed(loaded):
        for batch, one in zip(singles, per_input(target, len(singles)), strict=True):
            states, value = _entering(loaded, batch, one, tokenizer, layer)
            weights = states.grad.mean(dim=1, keepdim=True)
            scores = (weights * states.detach()).sum(-1)[0].clamp(min=0).double().cpu().numpy()
            tokens = batch.source.labels(0, len(scores))
            results.append(Reference(scores, tokens, "grad_cam", value, {"layer": layer}))
    return results if kind.startswith("many ") else results[0]


def _entering(model: Any, batch: Batch, target: Any, tokenizer: Any, layer: int) -> tuple[Any, float]:
    """The vectors that enter the block (1, n, width), with their gradient, and the target's value."""
    kept: list[torch.Tensor] = []
    with differentiable(model), _leaf_before(blocks_of(model), layer, kept):
        outputs = forward(model, batch)
        value = values(outputs, [target], positions_of(model, batch, tokenizer), model, tokenizer).sum()
        if not kept:
            raise CaptureError(f"the blocks of {type(model).__name__} take no token vectors that Grad-CAM could weigh.")
        [kept[0].grad] = torch.autograd.grad(value, [kept[0]])
    return kept[0], float(value.detach())


@contextmanager
def _leaf_before(blocks: torch.nn.ModuleList, layer: int, kept: list[torch.Tensor]) -> Iterator[None]:
    """The block's input becomes the leaf that gradients go to."""

    def change(module: Any, args: Any, keywords: Any) -> Any:
        states = args[0] if args else keywords.get("hidden_states")
        if kept or not isinstance(states, torch.Tensor) or states.ndim != 3:
            return None
        kept.append(states.detach().clone().requires_grad_())
        return ((kept[0], *args[1:]), keywords) if args else (args, {**keywords, "hidden_states": kept[0]})

    block = blocks[checked_index(layer, len(blocks), "layer")]
    handle = block.register_forward_pre_hook(change, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


def blocks_of(model: Any) -> torch.nn.ModuleList:
    """The model's blocks: its longest list of modules, which in an encoder-decoder model is the encoder's if they are alike."""
    lists = [module for module in model.modules() if isinstance(module, torch.nn.ModuleList) and len(module)]
    if not lists:
        raise CaptureError(f"{type(model).__name__} has no list of blocks.")
    return max(lists, key=len)
