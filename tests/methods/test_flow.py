"""Flow against igraph, against a slow twin and against the paper's formula; options, threads, interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import networkx
import numpy as np
import pytest

import attnflow as af
from tests import naive
from tests.flow_graphs import FAMILIES, Judge, random_graph

PER_FAMILY = 50  # random graphs; the whole oracle, 10,000 graphs, is benchmarks/flow_oracle.py


@pytest.mark.parametrize("family", FAMILIES)
def test_flow_is_igraphs(family: str) -> None:
    rng = np.random.default_rng([FAMILIES.index(family), 3])
    for number in range(PER_FAMILY):
        graph = random_graph(rng, family, max_tokens=70 if number % 10 == 0 else 20)
        level = int(rng.integers(len(graph)))
        judge, n = Judge(graph, level), len(graph.tokens)
        pairs = rng.integers(n, size=(8, 2)).tolist()
        scores = af.flow(graph, levels=level, threads=1).scores[0]
        lower, upper = (bound.scores[0] for bound in af.flow_bounds(graph, levels=level, threads=1))
        for query, key in pairs:
            wanted = judge.flow(query, key)
            where = f"{family}, graph {number}: {n} tokens, level {level}, pair {query}, {key}"
            assert abs(scores[query, key] - wanted) <= 1e-9 * judge.scale, where
            assert lower[query, key] - 1e-9 * judge.scale <= wanted <= upper[query, key] + 1e-9 * judge.scale, where


@pytest.mark.parametrize("n", [63, 64, 65, 129])
def test_flow_across_the_borders_of_machine_words(n: int) -> None:
    rng = np.random.default_rng(n)
    graph = random_graph(rng, "sharp", max_tokens=n, min_tokens=n, max_levels=4)[0:]
    graph = af.AttentionGraph(np.concatenate([graph.levels] * 4)[:4])
    judge = Judge(graph, 3)
    scores = af.flow(graph, levels=-1).scores[0]
    for query, key in [(0, n - 1), (n - 1, 0), (n - 1, n - 1), (0, 0), (62, 62), (n // 2, 1)]:
        assert abs(scores[query, key] - judge.flow(query, key)) <= 1e-9


def test_flow_is_the_slow_twins() -> None:
    rng = np.random.default_rng(8)
    for family in FAMILIES[:7]:
        graph = random_graph(rng, family, max_tokens=5, max_levels=4)
        scores = af.flow(graph).scores
        for level in range(len(graph)):
            levels = np.stack([graph.read(at) for at in range(level + 1)])
            query, key = rng.integers(len(graph.tokens), size=2).tolist()
            assert abs(scores[level, query, key] - naive.max_flow(levels, query, key)) < 1e-9


def reference_flows(levels: Any, normalise: bool) -> Any:
    """The paper's code: networkx over the layered graph, one flow for each pair, rows divided by their sum."""
    depth, n, _ = levels.shape
    graph = networkx.DiGraph()
    for at in range(depth):
        for i in range(n):
            for j in range(n):
                graph.add_edge((at + 1, i), (at, j), capacity=levels[at, i, j])
    flows = np.zeros((depth, n, n))
    for at in range(depth):
        for i in range(n):
            for j in range(n):
                flows[at, i, j] = networkx.maximum_flow_value(graph, (at + 1, i), (0, j))
            if normalise:
                flows[at, i] /= flows[at, i].sum()
    return flows


@pytest.mark.parametrize("normalise", [False, True])
def test_flow_is_the_papers_code(stack: af.AttentionStack, normalise: bool) -> None:
    graph = af.mix(stack)
    found = af.flow(graph, normalise=normalise)
    np.testing.assert_allclose(found.scores, reference_flows(graph.levels, normalise), atol=1e-12)
    assert found.options["normalise"] is normalise


def test_choices_are_parts_of_the_whole(graph: af.AttentionGraph) -> None:
    whole = af.flow(graph)
    part = af.flow(graph, queries=[3, "the", 3], levels=[-1, 0], inputs=["[SEP]", 0])
    np.testing.assert_allclose(part.scores, whole.scores[[-1, 0]][:, [3, 1, 3]][:, :, [4, 0]], atol=1e-12)
    assert (part.queries, part.inputs, part.levels) == ((3, 1, 3), (4, 0), (2, 0))
    assert part.method == "flow"


def test_the_answer_does_not_depend_on_the_threads() -> None:
    graph = random_graph(np.random.default_rng(5), "sharp", max_tokens=40, min_tokens=40, max_levels=6)
    one = af.flow(graph, threads=1)
    for threads in (2, 3, 7, None):
        assert (af.flow(graph, threads=threads).scores == one.scores).all()


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "all"])
def test_threads_must_be_a_count(graph: af.AttentionGraph, threads: Any) -> None:
    with pytest.raises(af.errors.InvalidArgument, match=r"threads must be a whole number from 1"):
        af.flow(graph, threads=threads)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"inputs": 5}, r"there is no input 5: there are 5"),
        ({"inputs": []}, r"no input was asked for"),
        ({"inputs": "cabinet"}, r"no token is 'cabinet'"),
        ({"queries": -6}, r"there is no query -6"),
        ({"levels": 3}, r"there is no level 3"),
    ],
)
def test_wrong_choices_are_named(graph: af.AttentionGraph, choice: dict[str, Any], message: str) -> None:
    with pytest.raises(af.errors.InvalidArgument, match=message):
        af.flow(graph, **choice)


def test_saturation_counts_trivial_cuts() -> None:
    level = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    graph = af.AttentionGraph(np.stack([level] * 3))
    found = af.flow(graph, levels=[-1])
    scores, saturation = found.scores[0], found.saturation
    assert saturation is not None
    leaving, entering = level.sum(1), level.sum(0)
    assert saturation.query == (np.mean(scores >= leaving[:, None] - 1e-9),)
    assert saturation.input == (np.mean(scores >= entering - 1e-9),)
    assert 0 < saturation.either[0] < 1


