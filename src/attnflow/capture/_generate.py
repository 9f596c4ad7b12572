"""Text that the model writes itself, so that its tokens can be asked about like any other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from attnflow.capture._batch import padded, start_id
from attnflow.capture._inputs import Sample, target_tokens, tokens_of_ids
from attnflow.capture._models import check_length, takes
from attnflow.errors import CaptureError, InvalidArgument
from attnflow.tokens import Tokens


def with_decoder(model: Any, sample: Sample, tokenizer: Any, text: Any) -> Sample:
    """The sample with its decoder's input: the start token, then the target text if one is given.

    Teacher forcing: row t of the decoder reads token t and predicts token t + 1.
    """
    start = start_id(model)
    wanted = [] if text is None else target_tokens(tokenizer, text)
    ids = [start, *wanted[:-1]]
    return replace(
        sample, decoder_ids=ids, decoder_tokens=tokens_of_ids(tokenizer, ids), predicted=tuple(wanted), first_row=0
    )


def continued(model: Any, sample: Sample, tokenizer: Any, count: int) -> Sample:
    """The sample with up to `count` more tokens, the likeliest one each time; fewer if the model ends the text."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidArgument(f"generate is the number of tokens to write, at least 1; got {count!r}.")
    from transformers import GenerationMixin

    generate: Any = GenerationMixin.generate
    if not (hasattr(model, "can_generate") and model.can_generate()):
        raise CaptureError(
            f"{type(model).__name__} does not generate text. Load it as a causal or sequence-to-sequence language model."
        )
    given = len(sample.ids if sample.decoder_ids is None else sample.decoder_ids)
    side = "encoder" if sample.decoder_ids is None else "decoder"
    check_length(model, tokenizer, given + count - (side == "decoder"), "input and generated text come to", side)
    batch = padded(model, [sample], tokenizer)
    with torch.no_grad():
        # The plain method: Whisper's own cuts long audio into pieces, which would be several runs.
        ids = generate(model, **batch.keywords, max_new_tokens=count, do_sample=False, num_beams=1)[0].tolist()
    if sample.decoder_ids is not None:
        kept = ids[:-1]  # the last one is predicted by the row before it
        return replace(
            sample,
            decoder_ids=kept,
            decoder_tokens=tokens_of_ids(tokenizer, kept),
            predicted=tuple(ids[given:]),
            first_row=given - 1,
        )
    written = ids[given:]
    types = None if sample.types is None else [*sample.types, *[sample.types[-1]] * len(written)]
    if not takes(model, "token_type_ids"):
        types = None
    return replace(
        sample, ids=ids, types=types, tokens=_joined(sample.tokens, tokens_of_ids(tokenizer, written) if written else None),
        predicted=tuple(written), first_row=given - 1,
    )  # fmt: skip


def _joined(first: Tokens, second: Tokens | None) -> Tokens:
    from attnflow.capture._blocks import joined

    return first if second is None else joined([first, second])


def rows_written(sample: Sample, tokenizer: Any, start: int) -> list[dict[str, Any]]:
    """For each predicted token: what it is and which row of the graph predicted it. `start`: where its block begins."""
    if not sample.predicted:
        return []
    labels = tokens_of_ids(tokenizer, sample.predicted).labels
    return [{"token": label, "row": start + sample.first_row + i} for i, label in enumerate(labels)]
