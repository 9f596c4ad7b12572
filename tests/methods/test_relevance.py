"""Relevance against the equations of Chefer et al. 2021, one loop for each index."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import attnflow as af
from tests.strategies import seeds

Matrix = NDArray[np.float64]


def times(a: Matrix, b: Matrix) -> Matrix:
    """Row by column, number by number."""
    found = np.zeros((len(a), b.shape[1]))
    for i, j in itertools.product(range(len(a)), range(b.shape[1])):
        for k in range(len(b)):
            found[i, j] += a[i, k] * b[k, j]
    return found


def bar(relevance: Matrix) -> Matrix:
    """Eq. 8, 9."""
    found = np.eye(len(relevance))
    for i in range(len(relevance)):
        total = sum(relevance[i, j] - (i == j) for j in range(len(relevance)))
        for j in range(len(relevance)):
            with np.errstate(invalid="ignore", divide="ignore"):
                found[i, j] += (relevance[i, j] - (i == j)) / total
    return found


def without_nan(matrix: Matrix) -> Matrix:
    return np.where(np.isnan(matrix), 0, matrix)


class Twin:
    """The four relevance maps of two sequences, updated equation by equation."""

    def __init__(self, s: int, q: int) -> None:
        self.ss, self.qq, self.sq, self.qs = np.eye(s), np.eye(q), np.zeros((s, q)), np.zeros((q, s))

    def self_s(self, attention: Matrix) -> None:
        self.ss, self.sq = self.ss + times(attention, self.ss), self.sq + times(attention, self.sq)

    def self_q(self, attention: Matrix) -> None:
        self.qq, self.qs = self.qq + times(attention, self.qq), self.qs + times(attention, self.qs)

    def cross(self, s_to_q: Matrix | None, q_to_s: Matrix | None) -> None:
        old = self.ss, self.qq, self.sq, self.qs
        if s_to_q is not None:
            self.sq = self.sq + without_nan(times(bar(old[0]).T, times(s_to_q, bar(old[1]))))
            self.ss = self.ss + times(s_to_q, old[3])
        if q_to_s is not None:
            self.qs = self.qs + without_nan(times(bar(old[1]).T, times(q_to_s, bar(old[0]))))
            self.qq = self.qq + times(q_to_s, old[2])

    @property
    def whole(self) -> Matrix:
        """Both sequences on one axis, q first."""
        return np.block([[self.qq, self.qs], [self.sq, self.ss]])


def level(
    n: int, s: int, *, ss: Any = None, qq: Any = None, sq: Any = None, qs: Any = None
) -> tuple[Matrix, NDArray[np.bool_]]:
    """A level of the joint graph, and its passive rows. The first n − s positions are q's."""
    q = n - s
    matrix = np.zeros((n, n))
    passive = np.ones(n, dtype=np.bool_)
    for block, rows, columns in (
        (ss, slice(q, n), slice(q, n)),
        (qq, slice(0, q), slice(0, q)),
        (sq, slice(q, n), slice(0, q)),
        (qs, slice(0, q), slice(q, n)),
    ):
        if block is not None:
            matrix[rows, columns] = block
            passive[rows] = False
    matrix[passive, passive] = 1
    return matrix, passive


def positive(rng: np.random.Generator, rows: int, columns: int, sparse: bool) -> Matrix:
    """Mean over heads of (∇A ⊙ A)⁺: not proportions; whole rows may be zero."""
    made = np.maximum(rng.normal(size=(rows, columns)), 0)
    if sparse:
        made[rng.random(rows) < 0.4] = 0
    return made


@given(seeds(), st.integers(1, 5), st.integers(1, 4), st.booleans())
def test_one_sequence(seed: int, n: int, layers: int, sparse: bool) -> None:
    rng = np.random.default_rng(seed)
    levels = [positive(rng, n, n, sparse) for _ in range(layers)]
    twin = Twin(n, 1)
    found = af.relevance(af.AttentionGraph(levels))
    for number, matrix in enumerate(levels):
        twin.self_s(matrix)
        np.testing.assert_allclose(found.scores[number], twin.ss, rtol=1e-12)
    chosen = af.relevance(af.AttentionGraph(levels), queries=[n - 1], levels=[layers - 1])
    np.testing.assert_allclose(chosen.scores[0], found.scores[-1, [n - 1]])


