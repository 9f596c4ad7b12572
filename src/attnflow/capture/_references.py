"""The paper's reference importances: what changes when a token is blanked out, and the gradient by its embedding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from attnflow.capture._ablated import Ablation
from attnflow.capture._ablation import ablation
from attnflow.capture._batch import Batch
from attnflow.capture._embedding import embedded
from attnflow.capture._gradients import differentiable
from attnflow.capture._jobs import Setting, batches, opened
from attnflow.capture._models import check_weights
from attnflow.capture._query import positions_of
from attnflow.capture._reference import Reference
from attnflow.capture._session import borrowed
from attnflow.capture._targets import per_input, values
from attnflow.errors import CaptureError, InvalidArgument, suggest
from attnflow.tokens import Tokens

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

    `replace`: "unk" (the paper's), "mask", "pad", "mean" (of the token table), or "remove", which takes the token out. Special tokens and the masked
    position that is asked about stay, and score 0. `target` is a class or token, by number or name, a pair (the difference of the two
    probabilities), a function of the output, or None: what the model predicts on the whole input.
    """
    options: dict[str, Any] = {"target": target, "replace": replace, "words": words, "truncate": truncate}
    found = ablation(model, inputs, tokenizer, **options, batch_size=batch_size)
    several = found if isinstance(found, list) else [found]
    results = [_blanked(one) for one in tqdm(several, disable=not progress)]
    return results if isinstance(found, list) else results[0]


def _blanked(whole: Ablation) -> Reference:
    """One token at a time."""
    if whole.replace == "remove" and len(whole.tokens) == 1:
        raise CaptureError("an input of one token cannot lose it. Use replace='unk'.")
    changed = np.flatnonzero(whole.removable)
    signed = np.zeros(len(whole.tokens))
    signed[changed] = whole.value - whole(~np.eye(len(signed), dtype=np.bool_)[changed])
    target = getattr(whole.target, "__name__", "function") if callable(whole.target) else whole.target
    return Reference(signed, whole.tokens, "blank_out", whole.value, {"replace": whole.replace, "target": target})


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
