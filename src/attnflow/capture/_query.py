"""Where a model's output is read from: the query that one asks about when no other is named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnflow.capture._batch import Batch
from attnflow.capture._image_text import sees
from attnflow.capture._inputs import Sample
from attnflow.errors import CaptureError


def read_position(model: Any, ids: Sequence[int], tokenizer: Any, *, second: int | None = None) -> int | None:
    """The row of per-position scores that counts: the mask, or the last position of a decoder; None if none does.

    `second` is the length of the decoder's own input, where there is one.
    """
    if second is not None:
        return second - 1
    mask = _masked(ids, tokenizer)
    if is_masked_lm(model):
        return mask
    return len(ids) - 1 if is_causal(model) else mask


def default_query(
    model: Any,
    ids: Sequence[int] | None,
    tokenizer: Any,
    *,
    causal: bool,
    second: tuple[int, int] | None = None,
    count: int = 0,
) -> tuple[int, str]:
    """The position on the graph's axis that the output is read from, and how one would say so.

    `causal` is what `is_causal` says of the model; `second` is (start, length) of the decoder's block.
    """
    if second is not None:
        return second[0] + second[1] - 1, "the last token of the decoder, which the next one is read from"
    mask = _masked(ids or (), tokenizer)
    if mask is not None and not causal:
        return mask, "the masked position"
    if causal:
        return count - 1, "the last token, which the next one is read from"
    if type(model).__name__.startswith(_TEXT_TOWERS):
        return count - 1, "the last token, which the text's vector is read from"
    first = getattr(tokenizer, "cls_token_id", None)
    if ids is not None and first is not None and first in ids:
        return list(ids).index(first), "the class token"
    return 0, "the first token"


def is_causal(model: Any) -> bool:
    """Decoders: each position sees itself and what came before."""
    if getattr(model.config, "is_encoder_decoder", False):
        return True
    names = [type(module).__name__ for module in model.modules()]
    if is_masked_lm(model) or any(name in _TWO_WAY for name in names[:2]):
        return False
    reading = [module for path, module in model.named_modules() if not sees(path)]
    flags = [getattr(module, "is_causal", None) for module in reading if "ttention" in type(module).__name__]
    known = [flag for flag in flags if isinstance(flag, bool)]
    if known:
        return all(known)
    return bool(getattr(model.config, "is_decoder", False)) or any(
        "CausalLM" in name or name in _ONE_WAY for name in names[:2]
    )


# Text halves of models that compare texts with images: they read the end of the text.
_TEXT_TOWERS = ("CLIPText", "MetaClip2Text", "SiglipText", "Siglip2Text")

# Models without the flag, by what they are.
_TWO_WAY = frozenset({"XLNetModel"})
_ONE_WAY = frozenset({"BloomModel", "FalconModel", "MptModel", "CTRLModel", "OpenAIGPTModel"})


def is_masked_lm(model: Any) -> bool:
    """Models that fill in a mask."""
    return type(model).__name__.endswith(("ForMaskedLM", "ForPreTraining", "WithLMHeadModel"))


def positions_of(model: Any, batch: Batch, tokenizer: Any) -> list[int | None]:
    """Where each input of a padded batch is read, on the padded axis."""
    import numpy as np

    if batch.target is not None:
        sizes = batch.keywords.get("decoder_input_ids", batch.keywords.get("input_ids"))
        width = 1 if sizes is None else int(sizes.shape[1])
        last = 0 if batch.target.read_at else -1
        return [int(np.flatnonzero(batch.target.real(i, width))[last]) for i in range(batch.size)]
    if "input_ids" not in batch.keywords or batch.source.kept is None:
        return [None] * batch.size
    found: list[int | None] = []
    for item in range(batch.size):
        real = np.flatnonzero(batch.source.kept[item])
        ids = batch.keywords["input_ids"][item].tolist()
        inner = read_position(model, [ids[i] for i in real], tokenizer)
        found.append(None if inner is None else int(real[inner]))
    return found


def _masked(ids: Sequence[int], tokenizer: Any) -> int | None:
    mask = getattr(tokenizer, "mask_token_id", None)
    found = [i for i, one in enumerate(ids) if mask is not None and one == mask]
    if len(found) > 1:
        raise CaptureError(
            f"the input has {len(found)} masked positions ({found}), and one is read. Fill in the others, or give target= a function."
        )
    return found[0] if found else None


def row_of(sample: Sample, model: Any, tokenizer: Any) -> int | None:
    """Where a single sample is read."""
    return read_position(
        model, sample.ids, tokenizer, second=None if sample.decoder_ids is None else len(sample.decoder_ids)
    )
