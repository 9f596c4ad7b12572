"""Models of transformers with attention code of their own that hand their weights from module to module, as BLIP does.

Their output holds the weights of one part only, so each attention module is watched as it returns them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch


@contextmanager
def returned_weights(model: torch.nn.Module, keep: Callable[[str, torch.Tensor], None]) -> Iterator[None]:
    """While the block lasts, `keep` gets a module's path and the weights (batch, heads, queries, keys) that it returned.

    A module around an attention module returns the same weights once more, which is not counted.
    """
    last: list[torch.Tensor] = []

    def watch(path: str) -> Any:
        def hook(module: Any, args: Any, output: Any) -> None:
            weights = output[1] if isinstance(output, tuple) and len(output) > 1 else None
            if not isinstance(weights, torch.Tensor) or weights.ndim != 4 or any(weights is one for one in last):
                return
            last[:] = [weights]
            keep(path, weights)

        return hook

    with ExitStack() as undo:
        for path, module in model.named_modules():
            if "ttention" in type(module).__name__:
                undo.callback(module.register_forward_hook(watch(path)).remove)
        yield
