from __future__ import annotations

import builtins
import dataclasses
from typing import Any

import numpy as np
import pytest

import attnflow as af
from attnflow.attribution import Attribution, Saturation
from attnflow.errors import InvalidArgument, InvalidAttention, MissingExtra


@pytest.fixture
def found(graph: af.AttentionGraph) -> Attribution:
    return af.rollout(graph, queries=["[CLS]", "cab", "##inets"], levels=[0, 2])


def test_of_finds_a_row_by_position_or_token(found: Attribution) -> None:
    assert (found.of("cab") == found.scores[1, 1]).all()
    assert (found.of(-3, level=0) == found.scores[0, 1]).all()
    assert (found.of(2, level=2) == found.of(2, level=-1)).all()
    assert (found.of(2, level=-2) == found.of(2, level=0)).all()


def test_top_names_the_largest(found: Attribution) -> None:
    best = found.top(2, "cab")
    row = found.of("cab")
    assert [score for _, score in best] == sorted(row, reverse=True)[:2]
    assert [found.tokens.labels.index(token) for token, _ in best] == np.argsort(-row)[:2].tolist()
    assert len(found.top(99, 0)) == 5


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda a: a.of("the"), "query 'the' (position 1) was not asked for; there are: 0, 2, 3"),
        (lambda a: a.of(9), "there is no position 9"),
        (lambda a: a.of(0, level=1), "there is no level 1 in this attribution; there are: 0, 2"),
        (lambda a: a.of(0, level=-3), "there is no level -3"),
        (lambda a: a.top(0, 0), "top needs a whole number from 1, got 0"),
    ],
)
def test_what_was_not_asked_for(found: Attribution, ask: Any, message: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        ask(found)
    assert message in str(error.value)


def test_words_add_inputs_up_and_average_queries(found: Attribution) -> None:
    words = found.words()
    assert words.tokens.labels == ("[CLS]", "the", "cabinets", "[SEP]")
    assert words.tokens.special.tolist() == [True, False, False, True]
    assert words.queries == (0, 2)
    np.testing.assert_allclose(words.of("[CLS]")[2], found.of(0)[2:4].sum())
    np.testing.assert_allclose(words.of("cabinets")[1], (found.of(2) + found.of(3))[1] / 2)
    np.testing.assert_allclose(words.scores.sum(-1), 1)
    np.testing.assert_allclose(words.words().scores, words.scores)
    with pytest.raises(InvalidArgument, match="know no words"):
        dataclasses.replace(found, tokens=af.Tokens(found.tokens.labels)).words()


def test_words_leave_image_patches_where_they_are() -> None:
    tokens = af.Tokens(["a", "##b", "p", "q"], words=[(0, 2)], grids=[af.PatchGrid(1, 2, 2)])
    assert af.raw(af.AttentionGraph([np.eye(4)], tokens)).words().tokens.grids == (af.PatchGrid(1, 2, 1),)


def test_frame_has_a_row_for_each_score(found: Attribution) -> None:
    pytest.importorskip("pandas")
    frame = found.to_frame()
    assert list(frame) == ["level", "level_name", "query", "query_token", "input", "input_token", "score"]
    assert len(frame) == found.scores.size
    row = frame.iloc[-1]
    assert (row["level"], row["query_token"], row["input_token"]) == (2, "##inets", "[SEP]")
    assert row["score"] == found.scores[-1, -1, -1]


def test_frame_without_pandas_names_the_command(found: Attribution, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_pandas(name: str, *rest: Any) -> Any:
        if name == "pandas":
            raise ImportError
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(MissingExtra, match="pip install pandas"):
        found.to_frame()


def test_is_frozen(found: Attribution) -> None:
    with pytest.raises(ValueError, match="read-only"):
        found.scores[0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.method = "other"  # type: ignore[misc]
    assert repr(found) == "Attribution(rollout: 2 levels × 3 queries × 5 inputs)"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"scores": np.ones((2, 3, 4))}, InvalidAttention, "must have the shape (levels, queries, inputs) (2, 3, 5)"),
        ({"scores": np.full((2, 3, 5), np.nan)}, InvalidAttention, "NaN"),
        ({"scores": "x"}, InvalidAttention, "real numbers"),
        ({"queries": (0, 1, 5)}, InvalidArgument, "there is no query 5"),
        ({"inputs": (0, 1, 2, 3, 9)}, InvalidArgument, "there is no input 9"),
        ({"level_names": ("a",)}, InvalidArgument, "2 levels need as many level names"),
    ],
)
def test_bad_input(found: Attribution, change: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error) as caught:
        dataclasses.replace(found, **change)
    assert message in str(caught.value)


def test_saturation_is_kept(found: Attribution) -> None:
    assert found.saturation is None
    shares = Saturation(query=(0.1, 0.5), input=(0.2, 0.3), either=(0.3, 0.7))
    assert dataclasses.replace(found, saturation=shares).saturation == shares


def test_chosen_inputs_are_followed_everywhere(found: Attribution) -> None:
    some = dataclasses.replace(found, scores=found.scores[:, :, [1, 3]], inputs=(1, 3))
    row = some.of("cab")
    assert some.top(1, "cab") == [(some.tokens.labels[(1, 3)[int(row.argmax())]], row.max())]
    assert some.columns()["input_token"][:2] == ["the", "##inets"]
    assert some.words().inputs == (1, 2)
    np.testing.assert_allclose(some.words().of("[CLS]"), some.of(0))
    assert some.words().options["words"] is True


def test_ties_come_in_the_order_of_the_text() -> None:
    equal = af.raw(af.AttentionGraph(np.full((1, 3, 3), 1 / 3), ["a", "b", "c"]))
    assert [token for token, _ in equal.top(3, "a")] == ["a", "b", "c"]
