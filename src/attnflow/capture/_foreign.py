"""Modules from outside transformers: their input, one run of them, and what their positions are."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from attnflow.capture._batch import Batch
from attnflow.capture._by_rule import ByRule
from attnflow.capture._functions import FunctionWatch
from attnflow.capture._gradients import differentiable, record
from attnflow.capture._images import Camera, Shot, is_image
from attnflow.capture._levels import Seen, beside
from attnflow.capture._models import device_of
from attnflow.capture._patches import patches_of
from attnflow.capture._positions import Block
from attnflow.capture._run import Reader
from attnflow.capture._stream import Record
from attnflow.capture._targets import per_input, values
from attnflow.errors import CaptureError, InvalidArgument
from attnflow.tokens import Tokens

Cross = str | Sequence[str] | None  # parts of the names of modules that attend from one sequence to another


@dataclass(frozen=True, eq=False)
class Arguments:
    """What a module is called with, and the image that it came from."""

    args: tuple[Any, ...]
    keywords: dict[str, Any]
    shot: Shot | None = None

    @property
    def given(self) -> list[Any]:
        """All of them, in order."""
        return [*self.args, *self.keywords.values()]


def is_foreign(model: torch.nn.Module) -> bool:
    """Whether nothing is known about a model but that it computes: it has no config of transformers."""
    return not hasattr(getattr(model, "config", None), "_attn_implementation_internal")


def arguments_of(model: torch.nn.Module, inputs: Any, processor: Any) -> list[Arguments]:
    """Each input as arguments: a tensor, a tuple of arguments, a dict of keywords, an image; several in a list."""
    several = inputs if isinstance(inputs, list) else [inputs]
    if not several:
        raise CaptureError("the list of inputs is empty: there is nothing to capture.")
    return [_arguments(model, one, processor) for one in several]


def _arguments(model: torch.nn.Module, one: Any, processor: Any) -> Arguments:
    device = device_of(model)
    if isinstance(one, str) and processor is not None and os.path.exists(one):
        one = os.fspath(one)
    if is_image(one) or (isinstance(one, str) and processor is not None):
        if processor is None:
            raise CaptureError(
                f"{type(model).__name__} takes tensors. Pass processor=…: the function that makes pixel values of an image, "
                "such as the transform that the model came with."
            )
        shot = Camera(processor)(one)
        return Arguments((shot.pixels[None].to(device),), {}, shot)
    if isinstance(one, Mapping):
        return Arguments((), {name: _moved(value, device) for name, value in one.items()})
    if isinstance(one, tuple):
        return Arguments(tuple(_moved(value, device) for value in one), {})
    if isinstance(one, torch.Tensor | np.ndarray):
        return Arguments((_moved(torch.as_tensor(one), device),), {})
    raise InvalidArgument(
        f"{type(model).__name__} is called with an example input: a tensor, a tuple of arguments, a dict of keyword arguments, or "
        f"an image with processor=…; got a {type(one).__name__}."
    )


def _moved(value: Any, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value


def run(model: torch.nn.Module, arguments: Arguments, reader: Reader, target: Any, cross: Cross) -> list[Seen]:
    """Run a module once (borrowed already): its attention calls, in order, with their gradients if the reader keeps them."""
    if isinstance(reader, Record) and reader.first is not None:
        run(model, arguments, reader.first, target, cross)
    gradients = isinstance(reader, Record) and reader.gradients
    first = next((one for one in arguments.given if isinstance(one, torch.Tensor) and one.ndim > 1), None)
    watch = FunctionWatch(model, reader, 0 if first is None else len(first))
    by_rule = reader.reading(model, None, _names(cross)) if isinstance(reader, ByRule) else nullcontext()
    with differentiable(model) if gradients else torch.no_grad(), watch, by_rule:
        outputs = model(*arguments.args, **arguments.keywords)
    if isinstance(reader, Record):
        reader.take_shares()
    seen = reader.seen
    _check(model, watch, seen, cross)
    for one, (_, causal) in zip(seen, watch.calls, strict=True):
        one.causal = causal
    if gradients:
        count = int(seen[0].weights.shape[0])
        place = seen[-1].queries - 1 if reads_last(seen) else None
        record(seen, values(outputs, per_input(target, count), [place] * count, model, None))
    return seen


def reads_last(seen: Sequence[Seen]) -> bool:
    """Whether the output is read from the last position: nothing that attends to itself sees later ones."""
    own = [one for one in seen if not one.cross and (not one.side or one.side == "decoder")]
    return all(one.causal for one in own)


def batch_of(arguments: Arguments, seen: Sequence[Seen], tokens: Any, model: torch.nn.Module) -> Batch:
    """The positions that the module's attention was over."""
    count = int(seen[0].weights.shape[0])
    sides = {one.side for one in seen}
    if "decoder" not in sides:
        return Batch({}, count, _block(arguments, seen, tokens, model, count), None)
    source, target = (None, None) if tokens is None else _pair(tokens)
    own = next(one for one in seen if one.side == "decoder")
    lengths = next(one.keys for one in seen if one.cross), own.queries
    return Batch({}, count, _named(source, count, lengths[0]), _named(target, count, lengths[1]))


