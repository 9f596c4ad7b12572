"""Gradients of a target by the attention weights, without touching the model's own gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from attnflow.capture._levels import Seen
from attnflow.capture._models import token_table
from attnflow.errors import CaptureError

_SOFTMAXES = (torch.softmax, torch.nn.functional.softmax, torch.Tensor.softmax)


class SoftmaxWatch(TorchFunctionMode):
    """Remembers the four-dimensional softmax results of a run, for models that hand out only a copy of their weights."""

    def __init__(self) -> None:
        super().__init__()
        self.results: list[torch.Tensor] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if function in _SOFTMAXES and isinstance(result, torch.Tensor) and result.ndim == 4:
            self.results.append(result)
        return result

    def originals(self, seen: Sequence[Seen]) -> None:
        """Replace copies of weights by the tensors that the output was computed from."""
        left = list(self.results)
        for one in seen:
            for i, result in enumerate(left):
                if result.shape == one.weights.shape and torch.equal(result, one.weights):
                    one.weights = left.pop(i)
                    break


@contextmanager
def differentiable(model: Any) -> Iterator[None]:
    """Gradients flow from the first embedding on, also where all weights are frozen, and end there."""
    if torch.is_inference_mode_enabled():
        raise CaptureError(
            "gradients cannot be recorded under torch.inference_mode(). Call this outside of it (torch.no_grad() is fine)."
        )

    def start(module: Any, args: Any, output: Any) -> Any:
        if isinstance(output, torch.Tensor) and not output.requires_grad and not output.is_inference():
            return output.detach().requires_grad_()
        return output

    table = token_table(model)
    if any(parameter.is_inference() for parameter in model.parameters()):
        raise CaptureError(
            "the model was made under torch.inference_mode(), so no gradients can be recorded. Load it outside of it."
        )
    handle = table.register_forward_hook(start) if isinstance(table, torch.nn.Module) else None
    try:
        with torch.enable_grad():
            yield
    finally:
        if handle is not None:
            handle.remove()


def record(seen: Sequence[Seen], target: torch.Tensor) -> None:
    """Fill in ∂target/∂weights. Inputs of a batch do not meet, so the gradient of their sum is each one's own."""
    if not target.requires_grad:
        raise CaptureError(
            "the target does not depend on the model's attention by any gradient: it was computed without one."
        )
    gradients = torch.autograd.grad(target.sum(), [one.weights for one in seen], allow_unused=True)
    for one, gradient in zip(seen, gradients, strict=True):
        # An attention that the target does not depend on (the encoder, seen by a target of its own) has gradient zero.
        one.gradients = torch.zeros_like(one.weights) if gradient is None else gradient.detach().cpu()
        one.weights = one.weights.detach().cpu()
    if all(gradient is None for gradient in gradients):
        raise CaptureError(
            "the target does not depend on any attention weight. Choose an output of the same run as the target."
        )
