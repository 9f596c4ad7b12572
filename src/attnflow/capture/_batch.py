"""Several samples as the model's arguments: padded on the right, with masks, and with what was padded remembered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from attnflow.capture._image_text import PLACEHOLDERS, family_of, with_grids
from attnflow.capture._inputs import Sample, tokens_of_ids
from attnflow.capture._models import check_ids, check_length, device_of, takes
from attnflow.capture._patches import patches_of, sizing
from attnflow.capture._positions import Block, Mask
from attnflow.errors import CaptureError, InvalidArgument
from attnflow.images import Picture
from attnflow.tokens import Tokens


@dataclass(frozen=True, eq=False)
class Batch:
    """Arguments for one run of the model, and the axes of its input and, with a decoder of its own, its output."""

    keywords: dict[str, Any]
    size: int
    source: Block
    target: Block | None
    samples: list[Sample] | None = None


def padded(model: Any, samples: Sequence[Sample], tokenizer: Any) -> Batch:
    """Samples of different lengths in one batch, as if each were alone: masked padding, after the last token.

    (Before the first one for XLNet, whose heads read the last position whatever is there.)
    """
    left = getattr(model.config, "model_type", "") == "xlnet"
    device = device_of(model)
    filler = _padding_id(model, tokenizer)

    def rectangle(rows: Sequence[Sequence[int]], blank: int) -> torch.Tensor:
        width = max(len(row) for row in rows)
        padding = [[blank] * (width - len(row)) for row in rows]
        full = [[*pad, *row] if left else [*row, *pad] for row, pad in zip(rows, padding, strict=True)]
        return torch.tensor(full, dtype=torch.long, device=device)

    for sample in samples:
        check_ids(model, [*sample.ids, *(sample.decoder_ids or ())], tokenizer)
    mask = rectangle([[1] * len(s.ids) for s in samples], 0)
    keywords = {"input_ids": rectangle([s.ids for s in samples], filler), "attention_mask": mask}
    types = [s.types for s in samples if s.types is not None]
    if takes(model, "token_type_ids") and len(types) == len(samples):
        keywords["token_type_ids"] = rectangle(types, 0)
    source, target = Block(_rows(mask), [s.tokens for s in samples]), None
    seconds = [(s.decoder_ids, s.decoder_tokens) for s in samples if s.decoder_ids is not None]
    if len(seconds) == len(samples):
        keywords["decoder_input_ids"] = rectangle([ids for ids, _ in seconds], filler)
        mask = rectangle([[1] * len(ids) for ids, _ in seconds], 0)
        if not mask.all() and takes(model, "decoder_attention_mask"):
            keywords["decoder_attention_mask"] = mask
        target = Block(_rows(mask), [tokens or Tokens([str(i) for i in ids]) for ids, tokens in seconds])
    return Batch(keywords, len(samples), source, target, list(samples))


def from_keywords(
    model: Any,
    keywords: Mapping[str, Any],
    tokenizer: Any,
    pictures: Sequence[Sequence[Picture | None]] | None = None,
) -> Batch:
    """The model's own arguments, as they are. Masks say what is padding, on either side."""
    device = device_of(model)
    moved = {name: _tensor(name, value, device) for name, value in keywords.items()}
    main = next(
        (
            moved[n]
            for n in ("input_ids", "inputs_embeds", "input_features", "input_values", "pixel_values")
            if n in moved
        ),
        None,
    )
    if not isinstance(main, torch.Tensor) or main.ndim < 2:
        came = ", ".join(f"{n} of shape {tuple(v.shape)}" if hasattr(v, "shape") else n for n, v in keywords.items())
        raise InvalidArgument(
            f"the model's arguments must hold a batch of input, for example input_ids of shape (1, n); got {came or 'none'}."
        )
    size = len(main)
    source = _block(moved.get("input_ids"), moved.get("inputs_embeds"), moved.get("attention_mask"), model, tokenizer)
    target = None
    family = family_of(model)
    if family == PLACEHOLDERS and "input_ids" in moved:
        source = with_grids(source, model, moved, pictures)
    elif family is not None and "pixel_values" in moved and "input_ids" in moved:
        return _both(model, moved, source, pictures)
    if main is moved.get("pixel_values") and main is not None:
        return Batch({**sizing(model, main), **moved}, size, patches_of(model, main), None)
    if getattr(model.config, "is_encoder_decoder", False):
        if "decoder_input_ids" not in moved and "decoder_inputs_embeds" not in moved:
            moved["decoder_input_ids"] = torch.full((size, 1), start_id(model), device=device)
        target = _block(
            moved.get("decoder_input_ids"),
            moved.get("decoder_inputs_embeds"),
            moved.get("decoder_attention_mask"),
            model,
            tokenizer,
            "decoder",
        )
    return Batch(moved, size, source, target)


