"""Sub-words are tied to words by offsets, whatever the tokenizer."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnflow.capture._inputs import kind_of, samples_of
from attnflow.capture._words import words_by_marks, words_by_numbers, words_by_offsets
from tests.capture import texts

TEXT = "The keys aren't café 中国 well-known: 3.14!"
WORDS = ["The", "keys", "aren't", "café", "中", "国", "well-known", ":", "3.14", "!"]
TOKENIZERS = {"WordPiece": texts.wordpiece, "byte-level": texts.byte_level, "SentencePiece": texts.sentencepiece}


def sample(tokenizer: Any, inputs: Any, *, words: bool = False) -> Any:
    [found] = samples_of(inputs, kind_of(inputs, words=words), tokenizer, limit=None, truncate=False)
    return found


@pytest.mark.parametrize("name", TOKENIZERS)
def test_the_same_words_from_every_tokenizer(name: str) -> None:
    tokens = sample(TOKENIZERS[name](), TEXT).tokens
    assert [word.label for word in tokens.words] == WORDS
    assert not tokens.special[[i for word in tokens.words for i in range(word.start, word.stop)]].any()


def test_a_piece_that_reaches_over_two_words_joins_them() -> None:
    offsets, text = [(0, 3), (3, 9), (9, 12)], "on the table"
    assert words_by_offsets(offsets, text, [False] * 3) == [(0, 1, "on"), (1, 3, "the table")]
    assert words_by_offsets([(0, 2), (2, 6), (6, 12)], text, [False] * 3) == [
        (0, 1, "on"),
        (1, 2, "the"),
        (2, 3, "table"),
    ]


def test_bytes_of_one_character_are_one_word() -> None:
    tokenizer = texts.byte_level(258)  # no merges: three tokens a character
    tokens = sample(tokenizer, "中国").tokens
    assert [(word.start, word.stop, word.label) for word in tokens.words] == [(0, 3, "中"), (3, 6, "国")]
    assert set(tokens.labels) == {"中", "国"}  # and not the bytes in disguise


def test_a_mark_of_a_word_start_that_stands_alone_belongs_to_the_word() -> None:
    assert words_by_offsets([(2, 3), (3, 4), (4, 5)], "a  b c"[:5], [False] * 3) == [(0, 2, "b")]


def test_line_breaks_are_in_no_word() -> None:
    assert words_by_offsets([(0, 1), (1, 2), (2, 3)], "a\nb", [False] * 3) == [(0, 1, "a"), (2, 3, "b")]


def test_special_tokens_are_marked_and_unknown_ones_are_words() -> None:
    tokens = sample(texts.wordpiece(), "keys ☃ [MASK]").tokens
    assert tokens.labels[0] == "[CLS]"
    assert tokens.labels[-1] == "[SEP]"
    assert tokens.special.tolist() == [True] + [False] * (len(tokens) - 2) + [True]
    assert "[UNK]" in tokens.labels
    assert "[MASK]" in tokens.labels


def test_pairs_have_the_words_of_both() -> None:
    tokens = sample(texts.wordpiece(), ("The keys", "are café")).tokens
    assert [word.label for word in tokens.words] == ["The", "keys", "are", "café"]


def test_words_given_stay_the_words() -> None:
    given_words = ["The", "keys", "aren't", "中国"]
    for make in TOKENIZERS.values():
        tokens = sample(make(), given_words, words=True).tokens
        assert [word.label for word in tokens.words] == given_words


def test_chats_are_one_text() -> None:
    messages = [{"role": "user", "content": "The keys"}]
    tokens = sample(texts.byte_level(), messages).tokens
    assert [word.label for word in tokens.words] == ["<", "user", ">", "The", "keys", "<", "assistant", ">"]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["▁The", "▁key", "s", ","], [(0, 1), (1, 3), (3, 4)]),
        (["the", "cab", "##inets", "."], [(0, 1), (1, 3), (3, 4)]),
        (["the</w>", "cab", "inets</w>", ".</w>"], [(0, 1), (1, 3), (3, 4)]),
        (["Ġthe", "Ġcab", "inets"], [(0, 1), (1, 3)]),
    ],
)
def test_without_offsets_marks_tell(pieces: list[str], expected: list[tuple[int, int]]) -> None:
    assert words_by_marks(pieces, [False] * len(pieces)) == expected


def test_numbers_of_words_become_spans() -> None:
    assert words_by_numbers([None, 0, 0, 1, None], ["a", "b"]) == [(1, 3, "a"), (3, 4, "b")]


@given(text=st.text(alphabet="ab 中é'.-\n", min_size=1, max_size=12), cuts=st.sets(st.integers(1, 11)))
def test_words_are_in_order_and_cover_all_that_is_written(text: str, cuts: set[int]) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    offsets = list(itertools.pairwise(edges))
    spans = words_by_offsets(offsets, text, [False] * len(offsets))
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
    covered = {i for start, stop, _ in spans for i in range(start, stop)}
    for token, (start, stop) in enumerate(offsets):
        if text[start:stop].strip():
            assert token in covered
    letters = "".join(label for *_, label in spans)
    assert re.sub(r"\s", "", letters) == re.sub(r"\s", "", text)
