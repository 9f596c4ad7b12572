"""Borrowing a model: one capture at a time, everything put back afterwards.

transformers looks up the attention function of every layer by name, in the config. A session registers one function
under a name of its own and, while it lasts, writes that name into the configs of this one model. Nothing global
changes for other models; a call that does not belong to a session is answered as sdpa would answer it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch

from attnflow.capture._attend import attend
from attnflow.capture._call import Call
from attnflow.capture._image_text import PLACEHOLDERS, family_of, sees
from attnflow.capture._watched import ask_before_layers, current
from attnflow.errors import CaptureError

NAME = "attnflow"
TICK = 0.1  # seconds between two questions whether to go on waiting

Reader = Callable[[Call], torch.Tensor]


@dataclass(frozen=True)
class _Session:
    """The modules that it reads, by identity, and what reads them."""

    paths: dict[torch.nn.Module, str]
    reader: Reader


# Calls of other threads, on the same model or another, never see this session.
_current: ContextVar[_Session | None] = ContextVar("attnflow_session", default=None)

_free = threading.Condition()
_holders: dict[int, int] = {}  # identity of a module or config in use → the thread that uses it


@contextmanager
def borrowed(model: torch.nn.Module) -> Iterator[None]:
    """The model for this thread alone, in evaluation mode, as long as the block lasts.

    A second capture of the same model, of a part of it, or of a model that shares its config, waits.
    """
    things = {id(module) for module in model.modules()} | {id(config) for config in configs(model)}
    with ExitStack() as undo:
        _hold(things, type(model).__name__, undo)
        ask_before_layers(model, undo)
        # Not model.eval(): submodules may differ, and each gets its own mode back.
        for module in model.modules():
            undo.callback(_unhook, module, set(module._forward_hooks), hooked=_HOOKED in vars(module))
            if module.training:
                undo.callback(setattr, module, "training", True)
                module.training = False
        yield


@contextmanager
def reading(model: torch.nn.Module, reader: Reader) -> Iterator[None]:
    """While the block lasts, `reader` answers the attention calls of this model that are made by this thread."""
    _register()
    eye = family_of(model) == PLACEHOLDERS  # whose patches are the decoder's tokens, but not the graph's
    paths = {module: path for path, module in model.named_modules() if not (eye and sees(path))}
    session = _Session(paths, reader)
    with ExitStack() as undo:
        for config in interface_configs(model):
            undo.callback(setattr, config, "_attn_implementation_internal", config._attn_implementation_internal)
            config._attn_implementation_internal = NAME
        undo.callback(_current.reset, _current.set(session))
        yield


@contextmanager
def eagerly(model: torch.nn.Module) -> Iterator[None]:
    """While the block lasts, models that choose their attention by name form the weights themselves."""
    with ExitStack() as undo:
        for config in configs(model):
            undo.callback(setattr, config, "_attn_implementation_internal", config._attn_implementation_internal)
            config._attn_implementation_internal = "eager"
        yield


def _unhook(module: torch.nn.Module, hooks: set[int], *, hooked: bool) -> None:
    """Take away the hooks that transformers leaves on a model once attentions or states of its layers were asked for."""
    for number in set(module._forward_hooks) - hooks:
        del module._forward_hooks[number]
    if not hooked:
        vars(module).pop(_HOOKED, None)


_HOOKED = "_output_capturing_hooks_installed"  # how transformers remembers that they are there


def configs(model: torch.nn.Module) -> list[Any]:
    """Every config that a module of the model holds, each once. Encoder and decoder often have copies of their own."""
    found = {id(config): config for module in model.modules() if _is_config(config := getattr(module, "config", None))}
    return list(found.values())


def interface_configs(model: torch.nn.Module) -> list[Any]:
    """The configs of those parts whose code asks transformers' attention interface."""
    from transformers import PreTrainedModel

    parts = [module for module in model.modules() if isinstance(module, PreTrainedModel)]
    deaf = {id(part.config) for part in parts if not part._can_set_attn_implementation()}
    return [config for config in configs(model) if id(config) not in deaf]


def _is_config(value: Any) -> bool:
    return hasattr(value, "_attn_implementation_internal")


def _hold(things: set[int], name: str, undo: ExitStack) -> None:
    me = threading.get_ident()
    with _free:
        while busy := things & _holders.keys():
            if me in {_holders[thing] for thing in busy}:
                raise CaptureError(
                    f"this {name} is being captured already, by the same thread. Finish the outer capture first."
                )
            _wait()
        undo.callback(_release, things)
        _holders.update(dict.fromkeys(things, me))


def _wait() -> None:
    """Until another capture ends; whoever is watched may leave earlier."""
    check = current()
    if check is not None:
        check()
    _free.wait(None if check is None else TICK)


def _release(things: set[int]) -> None:
    with _free:
        for thing in things:
            _holders.pop(thing, None)
        _free.notify_all()


def _register() -> None:
    """Make the name known to transformers. Nothing uses it until a config holds it."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, _attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)


def _attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """What a layer calls instead of sdpa."""
    session = _current.get()
    path = session.paths.get(module) if session else None
    call = Call.of(module, path or "", query, key, value, attention_mask, options)
    if session is None or path is None:
        return attend(call), None
    return session.reader(call), None
