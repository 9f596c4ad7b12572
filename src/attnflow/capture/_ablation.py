"""A model as a function of which tokens of its input are kept: what perturbation metrics call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace as altered
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attnflow.capture._ablated import Ablation
from attnflow.capture._batch import Batch, padded
from attnflow.capture._images import image_batches
from attnflow.capture._inputs import Sample
from attnflow.capture._jobs import Setting, opened, samples_in
from attnflow.capture._models import check_weights
from attnflow.capture._patch_ablation import of_patches
from attnflow.capture._query import positions_of, row_of
from attnflow.capture._run import forward
from attnflow.capture._session import borrowed
from attnflow.capture._targets import fixed, per_input, readout_row, values
from attnflow.errors import CaptureError, InvalidArgument, suggest
from attnflow.tokens import Tokens

REPLACEMENTS = ("unk", "mask", "pad", "remove", "mean")

Mask = NDArray[np.bool_]


def ablation(
    model: Any,
    inputs: Any,
    tokenizer: Any = None,
    *,
    target: Any = None,
    replace: str = "unk",
    words: bool = False,
    truncate: bool = False,
    batch_size: int = 32,
) -> Any:
    """Any set of tokens replaced at once: an Ablation, or a list of them for a list of inputs.

    `replace`: "unk", "mask" or "pad", those tokens; "remove", which takes tokens out; "mean", the mean of the token table's
    vectors. Of images, patches are replaced: by "mean", the image's mean colour, or "blank", 0 as the model sees it. Which one it
    is changes how maps rank, so use more than one. `target` as in `blank_out`.
    """
    setting = Setting(tokenizer, target=target, words=words, truncate=truncate, batch_size=batch_size)
    loaded, tokenizer, kind, source = opened(model, inputs, setting)
    check_weights(loaded)
    if kind.endswith("image"):
        singles = list(image_batches(loaded, source, 1))
        pairs = zip(singles, per_input(target, len(singles)), strict=True)
        patched = [of_patches(loaded, batch, one, replace, batch_size) for batch, one in pairs]
        return patched if kind.startswith("many ") else patched[0]
    if replace not in REPLACEMENTS:
        raise InvalidArgument(f"cannot replace a token by {replace!r}." + suggest(replace, REPLACEMENTS))
    samples = samples_in(loaded, source, kind, tokenizer)
    found = [
        _of(loaded, sample, tokenizer, one, replace, batch_size)
        for sample, one in zip(samples, per_input(target, len(samples)), strict=True)
    ]
    return found if kind.startswith("many ") else found[0]


def _of(model: Any, sample: Sample, tokenizer: Any, target: Any, replace: str, batch_size: int) -> Ablation:
    with borrowed(model), torch.no_grad():
        whole = padded(model, [sample], tokenizer)
        outputs = forward(model, whole)
        [position] = positions_of(model, whole, tokenizer)
        chosen = target if callable(target) else fixed(target, readout_row(outputs, 0, position, model), model, tokenizer)  # fmt: skip
        [value] = values(outputs, [chosen], [position], model, tokenizer, probability=True).tolist()
    removable = ~sample.tokens.special
    asked = row_of(sample, model, tokenizer) if sample.decoder_ids is None else None
    if asked is not None and sample.ids[asked] == getattr(tokenizer, "mask_token_id", None):
        removable[asked] = False
    new = None if replace in ("remove", "mean") else _token(replace, model, tokenizer)
    if replace == "remove" and removable.all():
        _filler(model, tokenizer)  # what stands in for an empty input: asked for before, not after, an hour of work

    def probabilities(kept: Mask) -> NDArray[np.float64]:
        found: list[float] = []
        with borrowed(model), torch.no_grad():
            for start in range(0, len(kept), batch_size):
                some = kept[start : start + batch_size]
                batch = padded(
                    model, [_variant(sample, row, replace, new, model, tokenizer) for row in some], tokenizer
                )
                with _averaged(model, batch, some) if replace == "mean" else nullcontext():
                    outputs = forward(model, batch)
                places = _places(sample, some, asked, batch, model, tokenizer)
                found += values(outputs, [chosen] * len(some), places, model, tokenizer, probability=True).tolist()
        return np.array(found, dtype=np.float64)

    return Ablation(sample.tokens, removable, chosen, float(value), replace, probabilities)


def _variant(sample: Sample, kept: Mask, replace: str, new: int | None, model: Any, tokenizer: Any) -> Sample:
    if kept.all() or replace == "mean":
        return sample
    if new is not None:
        return altered(sample, ids=[i if keep else new for i, keep in zip(sample.ids, kept, strict=True)])
    if not kept.any():  # a model cannot read nothing
        return altered(sample, ids=[_filler(model, tokenizer)], types=None, tokens=Tokens(["[empty]"], [True]))
    ids = [i for i, keep in zip(sample.ids, kept, strict=True) if keep]
    types = None if sample.types is None else [t for t, keep in zip(sample.types, kept, strict=True) if keep]
    return altered(sample, ids=ids, types=types, tokens=sample.tokens.select(kept))


def _places(
    sample: Sample, kept: Mask, asked: int | None, batch: Batch, model: Any, tokenizer: Any
) -> list[int | None]:
    """Where each variant is read, on the padded axis: where the whole input is, which moves up as tokens before it go.

    Not found anew: where tokens became masks, the masked position would be one of many.
    """
    if sample.decoder_ids is not None:
        return positions_of(model, batch, tokenizer)
    real = batch.source.kept
    if asked is None or real is None:
        return [None] * batch.size
    found: list[int | None] = []
    for row, present in zip(kept, real, strict=True):
        shorter = int(present.sum()) < len(row)
        inner = max(0, int(row[: asked + 1].sum()) - 1) if shorter else asked
        found.append(int(np.flatnonzero(present)[inner]))
    return found


def _token(replace: str, model: Any, tokenizer: Any) -> int:
    new = getattr(tokenizer, f"{replace}_token_id", None)
    if new is None and replace == "pad":
        new = getattr(model.config, "pad_token_id", None)
    if new is None and tokenizer is None:
        raise CaptureError(
            f'a tokenizer is needed to know the {replace} token. Pass tokenizer=…; replace="remove" needs none.'
        )
    if new is None:
        raise CaptureError(
            f'this tokenizer has no {replace} token. Choose another of: {", ".join(REPLACEMENTS)}; "remove" and "mean" need none.'
        )
    return int(new)


def _filler(model: Any, tokenizer: Any) -> int:
    """One token without content, in place of an input that lost all of its own."""
    for owner in (tokenizer, model.config):
        for name in ("bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id"):
            found = getattr(owner, name, None)
            if isinstance(found, int):
                return found
    raise CaptureError(
        "an input that loses all of its tokens needs one that means nothing (begin, end, padding or unknown), and this "
        "tokenizer has none. Use replace='mean'."
    )


@contextmanager
def _averaged(model: Any, batch: Batch, kept: Mask) -> Iterator[None]:
    """The vectors of tokens that are not kept are the token table's mean, positions being added as always."""
    table: Any = model.get_input_embeddings() if hasattr(model, "get_input_embeddings") else None
    if not isinstance(getattr(table, "weight", None), torch.Tensor):
        raise CaptureError(f"{type(model).__name__} has no table of token vectors whose mean could be taken.")
    mean = table.weight.detach().mean(0)
    taken = torch.zeros(batch.keywords["input_ids"].shape, dtype=torch.bool, device=mean.device)
    real: Sequence[Any] = batch.source.kept or []
    for item, row in enumerate(kept):
        taken[item, torch.from_numpy(np.flatnonzero(real[item])[~row])] = True
    done = False

    def change(module: Any, args: Any, output: torch.Tensor) -> torch.Tensor:
        nonlocal done
        if done or output.shape[:2] != taken.shape:  # an encoder-decoder model looks up its second text later
            return output
        done = True
        return torch.where(taken[..., None], mean.to(output.dtype), output)

    handle = table.register_forward_hook(change)
    try:
        yield
    finally:
        handle.remove()
