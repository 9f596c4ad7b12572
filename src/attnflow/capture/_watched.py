"""Stopping a capture half-way: a function that is asked before every layer of a model runs, and that may raise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar

import torch

Check = Callable[[], None]

_check: ContextVar[Check | None] = ContextVar("attnflow_check", default=None)


@contextmanager
def watched(check: Check) -> Iterator[None]:
    """While the block lasts, captures of this thread call `check` before each layer, and while they wait for their model.

    What it raises stops the capture and is passed on; the model is put back as it was, and serves the next one.
    """
    before = _check.set(check)
    try:
        yield
    finally:
        _check.reset(before)


def current() -> Check | None:
    """What this thread's captures are to call, if anything."""
    return _check.get()


def ask_before_layers(model: torch.nn.Module, undo: ExitStack) -> None:
    """Have every layer of the model call the check first; `undo` takes that back."""
    check = _check.get()
    if check is None:
        return
    lists = [part for part in model.modules() if isinstance(part, torch.nn.ModuleList)]
    for layer in {layer for part in lists for layer in part} or set(model.children()):
        undo.callback(layer.register_forward_pre_hook(lambda *_: check()).remove)
