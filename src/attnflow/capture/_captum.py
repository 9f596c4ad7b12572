"""Any attribution method of Captum as one more reference."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import torch

from attnflow.capture._batch import Batch, padded
from attnflow.capture._embedding import embedding_hook
from attnflow.capture._gradients import differentiable
from attnflow.capture._jobs import Setting, opened, samples_in
from attnflow.capture._models import check_weights
from attnflow.capture._query import positions_of
from attnflow.capture._reference import Reference
from attnflow.capture._run import forward
from attnflow.capture._session import borrowed
from attnflow.capture._targets import fixed, per_input, readout_row, values
from attnflow.errors import CaptureError, InvalidArgument, MissingExtra, suggest


class FromEmbedding(torch.nn.Module):
    """The target's logit as a function of the token vectors, which is what Captum's methods attribute to."""

    def __init__(self, model: Any, batch: Batch, target: Any, position: int | None, tokenizer: Any) -> None:
        super().__init__()
        self.model = model
        self.batch, self.target, self.position, self.tokenizer = batch, target, position, tokenizer

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """One number for each row of `vectors` (any number of rows, n, width)."""
        count = len(vectors)
        repeated = {
            name: value.expand(count, *value.shape[1:]) if isinstance(value, torch.Tensor) else value
            for name, value in self.batch.keywords.items()
        }
        batch = Batch(repeated, count, self.batch.source, self.batch.target)
        with embedding_hook(self.model, lambda _: vectors):
            outputs = forward(self.model, batch)
        return values(outputs, [self.target] * count, [self.position] * count, self.model, self.tokenizer)


def captum(
    model: Any,
    inputs: Any,
    method: Any = "IntegratedGradients",
    tokenizer: Any = None,
    *,
    target: Any = None,
    words: bool = False,
    truncate: bool = False,
    seed: int = 0,
    **options: Any,
) -> Any:
    """A Captum method on the token embeddings: its attributions, summed over each token's vector, as a Reference.

    `method` is a name in `captum.attr` ("IntegratedGradients", "InputXGradient", "DeepLift", "FeatureAblation" …), or a class that is made
    from a function and has `attribute`. `options` go to `attribute` (`n_steps`, `baselines`, `n_samples` …); a perturbing method
    changes whole tokens. Methods that draw at random draw from `seed`. Baselines are the same input with padding in place of its words, unless given. `target` as in `blank_out`.
    """
    kind_of_method = _method(method)
    setting = Setting(tokenizer, target=target, words=words, truncate=truncate)
    loaded, tokenizer, kind, source = opened(model, inputs, setting)
    check_weights(loaded)
    samples = samples_in(loaded, source, kind, tokenizer)
    results = []
    with borrowed(loaded), differentiable(loaded), torch.random.fork_rng():
        torch.manual_seed(seed)
        for sample, one in zip(samples, per_input(target, len(samples)), strict=True):
            batch = padded(loaded, [sample], tokenizer)
            signed, value = _attributed(loaded, batch, one, tokenizer, kind_of_method, options)
            results.append(Reference(signed, sample.tokens, f"captum {kind_of_method.__name__}", value, dict(options)))
    return results if kind.startswith("many ") else results[0]


def _attributed(
    model: Any, batch: Batch, target: Any, tokenizer: Any, method: Any, options: dict[str, Any]
) -> tuple[Any, float]:
    vectors, outputs = _vectors(model, batch)
    [position] = positions_of(model, batch, tokenizer)
    chosen = target if callable(target) else fixed(target, readout_row(outputs, 0, position, model), model, tokenizer)
    function = FromEmbedding(model, batch, chosen, position, tokenizer)
    attribute = method(function).attribute
    known = inspect.signature(attribute).parameters
    for name in options:
        if name not in known and not any(one.kind is one.VAR_KEYWORD for one in known.values()):
            raise InvalidArgument(f"{method.__name__} has no option {name!r}." + suggest(name, [*known][1:]))
    if "baselines" in known and "baselines" not in options:
        options = {"baselines": _vectors(model, _emptied(model, batch, tokenizer))[0], **options}
    if "feature_mask" in known:
        numbers = torch.arange(vectors.shape[1], device=vectors.device)[None, :, None].expand_as(vectors)
        options = {"feature_mask": numbers, **options}
    result = attribute(vectors.requires_grad_(), **options)
    result = result[0] if isinstance(result, tuple) else result
    with torch.no_grad():
        value = float(function(vectors.detach())[0])
    per_token = result.detach().double()
    if "feature_mask" in options:  # the same number at every component of a token
        return per_token.mean(-1)[0].cpu().numpy(), value
    return per_token.sum(-1)[0].cpu().numpy(), value


def _vectors(model: Any, batch: Batch) -> tuple[torch.Tensor, Any]:
    kept: list[torch.Tensor] = []

    def keep(output: torch.Tensor) -> torch.Tensor:
        kept.append(output.detach().clone())
        return output

    with torch.no_grad(), embedding_hook(model, keep):
        outputs = forward(model, batch)
    return kept[0], outputs


def _emptied(model: Any, batch: Batch, tokenizer: Any) -> Batch:
    """The same input without content: each token that is not special becomes padding (or unknown, or the mask).

    Zero vectors, Captum's default, are no input that a model with LayerNorm has a smooth path from.
    """
    names = ("pad_token_id", "unk_token_id", "mask_token_id")
    found = [getattr(owner, name, None) for name in names for owner in (tokenizer, model.config)]
    blank = next((one for one in found if isinstance(one, int)), 0)
    tokens = batch.source.tokens
    special = [] if tokens is None else tokens[0].special.tolist()
    ids = [i if keep else blank for i, keep in zip(batch.keywords["input_ids"][0].tolist(), special, strict=True)]
    moved = torch.tensor([ids], device=batch.keywords["input_ids"].device)
    return replace(batch, keywords={**batch.keywords, "input_ids": moved})


def _method(method: Any) -> Any:
    if not isinstance(method, str):
        if not hasattr(method, "attribute"):
            raise CaptureError(f"a Captum method is a class with `attribute`, or its name; got {method!r}.")
        return method
    try:
        import captum.attr
    except ImportError:
        raise MissingExtra("captum", extra="references") from None
    found = getattr(captum.attr, method, None)
    if found is None or not hasattr(found, "attribute"):
        known = sorted(name for name in captum.attr.__all__ if hasattr(getattr(captum.attr, name), "attribute"))
        raise CaptureError(f"captum.attr has no method {method!r}. It has: {', '.join(known)}.")
    return found
