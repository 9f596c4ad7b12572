"""What decoders need before their levels are composed, entry by entry."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given

import attnflow as af
from tests.strategies import attention, seeds


def causal(seed: int, n: int = 6) -> af.AttentionStack:
    return af.AttentionStack(attention(np.random.default_rng(seed), (2, 2, n, n), "soft", causal=True))


def with_same_sums(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    found = np.zeros_like(after)
    for i, j in itertools.product(range(len(after)), range(len(after))):
        total = sum(after[i])
        found[i, j] = after[i, j] * sum(before[i]) / total if total > 0 else 0
    return found


@given(seeds())
def test_receptive_field_divides_each_column_by_the_queries_that_see_it(seed: int) -> None:
    stack = causal(seed)
    n = len(stack.tokens)
    graph = af.mix(stack, receptive_field=True, residual=0.4)
    for level, heads in zip(graph.levels, stack.weights, strict=True):
        mean, weighted = heads.mean(0), np.zeros((n, n))
        for i, j in itertools.product(range(n), range(n)):
            weighted[i, j] = mean[i, j] / (n - j)
        np.testing.assert_allclose(level, 0.6 * with_same_sums(mean, weighted) + 0.4 * np.eye(n), atol=1e-12)
    assert graph.options["receptive_field"] is True


@given(seeds())
def test_where_every_query_sees_every_key_the_receptive_field_changes_nothing(seed: int) -> None:
    stack = af.AttentionStack(attention(np.random.default_rng(seed), (2, 2, 5, 5), "soft", causal=False))
    np.testing.assert_allclose(af.mix(stack, receptive_field=True).levels, af.mix(stack).levels, atol=1e-12)


@given(seeds())
def test_windows_are_seen_by_fewer(seed: int) -> None:
    """A sliding window of 2: each key is seen by its own position and the next, the last one by itself."""
    window = np.tri(5) - np.tri(5, k=-2)
    weights = window * np.random.default_rng(seed).random((5, 5))
    weights /= weights.sum(-1, keepdims=True)
    level = af.mix(af.AttentionStack(weights[None, None]), receptive_field=True, residual=None).levels[0]
    expected = weights / np.array([2, 2, 2, 2, 1])
    np.testing.assert_allclose(level, expected / expected.sum(-1, keepdims=True), atol=1e-12)


@given(seeds())
def test_distance_discount(seed: int) -> None:
    stack = causal(seed)
    n = len(stack.tokens)
    for level, heads in zip(af.mix(stack, distance_discount=True).levels, stack.weights, strict=True):
        mean, weighted = heads.mean(0), np.zeros((n, n))
        for i, j in itertools.product(range(n), range(n)):
            weighted[i, j] = mean[i, j] / (abs(i - j) + 1)
        np.testing.assert_allclose(level, 0.5 * with_same_sums(mean, weighted) + 0.5 * np.eye(n), atol=1e-12)


def test_multiplying_rows_by_what_they_see_does_nothing() -> None:
    """As the docs say: rows are made proportions again."""
    weights = causal(0).weights[0, 0]
    scaled = weights * np.arange(1, len(weights) + 1)[:, None]
    np.testing.assert_allclose(scaled / scaled.sum(-1, keepdims=True), weights, atol=1e-12)


@given(seeds())
def test_nobody_takes_from_what_is_set_aside_but_itself(seed: int) -> None:
    stack = causal(seed)
    graph = af.mix(stack, set_aside=[0], residual=None)
    for level, heads in zip(graph.levels, stack.weights, strict=True):
        kept = heads.mean(0)
        kept[1:, 0] = 0
        np.testing.assert_allclose(level, with_same_sums(heads.mean(0), kept), atol=1e-12)
        assert level[0, 0] == 1
    scores = af.rollout(graph).scores[-1]
    assert (scores[1:, 0] == 0).all()


def test_sinks_are_found_level_by_level() -> None:
    """Level 0: everyone looks at the first token. Level 1: at the position before."""
    n = 5
    first = np.full((n, n), 0.0)
    first[:, 0], first[np.arange(n), np.arange(n)] = 0.9, 0.1
    first[0, 0] = 1
    even = np.tri(n) / np.arange(1, n + 1)[:, None]
    stack = af.AttentionStack(np.stack([first, even])[:, None])
    graph = af.mix(stack, set_aside="sinks", residual=None)
    np.testing.assert_allclose(graph.levels[0], np.eye(n), atol=1e-12)
    np.testing.assert_allclose(graph.levels[1][2, :3], [0, 0.5, 0.5], atol=1e-12)  # 1/2, 1/3, 1/4, 1/5: a sink too
    later = np.zeros((n, n))
    later[0, 0] = 1
    later[np.arange(1, n), np.arange(n - 1)] = 0.2
    later[np.arange(1, n), np.arange(1, n)] = 0.8
    none = af.AttentionStack(later[None, None])
    np.testing.assert_allclose(af.mix(none, set_aside="sinks", residual=None).levels[0], later, atol=1e-12)


def test_names_and_mistakes(stack: af.AttentionStack) -> None:
    by_name, by_number = (af.mix(stack, set_aside=chosen) for chosen in ("[CLS]", 0))
    np.testing.assert_array_equal(by_name.levels, by_number.levels)
    assert by_name.options["set_aside"] == "[CLS]"
    with pytest.raises(af.errors.InvalidArgument, match="no token is 'nobody'"):
        af.mix(stack, set_aside="nobody")
    with pytest.raises(af.errors.InvalidArgument, match="names every token"):
        af.mix(stack, set_aside=range(5))
    with pytest.raises(af.errors.InvalidArgument, match=r"got 'measured'. Rules that measure it in the model"):
        af.mix(stack, residual="measured")
    with pytest.raises(
        af.errors.InvalidArgument, match=r"unknown edge rule 'alti'.*need the model: attnflow.capture.graph"
    ):
        af.mix(stack, edges="alti")
    assert "set_aside" not in af.mix(stack).options
