"""Which tokens make a word, from where the tokenizer says that each token came from.

The marks of sub-words (##, Ġ, ▁) differ from tokenizer to tokenizer, and some have none; character offsets do not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# A word: letters and digits, with apostrophes, hyphens and decimal points inside. Scripts without spaces (Han, Kana,
# Thai, Lao, Khmer, Burmese) go by the character, marks included; anything else that is not a space stands by itself.
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
)
_WORD = re.compile(
    rf"[{_SPACELESS}][\u0300-\u036f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u3099\u309a]*"
    rf"|[^\W{_SPACELESS}]+(?:['’\-.,·](?=[^\W{_SPACELESS}])[^\W{_SPACELESS}]+)*"
    r"|[^\w\s]"
)

Span = tuple[int, int]


def words_by_offsets(offsets: Sequence[Span], text: str, taken: Sequence[bool]) -> list[tuple[int, int, str]]:
    """Spans (start, stop, label) of tokens. `taken` marks tokens that are in no word: special ones, another text's.

    A token that reaches over two words joins them; two tokens of one character (bytes) share its word.
    """
    owner: list[int] = []  # the word at each character, -1 between words
    edges = [match.span() for match in _WORD.finditer(text)]
    owner = [-1] * len(text)
    for number, (start, stop) in enumerate(edges):
        owner[start:stop] = [number] * (stop - start)
    groups: list[list[int]] = []  # [first token, after last, first word, last word]
    for token, ((start, stop), skip) in enumerate(zip(offsets, taken, strict=True)):
        if skip:
            continue
        touched = [word for word in owner[start:stop] if word >= 0]
        if not touched:
            touched = _blank(text, stop, owner)
        if groups and groups[-1][1] == token and touched and touched[0] <= groups[-1][3]:
            groups[-1][1], groups[-1][3] = token + 1, max(groups[-1][3], touched[-1])
        elif touched:
            groups.append([token, token + 1, touched[0], touched[-1]])
    return [(first, last, text[edges[low][0] : edges[high][1]]) for first, last, low, high in groups]


def _blank(text: str, stop: int, owner: Sequence[int]) -> list[int]:
    """The word that follows at once on a token of spaces only, as the ▁ before a word; a line break is in no word."""
    if stop < len(text) and owner[stop] >= 0 and "\n" not in text[:stop][-1:]:
        return [owner[stop]]
    return []


def words_by_numbers(numbers: Sequence[int | None], labels: Sequence[str]) -> list[tuple[int, int, str]]:
    """Spans from the word number of each token, for input that came as words; None is in no word."""
    spans: list[tuple[int, int, str]] = []
    last: int | None = None
    for token, number in enumerate(numbers):
        if number is not None and spans and number == last and spans[-1][1] == token:
            spans[-1] = (spans[-1][0], token + 1, spans[-1][2])
        elif number is not None:
            spans.append((token, token + 1, labels[number] if number < len(labels) else str(number)))
        last = number
    return spans


def words_by_marks(pieces: Sequence[str], taken: Sequence[bool]) -> list[tuple[int, int]]:
    """Spans for a tokenizer that knows no offsets (Marian's): by its marks, if it has any."""
    opening = any(piece.startswith(("▁", "Ġ")) for piece in pieces)
    ending = any(piece.endswith("</w>") for piece in pieces)
    spans: list[tuple[int, int]] = []
    closed = True
    for token, (piece, skip) in enumerate(zip(pieces, taken, strict=True)):
        if skip:
            closed = True
            continue
        if opening:
            starts = piece.startswith(("▁", "Ġ")) or not re.search(r"\w", piece)
        elif ending:
            starts = closed
        else:
            starts = not piece.startswith("##")
        if starts or closed or not spans:
            spans.append((token, token + 1))
        else:
            spans[-1] = (spans[-1][0], token + 1)
        closed = (ending and piece.endswith("</w>")) or not re.search(r"\w", piece)
    return spans