def _both(
    model: Any, keywords: dict[str, Any], text: Block, pictures: Sequence[Sequence[Picture | None]] | None
) -> Batch:
    """An image and a text, each with positions of its own."""
    pixels, count = keywords["pixel_values"], len(keywords["input_ids"])
    if len(pixels) != count:
        raise InvalidArgument(f"got {len(pixels)} images and {count} texts. Give one text for each image.")
    if hasattr(model, "itm_head"):
        text = replace(text, read_at=(0, "the first token of the text, which the match is read from"))
    return Batch({**sizing(model, pixels), **keywords}, count, patches_of(model, pixels, pictures), text)


# Arguments with one number for each position of a text: lists will do, and one text alone is a batch of one.
_BY_POSITION = {
    "input_ids", "attention_mask", "token_type_ids", "position_ids", "decoder_input_ids", "decoder_attention_mask",
}  # fmt: skip


def _tensor(name: str, value: Any, device: torch.device) -> Any:
    """An argument as the model wants it: arrays, and lists that tokenizers return, as tensors on its device."""
    if isinstance(value, np.ndarray) or (name in _BY_POSITION and isinstance(value, list | tuple)):
        try:
            value = torch.as_tensor(value)
        except (TypeError, ValueError) as error:
            raise InvalidArgument(
                f"{name} must be a rectangle of numbers (inputs, positions): {error}. Pad them, or pass a list of texts."
            ) from None
    if not isinstance(value, torch.Tensor):
        return value
    return (value[None] if name in _BY_POSITION and value.ndim == 1 else value).to(device)


def start_id(model: Any) -> int:
    """The token that a decoder starts from."""
    for config in (getattr(model, "generation_config", None), model.config):
        value = getattr(config, "decoder_start_token_id", None)
        value = getattr(config, "bos_token_id", None) if value is None else value
        if value is not None:
            return int(value)
    raise CaptureError(
        f"the config of {type(model).__name__} has no decoder_start_token_id. Pass decoder_input_ids yourself."
    )


def _block(ids: Any, embeds: Any, mask: Any, model: Any, tokenizer: Any, side: str = "encoder") -> Block:
    if ids is None and embeds is None:
        return Block(None, None)
    check_length(
        model,
        None,
        (ids if ids is not None else embeds).shape[1],
        "the input has" if side == "encoder" else "the decoder's input has",
        side,
    )
    count = tuple((ids if ids is not None else embeds).shape[:2])
    if isinstance(mask, torch.Tensor) and mask.ndim == 2:
        if mask.shape != count:
            raise InvalidArgument(f"the attention mask has shape {tuple(mask.shape)}, the input it is for {count}.")
        kept = _rows(mask)
        if not all(row.any() for row in kept):
            raise CaptureError(
                "an attention mask marks all positions of an input as padding: nothing is left to capture."
            )
    else:
        kept = [np.ones(count[1], dtype=np.bool_) for _ in range(count[0])]
    if ids is None:
        return Block(kept, None)
    rows = [row.tolist() for row in ids]
    for row in rows:
        check_ids(model, row, tokenizer)
    real_rows = [[i for i, keep in zip(row, real, strict=True) if keep] for row, real in zip(rows, kept, strict=True)]
    return Block(kept, [tokens_of_ids(tokenizer, row) for row in real_rows])


def _rows(mask: torch.Tensor) -> list[Mask]:
    return [row.cpu().numpy().astype(np.bool_) for row in mask]


def _padding_id(model: Any, tokenizer: Any) -> int:
    """Any id would do under the mask, but some models count positions by it."""
    for owner in (model.config, tokenizer):
        value = getattr(owner, "pad_token_id", None)
        if isinstance(value, int) and value >= 0:
            return value
    return 0
