from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import attnflow as af
from attnflow import evaluate
from attnflow.errors import InvalidArgument


def graph_of(*levels: object) -> af.AttentionGraph:
    return af.AttentionGraph(np.array(levels, dtype=np.float64))


UNIFORM = np.full((4, 4), 0.25)


def test_entropy_is_one_for_uniform_and_zero_for_one_input() -> None:
    found = evaluate.entropy([af.raw(graph_of(UNIFORM, np.eye(4)), [0])])
    assert found[0].tolist() == pytest.approx([1.0, 0.0])
    halves = np.tile([0.5, 0.5, 0, 0], (4, 1))
    assert evaluate.entropy([af.raw(graph_of(halves))], query=2)[0, 0] == pytest.approx(0.5)
    assert np.isnan(evaluate.entropy([af.raw(graph_of(np.ones((1, 1))), [0])])[0, 0])


def test_entropy_is_scipys_and_does_not_need_rows_that_sum_to_one(rng: np.random.Generator) -> None:
    flows = rng.random((3, 6, 6))
    found = evaluate.entropy([af.raw(af.AttentionGraph(flows), [1])])
    assert found[0].tolist() == pytest.approx([stats.entropy(level[1]) / np.log(6) for level in flows])


def test_top_mass_by_hand() -> None:
    row = np.tile([0.1, 0.4, 0.2, 0.3], (4, 1))
    assert evaluate.top_mass([af.raw(graph_of(row, UNIFORM), [0])], k=2)[0].tolist() == pytest.approx([0.7, 0.5])
    assert evaluate.top_mass([af.raw(graph_of(row), [0])], k=9)[0, 0] == pytest.approx(1)
    with pytest.raises(InvalidArgument, match="k of at least 1"):
        evaluate.top_mass([af.raw(graph_of(row), [0])], k=0)


def test_diagonal_mass_by_hand() -> None:
    half = 0.5 * UNIFORM + 0.5 * np.eye(4)
    found = evaluate.diagonal_mass([af.rollout(graph_of(half, half)), af.rollout(graph_of(np.eye(4), UNIFORM))])
    assert found.tolist() == [pytest.approx([0.625, 0.25 + 0.75 / 4]), pytest.approx([1.0, 0.25])]
    one = af.rollout(graph_of(np.eye(4)))
    elsewhere = af.Attribution(one.scores[:, :1, 1:], one.tokens, "rollout", (0,), (0,), (1, 2, 3))
    with pytest.raises(InvalidArgument, match="no diagonal"):
        evaluate.diagonal_mass([elsewhere])


def test_agreement_is_one_at_the_first_level_and_scipys_above(rng: np.random.Generator) -> None:
    graph = af.AttentionGraph(0.5 * rng.dirichlet(np.ones(8), size=(3, 8)) + 0.5 * np.eye(8))
    one, other = af.raw(graph, [0]), af.rollout(graph, [0])
    found = evaluate.agreement([one], [other])
    assert found[0, 0] == 1
    assert found[0, 2] == pytest.approx(stats.kendalltau(one.scores[2, 0], other.scores[2, 0]).statistic)
    without = evaluate.agreement([one], [other], statistic="spearman", count_own=False)
    assert without[0, 2] == pytest.approx(stats.spearmanr(one.scores[2, 0, 1:], other.scores[2, 0, 1:]).statistic)


def test_signed_scores_have_no_shares(graph: af.AttentionGraph) -> None:
    found = af.rollout(graph, [0])
    signed = af.Attribution(-found.scores, found.tokens, "signed", found.levels, found.queries, found.inputs)
    with pytest.raises(InvalidArgument, match="signed"):
        evaluate.entropy([signed])
