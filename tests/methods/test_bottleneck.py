"""bottleneck: every value is proved by the flow and the cut that come with it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given

import attnflow as af
from tests.certificates import check_bottleneck
from tests.flow_graphs import FAMILIES, random_graph
from tests.strategies import graphs, seeds


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_certified(family: str) -> None:
    rng = np.random.default_rng([FAMILIES.index(family), 4])
    for _ in range(15):
        graph = random_graph(rng, family, max_tokens=24, max_levels=8)
        level = int(rng.integers(len(graph)))
        scores = af.flow(graph, levels=level).scores[0]
        for query, key in rng.integers(len(graph.tokens), size=(3, 2)).tolist():
            b = af.bottleneck(graph, query, key, level)
            check_bottleneck(graph, b)
            assert abs(b.value - scores[query, key]) <= 1e-9 * graph.levels.max()


@given(graphs(), seeds())
def test_random_pairs_are_certified(graph: af.AttentionGraph, seed: int) -> None:
    query, key = np.random.default_rng(seed).integers(len(graph.tokens), size=2).tolist()
    check_bottleneck(graph, af.bottleneck(graph, query, key))


def test_by_hand() -> None:
    """Query 0 sends 0.6 through itself and 0.4 through 1, from where only 0.1 goes on to input 0."""
    levels = np.array([[[1.0, 0.0], [0.1, 0.9]], [[0.6, 0.4], [0.0, 1.0]]])
    b = af.bottleneck(af.AttentionGraph(levels, tokens=["a", "b"]), "a", "a")
    assert b.value == pytest.approx(0.7)
    assert [path.positions for path in b.paths] == [(0, 0, 0), (0, 1, 0)]
    assert [path.amount for path in b.paths] == pytest.approx([0.6, 0.1])
    assert {edge[:3] for edge in b.cut} == {(1, 0, 0), (0, 1, 0)}
    assert json.loads(json.dumps(b.to_json()))["value"] == pytest.approx(0.7)
    assert "2 paths" in repr(b)


def test_no_way_there() -> None:
    b = af.bottleneck(af.AttentionGraph(np.stack([np.eye(3)] * 4)), 0, 2)
    assert (b.value, b.edges, b.cut, b.paths) == (0, (), (), ())


def test_it_is_frozen(graph: af.AttentionGraph) -> None:
    b = af.bottleneck(graph, 0, 1, level=1)
    assert b.level_names == graph.names[:2]
    with pytest.raises(AttributeError):
        b.value = 2.0  # type: ignore[misc]


@pytest.mark.parametrize(("query", "key", "level"), [(9, 0, -1), (0, "nobody", -1), (0, 0, 7)])
def test_wrong_choices(graph: af.AttentionGraph, query: int, key: int | str, level: int) -> None:
    with pytest.raises(af.errors.InvalidArgument):
        af.bottleneck(graph, query, key, level)