def test_a_position_that_is_passive_all_the_way_takes_all_from_itself() -> None:
    levels = np.full((3, 3, 3), 2.0)
    passive = np.zeros((3, 3), dtype=bool)
    passive[:, 0] = True
    levels[:, 0] = np.eye(3)[0]
    found = af.flow(af.AttentionGraph(levels, passive=passive))
    assert (found.scores[:, 0] == [1, 0, 0]).all()


def test_passive_rows_do_not_limit() -> None:
    """Two tokens feed token 0 three each; it is passive below, where an identity edge would let only one through."""
    levels = np.stack([np.eye(3), np.array([[1, 0, 0], [3, 0, 0], [3.0, 0, 0]]), np.ones((3, 3)) * 3])
    passive = np.zeros((3, 3), dtype=bool)
    passive[0] = True
    assert af.flow(af.AttentionGraph(levels), queries=1, inputs=0, levels=-1).scores.item() == 1
    assert af.flow(af.AttentionGraph(levels, passive=passive), queries=1, inputs=0, levels=-1).scores.item() == 7


def test_capacities_beyond_all_numbers() -> None:
    graph = af.AttentionGraph(np.full((3, 2, 2), 1e308))
    for ask in (af.flow, af.flow_bounds):
        with pytest.raises(af.errors.InvalidAttention, match=r"up to 1e\+308, add up to more than a number holds"):
            ask(graph)
    assert af.flow(af.AttentionGraph(np.full((3, 2, 2), 1e307)), levels=-1).scores == pytest.approx(2e307)


def test_few_bits_of_storage() -> None:
    graph = random_graph(np.random.default_rng(1), "soft", max_tokens=12, min_tokens=12)
    for dtype in (np.float32, np.float16):
        stored = af.AttentionGraph(graph.levels.astype(dtype))
        found, wanted = af.flow(stored), af.flow(graph)
        np.testing.assert_allclose(found.scores, wanted.scores, atol=len(graph) * 12 * float(np.finfo(dtype).eps))
        assert found.scores.max() <= 1 + 1e-12


def test_appendix_a1_with_flow(stack: af.AttentionStack) -> None:
    for head, found in enumerate(af.by_head(stack, "flow", level=1)):
        own = 0.5 * stack.weights[1, head] + 0.5 * np.eye(5)
        graph = af.mix(stack)[:2].with_level(1, own)
        np.testing.assert_allclose(found.scores[0], af.flow(graph, levels=1).scores[0], atol=1e-12)


def test_save_and_load(graph: af.AttentionGraph, tmp_path: Any) -> None:
    found = af.flow(graph, normalise=True)
    found.save(tmp_path / "flow.npz")
    again = af.Attribution.load(tmp_path / "flow.npz")
    assert (again.scores == found.scores).all()
    assert again.saturation == found.saturation


ENDLESS = """
import sys, time, threading, numpy as np, attnflow as af
af.flow(af.AttentionGraph(np.full((3, 2, 2), .5)), progress=False)
rng = np.random.default_rng(0)
levels = 0.5 * rng.dirichlet(np.full(300, 0.05), size=(12, 300)) + 0.5 * np.eye(300)
print("started", flush=True)
try:
    af.flow(af.AttentionGraph(levels), levels=-1, progress=True)
except KeyboardInterrupt:
    print("stopped", threading.active_count(), flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals are sent the POSIX way")
def test_ctrl_c_is_answered() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)  # the whole map would take minutes
    assert (out, process.returncode) == ("stopped 1\n", 0), err


def test_a_bar_appears_when_it_takes_long(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from attnflow.methods import _threads

    def slow(done: Any, cancelled: Any) -> None:
        for _ in range(3):
            time.sleep(0.15)
            done[0] += 1

    _threads.run_together([slow], 3, "flow", True)
    assert capsys.readouterr().err == ""  # not yet
    monkeypatch.setattr(_threads, "PATIENCE", 0.0)
    _threads.run_together([slow], 3, "nobody looks", None)
    assert capsys.readouterr().err == ""
    _threads.run_together([slow], 3, "flow", True)
    assert "flow" in capsys.readouterr().err


def test_what_fails_in_a_thread_is_raised() -> None:
    from attnflow.methods import _threads

    def broken(done: Any, cancelled: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        _threads.run_together([broken], 1, "flow", False)
    assert threading.active_count() < 20


def endless() -> af.AttentionGraph:
    """A graph whose whole map would take minutes."""
    rng = np.random.default_rng(0)
    return af.AttentionGraph(0.5 * rng.dirichlet(np.full(300, 0.05), size=(12, 300)) + 0.5 * np.eye(300))


def test_a_function_is_told_and_stops_it_by_raising() -> None:
    told: list[tuple[str, int, int]] = []

    def listen(what: str, done: int, total: int) -> None:
        told.append((what, done, total))
        if what == "flow at level 11" and len(told) > 5:
            raise TimeoutError("enough")

    with pytest.raises(TimeoutError, match="enough"):
        af.flow(endless(), levels=-1, progress=listen)
    assert told[0][1] == 0
    assert told[-1][1] < told[-1][2] == 300 * 300
    assert threading.active_count() < 20


def test_being_told_changes_nothing(graph: af.AttentionGraph) -> None:
    told: list[str] = []
    found = af.flow(graph, progress=lambda what, done, total: told.append(what))
    assert (found.scores == af.flow(graph).scores).all()
    assert told == ["flow at layer 2"]  # up to two levels nothing is searched
