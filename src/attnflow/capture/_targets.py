"""What is asked of the model's output: a class, a token, a difference of two, or anything that a function computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from attnflow.errors import CaptureError, InvalidArgument

# A target: None (the predicted one), an index, a label or token, a pair of those (their difference), or a function of
# the model's output that returns one number for each input.
Target = Any


def per_input(target: Target, count: int) -> list[Target]:
    """A list gives each input its own target; anything else serves all of them."""
    if not isinstance(target, list):
        return [target] * count
    if len(target) != count:
        raise InvalidArgument(
            f"got a list of {len(target)} targets for {count} inputs. Give one for each, or a single one."
        )
    return target


def values(
    outputs: Any,
    targets: Sequence[Target],
    positions: Sequence[int | None],
    model: Any,
    tokenizer: Any,
    *,
    probability: bool = False,
) -> torch.Tensor:
    """One number for each input of the batch: the target's logit, or its probability.

    `positions` say where each input's output is read; None where there is one output for the whole input.
    """
    scores = getattr(outputs, "logits_per_image", None)
    if isinstance(scores, torch.Tensor) and all(target is None for target in targets):
        return scores.diagonal()  # each image with its own text
    functions = [target for target in targets if callable(target)]
    if functions:
        return _by_function(functions[0], outputs, len(targets))
    rows = torch.stack([_readout(outputs, item, position, model) for item, position in enumerate(positions)])
    rows = torch.softmax(rows.float(), -1) if probability else rows
    return torch.stack([_value(row, target, model, tokenizer) for row, target in zip(rows, targets, strict=True)])


def fixed(target: Target, row: torch.Tensor, model: Any, tokenizer: Any) -> Target:
    """The target by number, so that it stays the same when the input is changed: the predicted class, for None."""
    if callable(target):
        return target
    if isinstance(target, tuple):
        return tuple(_index(one, row, model, tokenizer) for one in _pair(target))
    return _index(target, row, model, tokenizer)


def readout_row(outputs: Any, item: int, position: int | None, model: Any) -> torch.Tensor:
    """The logits that an input's output is read from."""
    return _readout(outputs, item, position, model)


def has_logits(outputs: Any) -> bool:
    """Whether the model has a head that scores something."""
    return _logits(outputs) is not None


def _by_function(function: Callable[[Any], Any], outputs: Any, count: int) -> torch.Tensor:
    result = function(outputs)
    if not isinstance(result, torch.Tensor) or result.numel() not in (1, count) or not result.is_floating_point():
        raise InvalidArgument(
            f"a target function must return a tensor with one number for each of the {count} inputs, got {result!r:.80}."
        )
    return result.reshape(-1).expand(count) if result.numel() == 1 else result.reshape(-1)


def _value(row: torch.Tensor, target: Target, model: Any, tokenizer: Any) -> torch.Tensor:
    if isinstance(target, tuple):
        first, second = (row[_index(one, row, model, tokenizer)] for one in _pair(target))
        return first - second
    return row[_index(target, row, model, tokenizer)]


def _pair(target: tuple[Any, ...]) -> tuple[Any, Any]:
    if len(target) != 2:
        raise InvalidArgument(f"a tuple as target is a pair whose difference is taken, got {len(target)} members.")
    return target[0], target[1]


def _index(target: Target, row: torch.Tensor, model: Any, tokenizer: Any) -> int:
    count = len(row)
    if target is None:
        return int(row.detach().argmax())
    if isinstance(target, str):
        return _named(target, count, model, tokenizer)
    if isinstance(target, bool) or not hasattr(target, "__index__"):
        raise InvalidArgument(
            f"a target is a class or token (number or name), a pair, a function or None; got {target!r}."
        )
    number = target.__index__()
    if not 0 <= number < count:
        raise CaptureError(
            f"target {number} is out of range: {type(model).__name__} scores {count} outputs, 0 to {count - 1}."
        )
    return int(number)


def _named(name: str, count: int, model: Any, tokenizer: Any) -> int:
    # id2label is what transformers trusts when the two differ; label2id alone may be left at its default
    by_number = getattr(getattr(model, "config", None), "id2label", None) or {}
    labels = {label: number for number, label in by_number.items()}
    if len(labels) == count:  # a classifier
        for label, number in labels.items():
            if str(label).lower() == name.lower():
                return int(number)
        raise CaptureError(f"no class is called {name!r}. The classes are: {', '.join(map(str, labels))}.")
    if tokenizer is None:
        raise CaptureError(f"a tokenizer is needed to find the token {name!r}. Pass tokenizer=…, or the token's id.")
    return token_id(tokenizer, name)


def token_id(tokenizer: Any, name: str) -> int:
    """The one token that a string is. With the space before it that words usually have, if it is none without."""
    found: list[str] = []
    for text in (name, " " + name):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        unknown = getattr(tokenizer, "unk_token_id", None)
        if len(ids) == 1 and (ids[0] != unknown or name == getattr(tokenizer, "unk_token", None)):
            return int(ids[0])
        found = found or tokenizer.convert_ids_to_tokens(ids)
    raise CaptureError(f"{name!r} is not one token of this tokenizer: it becomes {found}. Give one token, or its id.")


def _logits(outputs: Any) -> Any:
    for field in ("logits", "prediction_logits", "start_logits", "itm_score", "logits_per_image"):
        value = getattr(outputs, field, None)
        if isinstance(value, torch.Tensor):
            return value
    # A module from outside transformers returns its scores as they are, or first of several.
    first = outputs[0] if type(outputs) in (tuple, list) and outputs else outputs
    return first if isinstance(first, torch.Tensor) and first.ndim in (2, 3) else None


def _readout(outputs: Any, item: int, position: int | None, model: Any) -> torch.Tensor:
    logits = _logits(outputs)
    if logits is None:
        raise CaptureError(
            f"{type(model).__name__} has no head that scores classes or tokens. Load it with one, or give target= a function of its output."
        )
    row = logits[item]
    if row.ndim == 2 and len(row) == 1:  # only the last position was scored
        row = row[0]
    if row.ndim == 2 and position is None:
        raise CaptureError(
            "the output has one row of scores for each position, and nothing says which is meant. Put the mask token where "
            "the model shall predict, or give target= a function of the output."
        )
    chosen: torch.Tensor = row[position] if row.ndim == 2 else row
    if chosen.ndim != 1:
        raise CaptureError(
            f"scores of shape {tuple(logits.shape)} are not read by class. Give target= a function of the output."
        )
    if not chosen.isfinite().any():
        raise CaptureError("the model's scores are NaN: its weights or its input hold NaN or infinity.")
    return chosen