def _block(arguments: Arguments, seen: Sequence[Seen], tokens: Any, model: torch.nn.Module, count: int) -> Block:
    positions = seen[0].queries
    if tokens is not None:
        block = _named(tokens, count, positions)
    elif (pixels := _pixels(arguments)) is not None and count == len(pixels):
        pictures = None if arguments.shot is None else [[arguments.shot.picture]]
        block = patches_of(model, pixels, pictures)
        if block.read_at is not None:
            return block
    else:
        block = _named(_ids(arguments, positions), count, positions)
    where = (
        (positions - 1, "the last position, since none sees a later one")
        if reads_last(seen)
        else (0, "the first position")
    )
    return replace(block, read_at=where)


def _pixels(arguments: Arguments) -> torch.Tensor | None:
    """The input, if it is a batch of images."""
    found = arguments.given[0] if arguments.given else None
    return found if isinstance(found, torch.Tensor) and found.is_floating_point() and found.ndim == 4 else None


def _ids(arguments: Arguments, positions: int) -> Any:
    """Token ids, if the input is a row of them for each item: their numbers are the labels."""
    found = arguments.given[0] if arguments.given else None
    if (
        not isinstance(found, torch.Tensor)
        or found.is_floating_point()
        or found.ndim != 2
        or found.shape[1] != positions
    ):
        return None
    return [[str(int(one)) for one in row] for row in found]


def _named(tokens: Any, count: int, positions: int) -> Block:
    """Labels as the caller gave them: for one input, or a list with those of each. Padding is left out of the graph."""
    if tokens is None:
        return Block(None, [Tokens.of(None, positions)] * count)
    each = tokens if isinstance(tokens, list) and tokens and not isinstance(tokens[0], str) else [tokens] * count
    if len(each) != count:
        raise InvalidArgument(f"got tokens of {len(each)} inputs for {count} of them.")
    checked = [Tokens.of(one, positions) for one in each]
    return Block([~one.padding for one in checked], [one.select(~one.padding) for one in checked])


def _pair(tokens: Any) -> tuple[Any, Any]:
    if not isinstance(tokens, tuple) or len(tokens) != 2:
        raise InvalidArgument(
            "with an encoder and a decoder, tokens are a pair: those that are read and those that are written."
        )
    return tokens


def _names(cross: Cross) -> list[str]:
    return [cross] if isinstance(cross, str) else list(cross or ())


def _check(model: torch.nn.Module, watch: FunctionWatch, seen: Sequence[Seen], cross: Cross) -> None:
    name = type(model).__name__
    square = {one.keys for one in seen if one.queries == one.keys}
    own = [(shape, where) for shape, where in watch.own if shape[-1] > 1 and shape[-1] == shape[-2]]
    if own and (not seen or own[0][0][-1] in square):
        shape, where = own[0]
        raise CaptureError(
            f"{name} cannot be captured: {where} makes attention of its own, by a softmax of shape {shape}, which does not say what it is "
            "multiplied with. Let it call torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=…) instead of "
            "softmax(q @ k.transpose(-2, -1) · scale) @ v; many models have a switch for it, as timm's fused_attn=True, or sdpa in place of eager."
        )
    if not seen:
        raise CaptureError(
            f"{name} cannot be captured: while it ran, nothing called torch.nn.functional.scaled_dot_product_attention or "
            "multi_head_attention_forward. Kernels of other packages (flash-attn, xformers) are not seen: switch to torch's own."
        )
    names = _names(cross)
    for one in seen:
        one.cross = any(part in one.path for part in names)
    if names and not any(one.cross for one in seen):
        paths = ", ".join(dict.fromkeys(one.path for one in seen))
        raise InvalidArgument(
            f"no module whose attention was seen has {' or '.join(map(repr, names))} in its name: {paths}."
        )
    for one in seen:
        if one.cross or names:
            one.side = (
                "decoder" if one.cross or beside(one.path, [other.path for other in seen if other.cross]) else "encoder"
            )
        elif one.queries != one.keys:
            raise CaptureError(
                f"{one.path or name} attends from {one.queries} positions to {one.keys}. If these are two sequences, name the modules that "
                f"attend from one to the other: cross={one.path.rpartition('.')[2]!r}."
            )
    sizes = {int(one.weights.shape[0]) for one in seen}
    if len(sizes) > 1:
        raise CaptureError(
            f"{name} cannot be captured: its attention is over {sorted(sizes)} inputs at once, so it works in windows or parts, and "
            "there is no single n × n graph."
        )
