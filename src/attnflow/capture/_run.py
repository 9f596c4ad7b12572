"""One run of a model over one batch: its levels, and what its output was."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch

from attnflow.capture._batch import Batch
from attnflow.capture._by_rule import ByRule
from attnflow.capture._eager import seen_in
from attnflow.capture._gradients import SoftmaxWatch, differentiable, record
from attnflow.capture._hooked import returned_weights
from attnflow.capture._image_text import CROSSING, family_of
from attnflow.capture._levels import Level, Seen, levels_of
from attnflow.capture._models import takes
from attnflow.capture._query import positions_of
from attnflow.capture._session import configs, eagerly, interface_configs, reading
from attnflow.capture._stream import Record, Stream
from attnflow.capture._targets import values
from attnflow.errors import CaptureError

Reader = Stream | Record | ByRule


def levels(
    model: Any, batch: Batch, reader: Reader, *, targets: Sequence[Any] = (None,), tokenizer: Any = None
) -> list[Level]:
    """Run the model once (borrowed already) and name what `reader` saw. With gradients, of the targets."""
    if isinstance(reader, Record) and reader.first is not None:
        levels(model, batch, reader.first)
    gradients = isinstance(reader, Record) and reader.gradients
    if isinstance(reader, Stream):
        reader.shelf.capacity = layer_count(model)
    with differentiable(model) if gradients else torch.no_grad():
        outputs, seen = _forward(model, batch, reader)
        if gradients:
            record(seen, values(outputs, targets, positions_of(model, batch, tokenizer), model, tokenizer))
    if isinstance(reader, Stream):
        _mix_late(reader, seen)
    if isinstance(reader, Record):
        reader.take_shares()
    _check_whole(model, batch, seen)
    _check_numbers(model, seen)
    return levels_of(model, seen)


def layer_count(model: Any) -> int:
    """How many layers the configs speak of; 0 if they do not."""
    counts = [getattr(config, "num_hidden_layers", 0) for config in configs(model)]
    return max((count for count in counts if isinstance(count, int)), default=0)


def forward(model: Any, batch: Batch) -> Any:
    """The model's output, as it computes it itself."""
    return model(**_arguments(model, batch))


def _forward(model: Any, batch: Batch, reader: Reader) -> tuple[Any, list[Seen]]:
    if id(model.config) in {id(config) for config in interface_configs(model)}:
        by_rule = reader.reading(model, batch) if isinstance(reader, ByRule) else nullcontext()
        with reading(model, reader), by_rule:
            outputs = forward(model, batch)
        if reader.seen:
            return outputs, reader.seen
    if isinstance(reader, ByRule):
        raise CaptureError(
            f"{type(model).__name__} has attention code of its own, which hands out its weights and not the call with its values. "
            f"{reader.what} cannot be used here; the edges attention, gradient and chefer with a residual that is given can."
        )
    if family_of(model) == CROSSING and batch.target is not None:
        return _by_hooks(model, batch, reader)
    watch = SoftmaxWatch() if isinstance(reader, Record) and reader.gradients else None
    with eagerly(model), watch or nullcontext():
        outputs = _with_attentions(model, batch)
        seen = seen_in(outputs, model)
    if not seen:
        raise CaptureError(f"{type(model).__name__} cannot be captured: {_why_none(model)}")
    if watch:
        watch.originals(seen)
    return outputs, seen


def _by_hooks(model: Any, batch: Batch, reader: Stream | Record) -> tuple[Any, list[Seen]]:
    """The weights that each attention module returns."""
    seen: list[Seen] = []

    def keep(path: str, weights: torch.Tensor) -> None:
        seen.append(Seen(path, reader.mixed(len(seen), weights) if isinstance(reader, Stream) else weights))

    with returned_weights(model, keep):
        return forward(model, batch), seen


def _with_attentions(model: Any, batch: Batch) -> Any:
    try:
        return model(**{**_arguments(model, batch), "output_attentions": True})
    except TypeError as error:
        if "output_attentions" not in str(error):
            raise
        raise CaptureError(f"{type(model).__name__} cannot be captured: {_why_none(model)}") from None


def _arguments(model: Any, batch: Batch) -> dict[str, Any]:
    arguments = dict(batch.keywords)
    if takes(model, "use_cache"):
        arguments.setdefault("use_cache", False)
    if getattr(model.config, "output_attentions", False):
        arguments["output_attentions"] = False
    if not getattr(model.config, "return_dict", True):
        arguments["return_dict"] = True
    return arguments


def _why_none(model: torch.nn.Module) -> str:
    """A sentence about a model in which no attention was found."""
    lists = [module for module in model.modules() if isinstance(module, torch.nn.ModuleList) and len(module)]
    if not lists:
        return "no attention was computed while it ran."
    longest = max(lists, key=len)
    inner = sorted({type(part).__name__ for layer in longest for part in layer.children()})
    return (
        f"its {len(longest)} layers ({', '.join(inner)}) compute no attention that can be read. State-space, recurrent and "
        "convolution layers have none; a model with attention code of its own would have to return it for output_attentions=True."
    )


def _mix_late(reader: Stream, seen: list[Seen]) -> None:
    """Mix the heads of weights that came from the output, layer by layer, letting go of each."""
    for layer, one in enumerate(seen):
        if one.weights.ndim == 4:
            one.weights = reader.mixed(layer, one.weights)


def _check_whole(model: Any, batch: Batch, seen: Sequence[Seen]) -> None:
    """One matrix over all positions for each input. Windows come as more inputs than went in."""
    sizes = [one.weights.shape[0] for one in seen]
    if any(size != batch.size for size in sizes):
        most = max(sizes)
        raise CaptureError(
            f"{type(model).__name__} cannot be captured: it computes attention in parts ({most // batch.size} windows or frames of an input, each "
            f"by itself), and {_merging(seen)}so there is no single n × n graph from its last layer down to its input. Use a model with full "
            "attention in every layer, for example ViT, DeiT, DINOv2 or BEiT."
        )


def _merging(seen: Sequence[Seen]) -> str:
    """Windows that become fewer from layer to layer, as Swin's do."""
    positions = [one.weights.shape[0] * one.queries for one in seen]
    return "it merges positions between its stages, " if len(set(positions)) > 1 else ""


def _check_numbers(model: Any, seen: Sequence[Seen]) -> None:
    for number, one in enumerate(seen):
        weights = one.weights
        if (
            isinstance(weights, torch.Tensor) and not weights.sum(dtype=torch.float32).isfinite()
        ):  # no copy, unlike isfinite() on all
            where = one.path or f"layer {number}"
            raise CaptureError(
                f"the attention of {type(model).__name__} at {where} holds NaN or infinity. Its weights do, or half precision "
                "overflowed: check the weights, or load it in float32 or bfloat16."
            )
