"""A model seen from its embedding: reading or replacing the vectors of the input tokens while everything else runs.

Where a model has an embedding layer (tokens, positions and LayerNorm: BERT and its kin), its output is meant, else the
token table's. Before a LayerNorm the choice matters: its input may be shifted by a constant without any effect, so the gradient by
a token's vector there always sums to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from attnflow.capture._batch import Batch
from attnflow.capture._run import forward
from attnflow.errors import CaptureError

Change = Callable[[torch.Tensor], torch.Tensor]


@contextmanager
def embedding_hook(model: Any, change: Change) -> Iterator[None]:
    """`change` gets the token vectors of the run (batch, n, width) and returns those to go on with.

    Only the first look-up of a run is changed: an encoder-decoder model embeds its second text later.
    """
    done = False

    def first(module: Any, args: Any, output: Any) -> Any:
        nonlocal done
        if done or not isinstance(output, torch.Tensor) or output.ndim != 3:
            return output
        done = True
        if getattr(model.config, "model_type", "") == "xlnet":  # positions first, then the batch
            return change(output.transpose(0, 1)).transpose(0, 1)
        return change(output)

    with ExitStack() as hooks:
        for layer in _layers(model):
            hooks.callback(layer.register_forward_hook(first).remove)
        yield


def _layers(model: Any) -> list[torch.nn.Module]:
    """The embedding layer, or every module that shares the token table (an encoder may have its own view of it)."""
    base = getattr(model, "base_model", model)
    layer = getattr(base, "embeddings", None)
    if isinstance(layer, torch.nn.Module):
        return [layer]
    table = model.get_input_embeddings() if hasattr(model, "get_input_embeddings") else None
    if not isinstance(table, torch.nn.Module):
        raise CaptureError(f"{type(model).__name__} has no token embedding to take gradients by.")
    weight = getattr(table, "weight", None)
    return [module for module in model.modules() if module is table or _shares(module, weight)]


def _shares(module: torch.nn.Module, weight: Any) -> bool:
    return isinstance(module, torch.nn.Embedding) and module.weight is weight


def embedded(model: Any, batch: Batch) -> tuple[torch.Tensor, Any]:
    """The token vectors of a batch, as the leaf that gradients go to, and the output computed from them."""
    kept: list[torch.Tensor] = []

    def change(output: torch.Tensor) -> torch.Tensor:
        kept.append(output.detach().clone().requires_grad_())
        return kept[0]

    with embedding_hook(model, change):
        outputs = forward(model, batch)
    if not kept:
        raise CaptureError(
            f"{type(model).__name__} did not look up any token: there is no embedding to take gradients by."
        )
    return kept[0], outputs
