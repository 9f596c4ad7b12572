"""Attention in any PyTorch module: torch's two attention functions, seen whoever calls them.

`torch.overrides.TorchFunctionMode` hands every function of torch that this thread calls to the mode, while it is held. Nothing is
patched, and modules are not touched. Of `F.multi_head_attention_forward` a copy runs that calls attnflow in place of
`F.scaled_dot_product_attention`, so projections and masks are torch's own.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from attnflow.capture._attend import weigh
from attnflow.capture._call import Call
from attnflow.errors import CaptureError

SOFTMAXES = (torch.softmax, functional.softmax, torch.Tensor.softmax)


class FunctionWatch(TorchFunctionMode):
    """Hands the attention calls of a module's run to a reader, which answers them. `batch` is how many inputs there are."""

    def __init__(self, model: torch.nn.Module, reader: Callable[[Call], torch.Tensor], batch: int = 0) -> None:
        super().__init__()
        self.reader = reader
        self.batch = batch
        self.paths = {module: path for path, module in model.named_modules()}
        self.calls: list[tuple[str, bool]] = []  # the module's path; whether later positions are hidden
        self.own: list[tuple[tuple[int, ...], str]] = []  # softmaxes that may be attention: shape, and where

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function is functional.scaled_dot_product_attention:
            return self._attention(*args, **kwargs)
        if function is functional.multi_head_attention_forward:
            return self._multi_head(*args, **kwargs)
        result = function(*args, **kwargs)
        if function in SOFTMAXES and isinstance(result, torch.Tensor) and result.ndim >= 3:
            self.own.append((tuple(result.shape), self._path() or "the model"))
        return result

    def _attention(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        """As torch documents `scaled_dot_product_attention`; weights have (batch, heads) before (queries, keys)."""
        call = self._call(query, key, value, attn_mask, scale, causal=is_causal)
        kept = len(getattr(self.reader, "seen", ()))
        output = self.reader(call).transpose(1, 2)
        if kept == len(getattr(self.reader, "seen", (None,))):
            self.calls.pop()  # answered, but not kept: a layer that is run once more
        return output.reshape(*query.shape[:-1], value.shape[-1])

    def _call(
        self, query: Any, key: Any, value: Any, mask: torch.Tensor | None, scale: float | None, *, causal: bool
    ) -> Call:
        if causal and mask is not None:
            raise CaptureError("attention was called with a mask and is_causal=True, which torch does not define.")
        path, module = self._path(), self._module()
        self.calls.append((path, causal or _hides_later(mask)))
        if mask is not None and query.ndim == 3:
            mask = self._four(mask, len(query)) if mask.ndim == 3 and len(mask) == len(query) else mask
        elif mask is not None and mask.ndim > 4:
            mask = mask.flatten(0, -4)
        width = query.shape[-1] ** -0.5 if scale is None else float(scale)
        owner = torch.nn.Identity() if module is None else module
        q, k, v = (self._four(one, len(query)) for one in (query, key, value))
        return Call(owner, path, q, k, v, mask, None, width, None, None, causal, {})

    def _four(self, operand: torch.Tensor, first: int) -> torch.Tensor:
        """(batch, heads, positions, width). Of three axes the first is the batch, or batch and heads together."""
        if operand.ndim == 2:
            return operand[None, None]
        if operand.ndim == 3:
            heads = first // self.batch if self.batch and first % self.batch == 0 else 1
            return operand.reshape(-1, heads, *operand.shape[1:])
        return operand if operand.ndim == 4 else operand.flatten(0, -4)

    def _multi_head(self, *args: Any, **kwargs: Any) -> Any:
        """`F.multi_head_attention_forward` without dropout of weights; they are handed out where they were asked for."""
        given = inspect.signature(functional.multi_head_attention_forward).bind(*args, **kwargs)
        asked = given.arguments.get("need_weights", True)
        averaged = given.arguments.get("average_attn_weights", True)
        given.arguments["need_weights"] = False
        unbatched = given.arguments["query"].ndim == 2
        kept: list[torch.Tensor] = []

        def attention(
            query: Any, key: Any, value: Any, mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False
        ) -> Any:
            if asked:
                with torch.no_grad():
                    call = self._call(query, key, value, mask, None, causal=is_causal)
                    self.calls.pop()
                    kept.append(weigh(call)[1].to(value.dtype))
            return self._attention(query, key, value, mask, dropout_p, is_causal)

        output = _multi_head_with(attention)(*given.args, **given.kwargs)[0]
        if not asked:
            return output, None
        weights = kept[0].mean(dim=1) if averaged else kept[0]
        return output, weights[0] if unbatched else weights

    def _path(self) -> str:
        """Where in the model the call comes from: the innermost module whose code is running."""
        module = self._module()
        return "" if module is None else self.paths[module]

    def _module(self) -> torch.nn.Module | None:
        frame = sys._getframe(1)
        while frame is not None:
            owner = frame.f_locals.get("self")
            if isinstance(owner, torch.nn.Module) and owner in self.paths:
                return owner
            frame = frame.f_back  # type: ignore[assignment]
        return None


def _multi_head_with(attention: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """torch's function, whose code is Python, in a world where `scaled_dot_product_attention` is another function."""
    original: Any = functional.multi_head_attention_forward
    world = {
        **original.__globals__,
        "scaled_dot_product_attention": attention,
        "has_torch_function": lambda _: False,
    }
    copy = FunctionType(original.__code__, world, original.__name__, original.__defaults__, original.__closure__)
    copy.__kwdefaults__ = original.__kwdefaults__
    return copy


def _hides_later(mask: torch.Tensor | None) -> bool:
    """Whether a mask lets no position see a later one."""
    if mask is None or mask.shape[-1] != mask.shape[-2] or mask.shape[-1] < 2:
        return False
    later = torch.ones(mask.shape[-2:], dtype=torch.bool, device=mask.device).triu(1)
    hidden = ~mask if mask.dtype == torch.bool else mask <= torch.finfo(mask.dtype).min / 2
    return bool((hidden | ~later).all())