@given(seeds(), st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_encoder_and_decoder(seed: int, s: int, q: int, sparse: bool) -> None:
    """Nothing flows back into the encoder, so eq. 11 adds nothing to the decoder's own map."""
    rng, n, twin = np.random.default_rng(seed), s + q, Twin(s, q)
    levels, kinds = [], []
    for _ in range(2):
        matrix = positive(rng, q, q, sparse)
        levels.append(level(n, s, qq=matrix))
        kinds.append("encoder self")
        twin.self_q(matrix)
    for _ in range(2):
        matrix, cross = positive(rng, s, s, sparse), positive(rng, s, q, sparse)
        levels += [level(n, s, ss=matrix), level(n, s, sq=cross)]
        kinds += ["decoder self", "decoder cross"]
        twin.self_s(matrix)
        before = twin.ss
        twin.cross(cross, None)
        assert (twin.ss == before).all()
    graph = af.AttentionGraph([m for m, _ in levels], kinds=kinds, passive=np.array([p for _, p in levels]))
    np.testing.assert_allclose(af.relevance(graph, levels=[-1]).scores[0], twin.whole, rtol=1e-10, atol=1e-12)


@given(seeds(), st.integers(1, 4), st.integers(1, 4), st.booleans(), st.booleans())
def test_two_sequences_that_attend_to_each_other(seed: int, s: int, q: int, sparse: bool, apart: bool) -> None:
    """Both directions from the old values, then each sequence by itself."""
    rng, n, twin = np.random.default_rng(seed), s + q, Twin(s, q)
    levels, kinds = [], []
    for _ in range(2):
        there, back = positive(rng, s, q, sparse), positive(rng, q, s, sparse)
        levels.append(level(n, s, sq=there, qs=back))
        kinds.append("cross")
        twin.cross(there, back)
        one, other = positive(rng, s, s, sparse), positive(rng, q, q, sparse)
        levels += [level(n, s, ss=one), level(n, s, qq=other)] if apart else [level(n, s, ss=one, qq=other)]
        kinds += ["self", "self"] if apart else ["self"]
        twin.self_s(one)
        twin.self_q(other)
    graph = af.AttentionGraph([m for m, _ in levels], kinds=kinds, passive=np.array([p for _, p in levels]))
    found = af.relevance(graph, levels=[-1], first=None if apart else q)
    np.testing.assert_allclose(found.scores[0], twin.whole, rtol=1e-10, atol=1e-12)
    if not apart:
        with pytest.raises(af.errors.InvalidArgument, match="nothing says where the first ends"):
            af.relevance(graph)


def test_a_row_without_relevance_voids_what_is_added_or_stays_the_identitys() -> None:
    """R = I gives 0 / 0: the released code sets what comes of it to 0; the other choice adds Ā itself."""
    cross = np.array([[0.5, 0.25], [0.125, 1.0]])
    matrix, passive = level(4, 2, sq=cross)
    graph = af.AttentionGraph([matrix], kinds=["decoder cross"], passive=passive[None])
    assert (af.relevance(graph).scores[0] == np.eye(4)).all()
    np.testing.assert_array_equal(af.relevance(graph, zero_rows="identity").scores[0][2:, :2], cross)


def test_by_name_it_brings_the_mixing_it_stands_on(stack: af.AttentionStack) -> None:
    assert stack.gradients is not None
    found = af.attribute(stack, "relevance")
    expected = np.eye(len(stack.tokens))
    for weights, gradients in zip(stack.weights, stack.gradients, strict=True):
        expected = expected + np.maximum(weights * gradients, 0).mean(0) @ expected
    np.testing.assert_allclose(found.scores[-1], expected)
    assert found.options["residual"] is None
    assert af.attribute(stack, "relevance", edges="attention").options["edges"] == "attention"


def test_graphs_that_it_cannot_read(stack: af.AttentionStack) -> None:
    with pytest.raises(af.errors.InvalidArgument, match="relevance adds the identity itself"):
        af.relevance(af.mix(stack))
    with pytest.raises(af.errors.InvalidAttention, match="signed"):
        af.relevance(af.AttentionGraph(-np.ones((1, 2, 2)), signed=True))
    with pytest.raises(af.errors.InvalidArgument, match="zero_rows, 'zero'"):
        af.relevance(af.AttentionGraph(np.ones((1, 2, 2))), zero_rows="zero")
    with pytest.raises(af.errors.InvalidArgument, match="first is the number of positions"):
        af.relevance(af.AttentionGraph(np.ones((1, 2, 2))), first=2)
