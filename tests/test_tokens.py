from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import attnflow as af
from attnflow.errors import InvalidArgument
from attnflow.tokens import Word, plain


@pytest.fixture
def tokens() -> af.Tokens:
    return af.Tokens(
        ["[CLS]", "cab", "##inets", "p0", "p1", "p2", "p3", "[PAD]"],
        special=[True] + [False] * 6 + [True],
        padding=[False] * 7 + [True],
        words=[(1, 3)],
        grids=[af.PatchGrid(2, 2, offset=3)],
    )


def test_words_are_labelled_without_marks(tokens: af.Tokens) -> None:
    assert tokens.words == (Word(1, 3, "cabinets"),)
    assert af.Tokens(["Ġthe", "▁key", "low@@", "est</w>"]).labels[0] == "Ġthe"
    assert [plain(label) for label in ("Ġthe", "▁key", "low@@", "est</w>", "##s", "##", " ")] == [
        "the", "key", "low", "est", "s", "##", " ",
    ]  # fmt: skip


def test_a_position_by_index_or_label(tokens: af.Tokens) -> None:
    assert [tokens.position(q) for q in (0, -1, "[CLS]", "inets", "##inets")] == [0, 7, 0, 2, 2]
    assert tokens.positions(None) == tuple(range(8))
    assert tokens.positions(["cab", -2]) == (1, 6)
    assert tokens.positions("cab") == (1,)
    assert tokens.positions(np.int64(3)) == (3,)  # type: ignore[arg-type]


def test_a_label_that_names_two_positions_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="'the' is at positions 0, 2: give the position"):
        af.Tokens(["the", "key", "the"]).position("the")
    assert af.Tokens(["the", "key", "##the"]).position("the") == 0  # an exact label comes first


def test_select_crops_words_and_keeps_whole_grids(tokens: af.Tokens) -> None:
    kept = ~tokens.padding
    kept[0] = False
    cropped = tokens.select(kept)
    assert cropped.labels == ("cab", "##inets", "p0", "p1", "p2", "p3")
    assert cropped.words == (Word(0, 2, "cabinets"),)
    assert cropped.grids == (af.PatchGrid(2, 2, offset=2),)
    assert not cropped.special.any()
    kept[[2, 4]] = False
    thinner = tokens.select(kept)
    assert thinner.words == (Word(0, 1, "cabinets"),)
    assert thinner.grids == ()


def test_of_takes_labels_or_numbers(tokens: af.Tokens) -> None:
    assert af.Tokens.of(None, 3).labels == ("0", "1", "2")
    assert af.Tokens.of(["a", "b"], 2).labels == ("a", "b")
    assert af.Tokens.of(tokens, 8) is tokens
    with pytest.raises(InvalidArgument, match="got 2 tokens for attention over 3 positions"):
        af.Tokens.of(["a", "b"], 3)


@given(st.lists(st.text(max_size=5), min_size=1, max_size=6), st.data())
def test_json_round_trip(labels: list[str], data: st.DataObject) -> None:
    mask = st.lists(st.booleans(), min_size=len(labels), max_size=len(labels))
    tokens = af.Tokens(
        labels, data.draw(mask), data.draw(mask), words=[(0, 1, "w")], grids=[af.PatchGrid(1, len(labels))]
    )
    assert af.Tokens.from_json(tokens.to_json()) == tokens
    assert hash(af.Tokens.from_json(tokens.to_json())) == hash(tokens)


def test_equality_sees_everything(tokens: af.Tokens) -> None:
    assert tokens != af.Tokens(tokens.labels)
    assert tokens != "tokens"


def test_masks_are_read_only_copies() -> None:
    mask = np.array([True, False])
    tokens = af.Tokens(["a", "b"], special=mask)
    mask[:] = False
    assert tokens.special.tolist() == [True, False]
    with pytest.raises(ValueError, match="read-only"):
        tokens.special[0] = False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": "the key"}, "got the string 'the key'"),
        ({"labels": ["a", 1]}, "token 1 must be a string, got 1"),
        ({"labels": ["a"], "special": [True, False]}, "special mask must be 1 booleans"),
        ({"labels": ["a"], "padding": [2]}, "padding mask must be 1 booleans"),
        ({"labels": ["a", "b"], "words": [(1, 3)]}, "within 2 tokens; got (1, 3)"),
        ({"labels": ["a", "b"], "words": [(1, 1)]}, "not empty"),
        ({"labels": ["a", "b"], "words": [(0, 2), (1, 2)]}, "got (1, 2) after position 2"),
        ({"labels": ["a", "b"], "words": [("a", "b")]}, "a word is (start, stop)"),
        ({"labels": ["a", "b"], "words": [3]}, "a word is (start, stop)"),
        ({"labels": ["a", "b"], "grids": [(1, 1, 0)]}, "grids are PatchGrid(rows, columns, offset)"),
        ({"labels": ["a", "b"], "grids": [af.PatchGrid(1, 3)]}, "ends at position 3, but there are 2 tokens"),
    ],
)
def test_bad_input(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        af.Tokens(**arguments)
    assert message in str(error.value)


@pytest.mark.parametrize("shape", [(0, 1, 0), (1, 0, 0), (1, 1, -1), (1.5, 2, 0), ("a", 2, 0)])
def test_bad_grid(shape: tuple[Any, Any, Any]) -> None:
    with pytest.raises(InvalidArgument, match="a patch grid needs"):
        af.PatchGrid(*shape)


def test_bad_positions(tokens: af.Tokens) -> None:
    with pytest.raises(InvalidArgument, match="a position is a whole number, got True"):
        tokens.position(True)
    with pytest.raises(InvalidArgument, match="no token is 'cat'. Did you mean 'cab'"):
        tokens.position("cat")


def test_bad_collections(tokens: af.Tokens) -> None:
    with pytest.raises(InvalidArgument, match="a list of labels, got 5"):
        af.Tokens.of(5, 3)  # type: ignore[arg-type]
    assert af.Tokens.of((label for label in "abc"), 3).labels == ("a", "b", "c")  # type: ignore[arg-type]
    assert tokens.positions(np.array(1)) == (1,)
    with pytest.raises(InvalidArgument, match="a query is a whole number"):
        tokens.positions([np.array(1.5)])  # type: ignore[list-item]
