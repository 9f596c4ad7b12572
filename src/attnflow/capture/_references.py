"""The paper's reference importances: what changes when a token is blanked out, and the gradient by its embedding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace as altered
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from attnflow.capture._batch import Batch, padded
from attnflow.capture._embedding import embedded
from attnflow.capture._gradients import differentiable
from attnflow.capture._inputs import Sample
from attnflow.capture._jobs import Setting, batches, opened, samples_in
from attnflow.capture._models import check_weights
from attnflow.capture._query import positions_of, row_of
from attnflow.capture._reference import Reference
from attnflow.capture._run import forward
from attnflow.capture._session import borrowed
from attnflow.capture._targets import fixed, per_input, readout_row, values
from attnflow.errors import CaptureError, InvalidArgument, suggest
from attnflow.tokens import Tokens

REPLACEMENTS = ("unk", "mask", "pad", "remove")
MEASURES = ("sum", "l2", "gradient_x_input")


def blank_out(
    model: Any,
    inputs: Any,
    tokenizer: Any = None,
    *,
    target: Any = None,
    replace: str = "unk",
    words: bool = False,
    truncate: bool = False,
    batch_size: int = 32,
    progress: bool = False,
) -> Any:
    """Each token replaced in turn: by how much the target's probability falls (Abnar & Zuidema 2020, section 4).

        signed_j = p(target | input) − p(target | input with token j replaced),   scores = |signed|

    `replace`: "unk" (the paper's), "mask", "pad", or "remove", which takes the token out. Special tokens and the masked
    position that is asked about stay, and score 0. `target` is a class or token, by number or name, a pair (the difference of the two
    probabilities), a function of the output, or None: what the model predicts on the whole input.
    """
    if replace not in REPLACEMENTS:
        raise InvalidArgument(f"cannot replace a token by {replace!r}." + suggest(replace, REPLACEMENTS))
    setting = Setting(tokenizer, target=target, words=words, truncate=truncate, batch_size=batch_size)
    loaded, tokenizer, kind, source = opened(model, inputs, setting)
    check_weights(loaded)
    samples = samples_in(loaded, source, kind, tokenizer)
    targets = per_input(target, len(samples))
    results = []
    with borrowed(loaded), torch.no_grad():
        for sample, one in zip(tqdm(samples, disable=not progress), targets, strict=True):
            results.append(_blanked(loaded, sample, tokenizer, one, replace, batch_size))
    return results if kind.startswith("many ") else results[0]


def _blanked(model: Any, sample: Sample, tokenizer: Any, target: Any, replace: str, batch_size: int) -> Reference:
    whole = padded(model, [sample], tokenizer)
    outputs = forward(model, whole)
    [position] = positions_of(model, whole, tokenizer)
    chosen = target if callable(target) else fixed(target, readout_row(outputs, 0, position, model), model, tokenizer)
    asked = row_of(sample, model, tokenizer) if sample.decoder_ids is None else None
    mask = getattr(tokenizer, "mask_token_id", None)
    stays = sample.tokens.special.copy()
    if asked is not None and sample.ids[asked] == mask:
        stays[asked] = True
    changed = [j for j in range(len(sample.ids)) if not stays[j]]
    if replace == "remove" and len(sample.ids) == 1:
        raise CaptureError("an input of one token cannot lose it. Use replace='unk'.")
    variants = [_without(sample, j, replace, tokenizer, model) for j in changed]
    # Read where the whole input is, also when a second mask is put beside the one that is asked about.
    rows = [asked if asked is None or replace != "remove" else asked - (j <= asked) for j in changed]
    [value] = _probabilities(model, [sample], [asked], chosen, tokenizer, 1)
    signed = np.zeros(len(sample.ids))
    signed[changed] = value - np.array(_probabilities(model, variants, rows, chosen, tokenizer, batch_size))
    options = {
        "replace": replace,
        "target": chosen if not callable(chosen) else getattr(chosen, "__name__", "function"),
    }
    return Reference(signed, sample.tokens, "blank_out", value, options)


def _probabilities(
    model: Any,
    samples: Sequence[Sample],
    rows: Sequence[int | None],
    target: Any,
    tokenizer: Any,
    batch_size: int,
) -> list[float]:
    """The target's probability for each sample, read at its row (None: as the model says)."""
    found: list[float] = []
    for start in range(0, len(samples), batch_size):
        some = samples[start : start + batch_size]
        batch = padded(model, some, tokenizer)
        positions = [
            own if own is None or batch.source.kept is None else int(np.flatnonzero(batch.source.kept[item])[own])
            for item, own in enumerate(rows[start : start + batch_size])
        ]
        if some[0].decoder_ids is not None:
            positions = positions_of(model, batch, tokenizer)
        found += values(
            forward(model, batch), [target] * len(some), positions, model, tokenizer, probability=True
        ).tolist()
    return found


def _without(sample: Sample, j: int, replace: str, tokenizer: Any, model: Any) -> Sample:
    if replace == "remove":
        kept = np.arange(len(sample.ids)) != j
        types = None if sample.types is None else [*sample.types[:j], *sample.types[j + 1 :]]
        return altered(
            sample, ids=[*sample.ids[:j], *sample.ids[j + 1 :]], types=types, tokens=sample.tokens.select(kept)
        )
    new = getattr(tokenizer, f"{replace}_token_id", None)
    if new is None and replace == "pad":
        new = getattr(model.config, "pad_token_id", None)
    if new is None and tokenizer is None:
        raise CaptureError(
            f'a tokenizer is needed to know the {replace} token. Pass tokenizer=…; replace="remove" needs none.'
        )
    if new is None:
        raise CaptureError(
            f'this tokenizer has no {replace} token. Choose another of: {", ".join(REPLACEMENTS)}; "remove" needs none.'
        )
    return altered(sample, ids=[*sample.ids[:j], int(new), *sample.ids[j + 1 :]])


def input_gradient(
    model: Any,
    inputs: Any,
    tokenizer: Any = None,
    *,
    target: Any = None,
    measure: str = "sum",
    words: bool = False,
    truncate: bool = False,
    batch_size: int = 8,
) -> Any:
    """The gradient of the target's logit by each token's embedding e (Abnar & Zuidema 2020, section 4).

    The embedding is the output of the model's embedding layer, positions and normalisation included, where it has one.

    `measure`: "sum", Σ_d ∂y/∂e_d (the paper's, whose size is taken); "l2", the norm of ∂y/∂e; "gradient_x_input",
    Σ_d e_d ∂y/∂e_d. In decoders whose every block starts with LayerNorm (GPT-2) the sum is zero, as a constant added to a
    vector changes nothing: take one of the others there. `target` as in `blank_out`. The model's own gradients are not touched.
    """
    if measure not in MEASURES:
        raise InvalidArgument(f"unknown measure {measure!r}." + suggest(measure, MEASURES))
    setting = Setting(tokenizer, target=target, words=words, truncate=truncate, batch_size=batch_size)
    loaded, tokenizer, kind, source = opened(model, inputs, setting)
    check_weights(loaded)
    results: list[Reference] = []
    with borrowed(loaded):
        for batch in batches(loaded, source, kind, tokenizer, setting):
            count = len(results)
            total = len(source) if isinstance(source, list) else batch.size
            targets = per_input(target, total)[count : count + batch.size]
            results += _gradients(loaded, batch, targets, tokenizer, measure)
    return results if kind.startswith("many ") or len(results) > 1 else results[0]


def _gradients(model: Any, batch: Batch, targets: Sequence[Any], tokenizer: Any, measure: str) -> Iterator[Reference]:
    with differentiable(model):
        leaf, outputs = embedded(model, batch)
        value = values(outputs, targets, positions_of(model, batch, tokenizer), model, tokenizer)
        [gradient] = torch.autograd.grad(value.sum(), [leaf])
    vectors = {"sum": gradient, "l2": gradient, "gradient_x_input": gradient * leaf.detach()}[measure].double()
    per_token = (vectors.norm(dim=-1) if measure == "l2" else vectors.sum(-1)).cpu().numpy()
    for item in range(batch.size):
        real = batch.source.real(item, per_token.shape[1])
        tokens: Tokens = batch.source.labels(item, int(real.sum()))
        yield Reference(
            per_token[item][real], tokens, "input_gradient", float(value[item].detach()), {"measure": measure}
        )
