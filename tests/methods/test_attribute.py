from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidArgument, InvalidAttention, UnknownMethod


def test_options_find_their_way(stack: af.AttentionStack) -> None:
    found = af.attribute(stack, "rollout", heads="max", residual=0.2, queries=[0], levels=[-1])
    expected = af.rollout(af.mix(stack, heads="max", residual=0.2), queries=[0], levels=[-1])
    assert (found.scores == expected.scores).all()
    assert found.options["heads"] == "max"
    assert found.options["residual"] == 0.2


def test_a_function_is_a_method(graph: af.AttentionGraph) -> None:
    def halved(graph: af.AttentionGraph, queries: Any = None, levels: Any = None) -> af.Attribution:
        return af.rollout(graph, queries, levels)

    assert (af.attribute(graph, halved, queries=[1]).scores == af.rollout(graph, queries=[1]).scores).all()


def test_every_method_runs_by_name(stack: af.AttentionStack) -> None:
    for name in af.METHODS:
        found = af.attribute(stack, name, queries=[0], levels=[-1])
        assert (found.method, found.scores.shape) == (name, (1, 1, 5))


def test_unknown_method_lists_what_exists(graph: af.AttentionGraph) -> None:
    with pytest.raises(UnknownMethod, match="unknown method 'rolout'. Did you mean 'rollout'\\? Known: .*raw.*rollout"):
        af.attribute(graph, "rolout")
    with pytest.raises(LookupError):
        af.attribute(graph, "rolout")


@pytest.mark.parametrize(
    ("option", "message"),
    [({"querys": [0]}, "unknown option 'querys'. Did you mean 'queries'"), ({"head": 1}, "Did you mean 'heads'")],
)
def test_unknown_option(stack: af.AttentionStack, option: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        af.attribute(stack, "rollout", **option)
    assert message in str(error.value)
    with pytest.raises(InvalidArgument):
        af.by_head(stack, "rollout", **option)


def test_a_graph_cannot_be_mixed_again(graph: af.AttentionGraph) -> None:
    with pytest.raises(InvalidArgument, match="mixed already, so heads cannot apply"):
        af.attribute(graph, "rollout", heads="max")


def test_bare_arrays_are_refused() -> None:
    with pytest.raises(InvalidAttention, match="got a ndarray. Wrap arrays in AttentionStack"):
        af.attribute(np.ones((1, 1, 2, 2)) / 2, "rollout")  # type: ignore[arg-type]


def test_by_head_own_chain(stack: af.AttentionStack) -> None:
    for head, found in enumerate(af.by_head(stack, "rollout", below="own", residual=None, level=1)):
        np.testing.assert_allclose(found.scores[0], stack.weights[1, head] @ stack.weights[0, head], atol=1e-14)
        assert (found.options["head"], found.options["below"]) == (head, "own")


def test_by_head_works_with_every_method_and_all_options(stack: af.AttentionStack) -> None:
    for name in af.METHODS:
        found = af.by_head(stack, name, level=1, drop_special=True, edges="chefer", queries=[0])
        assert [a.scores.shape for a in found] == [(1, 1, 3)] * 2
        assert {a.levels for a in found} == {(1,)}


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"level": 3}, "there is no level 3"),
        ({"below": "mix"}, "Did you mean 'mixed'"),
        ({"levels": [0]}, "give level=, not levels="),
        ({"below": "own", "heads": "max"}, "every head goes its own way"),
        ({"heads": "max"}, ""),
    ],
)
def test_by_head_refuses(stack: af.AttentionStack, choice: dict[str, Any], message: str) -> None:
    if not message:  # below the level, any way to mix heads is fine
        assert len(af.by_head(stack, "rollout", **choice)) == 2
        return
    with pytest.raises(InvalidArgument) as error:
        af.by_head(stack, "rollout", **choice)
    assert message in str(error.value)


@pytest.mark.parametrize("method", [["rollout"], None, 3])
def test_what_is_no_method(graph: af.AttentionGraph, method: Any) -> None:
    with pytest.raises(UnknownMethod, match="unknown method"):
        af.attribute(graph, method)
    with pytest.raises(InvalidArgument, match="is no method"):
        af.attribute(graph, max)


def test_by_head_does_not_look_above_its_level(stack: af.AttentionStack) -> None:
    seen = []

    def counting(heads: Any) -> Any:
        seen.append(heads)
        return heads.mean(0)

    af.by_head(stack, "raw", level=0, heads=counting)
    assert seen == []  # nothing below level 0, and at it each head is alone
    af.by_head(stack, "raw", level=2, heads=counting)
    assert len(seen) == 2
