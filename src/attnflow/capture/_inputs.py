"""From what a user has (text, a pair, words, token ids, a chat, model keywords) to samples: token ids with labels.

A sample is one input by itself, without padding; `_batch` puts several together for the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnflow.capture._words import words_by_marks, words_by_numbers, words_by_offsets
from attnflow.errors import CaptureError, InvalidArgument
from attnflow.tokens import Tokens, whole_number


@dataclass(frozen=True, eq=False)
class Sample:
    """One input: ids of the first block, and of the second if the model has a decoder of its own.

    `predicted` are the ids that the rows of the decoder (from its last block's row `first_row`) predict, where known.
    """

    ids: list[int]
    tokens: Tokens
    types: list[int] | None = None
    decoder_ids: list[int] | None = None
    decoder_tokens: Tokens | None = None
    predicted: tuple[int, ...] = ()
    first_row: int = 0


def kind_of(inputs: Any, *, words: bool) -> str:
    """What `inputs` is: text, pair, words, chat, ids, keywords, array, or a list of such ("many …")."""
    if isinstance(inputs, str):
        return "text"
    if isinstance(inputs, Mapping):
        return "keywords"
    if hasattr(inputs, "shape"):
        integer = "int" in str(inputs.dtype)
        if not integer:
            return "array"
        return "ids" if len(inputs.shape) == 1 else "many ids"
    if isinstance(inputs, tuple) and len(inputs) == 2 and all(isinstance(part, str) for part in inputs) and not words:
        return "pair"
    if not isinstance(inputs, Sequence) or isinstance(inputs, bytes | bytearray):
        raise InvalidArgument(
            f"inputs must be text, a pair of texts, a list, token ids, words, chat messages or a dict of the model's own "
            f"arguments; got a {type(inputs).__name__}."
        )
    if len(inputs) == 0:
        raise CaptureError("the input is empty: there is nothing to capture.")
    first = inputs[0]
    if isinstance(first, Mapping):
        return "chat"
    if isinstance(first, str):
        return "words" if words else "many text"
    if isinstance(first, int | np.integer):
        return "ids"
    return f"many {kind_of(first, words=words).removeprefix('many ')}"


def samples_of(inputs: Any, kind: str, tokenizer: Any, *, limit: int | None, truncate: bool) -> list[Sample]:
    """The samples of text-like input; a single input is a list of one."""
    each = list(inputs) if kind.startswith("many ") else [inputs]
    kind = kind.removeprefix("many ")
    make = {"text": _from_text, "pair": _from_text, "words": _from_words, "chat": _from_chat, "ids": _from_ids}[kind]
    if tokenizer is None and kind != "ids":
        raise CaptureError("a tokenizer is needed to read text. Pass tokenizer=…, or token ids.")
    return [_cut(make(tokenizer, one), limit, truncate=truncate) for one in each]


def _from_text(tokenizer: Any, text: str | tuple[str, str]) -> Sample:
    parts = list(text) if isinstance(text, tuple | list) else [text]
    for part in parts:
        if not isinstance(part, str):
            raise InvalidArgument(f"a text was expected, got {part!r:.40}. All inputs of a list are of one kind.")
    if not all(part.strip() for part in parts):
        raise CaptureError(f"the text is empty ({text!r}): there is nothing to capture.")
    return _encoded(tokenizer, parts)


def _from_chat(tokenizer: Any, messages: Sequence[Mapping[str, str]]) -> Sample:
    for message in messages:
        if not isinstance(message, Mapping) or "role" not in message or "content" not in message:
            raise InvalidArgument(f"a chat message is a dict with 'role' and 'content', got {message!r}.")
    if not getattr(tokenizer, "chat_template", None):
        raise CaptureError(
            "this tokenizer has no chat template. Pass the conversation as one text, in the form that the model was trained on."
        )
    asks = messages[-1]["role"] != "assistant"  # then the answer comes next
    text = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=asks)
    return _encoded(tokenizer, [text], add_special_tokens=False)


def _from_words(tokenizer: Any, words: Sequence[str]) -> Sample:
    words = list(words)
    if not any(word.strip() for word in words):
        raise CaptureError(f"the words are empty ({words!r}): there is nothing to capture.")
    encoding = tokenizer(words, is_split_into_words=True)
    ids, special = list(encoding["input_ids"]), _special(tokenizer, encoding["input_ids"])
    pieces = _pieces(tokenizer, ids)
    if getattr(tokenizer, "is_fast", False):
        spans = words_by_numbers([None if s else n for n, s in zip(encoding.word_ids(), special, strict=True)], words)
    else:  # each word's own pieces, one word after the other
        lengths = [len(tokenizer.tokenize(word)) for word in words]
        numbers: list[int | None] = []
        inside = iter([n for n, length in enumerate(lengths) for _ in range(length)])
        numbers = [None if s else next(inside, None) for s in special]
        spans = words_by_numbers(numbers, words)
    return Sample(ids, Tokens(pieces, special, words=spans), encoding.get("token_type_ids"))


def _from_ids(tokenizer: Any, ids: Any) -> Sample:
    numbers = _whole(ids)
    if not numbers:
        raise CaptureError("the list of token ids is empty: there is nothing to capture.")
    if tokenizer is None:
        return Sample(numbers, Tokens([str(i) for i in numbers]))
    special, pieces = _special(tokenizer, numbers), _pieces(tokenizer, numbers)
    return Sample(numbers, Tokens(pieces, special, words=words_by_marks(pieces, special)))


def _whole(ids: Any) -> list[int]:
    numbers = []
    for position, one in enumerate(ids):
        number = whole_number(one)
        if number is None:
            raise InvalidArgument(
                f"token ids are whole numbers, one list of them for an input; at position {position} came {one!r:.40}."
            )
        numbers.append(number)
    return numbers


def target_tokens(tokenizer: Any, text: str | Sequence[int]) -> list[int]:
    """The ids of a target text, with its end token if the tokenizer sets one."""
    if not isinstance(text, str):
        return _whole(text)
    if not text.strip():
        raise CaptureError("the target text is empty. Leave it out to look at the first predicted token.")
    return [int(i) for i in tokenizer(text_target=text)["input_ids"]]


def tokens_of_ids(tokenizer: Any, ids: Sequence[int]) -> Tokens:
    """Labels, special tokens and words of ids alone."""
    return _from_ids(tokenizer, ids).tokens


def _encoded(tokenizer: Any, texts: list[str], *, add_special_tokens: bool = True) -> Sample:
    fast = bool(getattr(tokenizer, "is_fast", False))
    encoding = tokenizer(
        *texts, add_special_tokens=add_special_tokens, **({"return_offsets_mapping": True} if fast else {})
    )
    ids = [int(i) for i in encoding["input_ids"]]
    if not ids:
        raise CaptureError(f"the tokenizer makes no token of {texts[0]!r}: there is nothing to capture.")
    special, pieces = _special(tokenizer, ids), _pieces(tokenizer, ids)
    types = encoding.get("token_type_ids")
    if not fast:
        return Sample(ids, Tokens(pieces, special, words=words_by_marks(pieces, special)), types)
    offsets = [(int(start), int(stop)) for start, stop in encoding["offset_mapping"]]
    sides = [None if s else n for n, s in zip(encoding.sequence_ids(), special, strict=True)]
    words = []
    for number, text in enumerate(texts):
        words += words_by_offsets(offsets, text, [side != number for side in sides])
    source = [
        "" if side is None else texts[side][start:stop] for side, (start, stop) in zip(sides, offsets, strict=True)
    ]
    labels = _readable(tokenizer, pieces, source)
    return Sample(ids, Tokens(labels, special, words=sorted(words)), types)


def _pieces(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    pieces = tokenizer.convert_ids_to_tokens(list(ids))
    return [str(i) if piece is None else piece for i, piece in zip(ids, pieces, strict=True)]


def _special(tokenizer: Any, ids: Sequence[int]) -> list[bool]:
    """Special tokens. The unknown word and the mask stand for words of the text, so they are none."""
    words = {getattr(tokenizer, "unk_token_id", None), getattr(tokenizer, "mask_token_id", None)}
    special = set(getattr(tokenizer, "all_special_ids", ())) - words
    added = getattr(tokenizer, "added_tokens_decoder", {})  # of thousands of tokens, in some
    special |= {i for i in set(map(int, ids)) - words if getattr(added.get(i), "special", False)}
    return [int(i) in special for i in ids]


def _readable(tokenizer: Any, pieces: list[str], source: list[str]) -> list[str]:
    """Byte-level pieces are bytes in disguise ("ä¸Ń"): outside ASCII the text they came from is shown instead."""
    if "ByteLevel" not in str(getattr(tokenizer.backend_tokenizer, "decoder", "")):
        return pieces
    labels = []
    for piece, text in zip(pieces, source, strict=True):
        if not text or text.isascii():
            labels.append(piece)
        else:
            labels.append(("Ġ" if piece.startswith("Ġ") else "") + text.strip())
    return labels


def _cut(sample: Sample, limit: int | None, *, truncate: bool) -> Sample:
    """The sample within the model's limit. Special tokens at the end stay at the end."""
    count = len(sample.ids)
    if limit is None or count <= limit:
        return sample
    if not truncate:
        raise CaptureError(
            f"the input has {count} tokens, the model takes at most {limit}. Shorten it, or pass truncate=True to cut it."
        )
    ending = 0
    while ending < count and sample.tokens.special[count - 1 - ending]:
        ending += 1
    ending = min(ending, limit)
    kept = np.zeros(count, dtype=np.bool_)
    kept[: limit - ending] = True
    kept[count - ending :] = True
    types = None if sample.types is None else [t for t, keep in zip(sample.types, kept, strict=True) if keep]
    ids = [i for i, keep in zip(sample.ids, kept, strict=True) if keep]
    return replace(sample, ids=ids, types=types, tokens=sample.tokens.select(kept))
