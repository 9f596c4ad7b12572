"""Files that released versions wrote open for ever: tests/fixtures has a folder of them for each version."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import attnflow as af

FIXTURES = Path(__file__).parent / "fixtures"
VERSIONS = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())


def test_there_are_some_of_this_version() -> None:
    assert af.__version__ in VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_files_of_a_version_open_and_say_what_they_said(version: str) -> None:
    folder = FIXTURES / version
    stack = af.AttentionStack.load(folder / "stack.npz")
    graph = af.AttentionGraph.load(folder / "graph.npz")
    assert stack.tokens.labels == ("[CLS]", "keys", "cab", "##inet", "[SEP]")
    assert stack.tokens.special.tolist() == [True, False, False, False, True]
    assert stack.gradients is not None
    assert np.allclose(af.mix(stack).levels, graph.levels, atol=1e-6)
    assert graph.options["residual"] == 0.5
    for method in ("raw", "rollout", "flow"):
        kept = af.Attribution.load(folder / f"{method}.npz")
        assert np.allclose(kept.scores, af.attribute(graph, method).scores, atol=1e-9)
        assert kept.method == method
    assert af.Attribution.load(folder / "flow.npz").saturation is not None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_block_graph_of_a_version_keeps_its_kinds(version: str) -> None:
    graph = af.AttentionGraph.load(FIXTURES / version / "blocks.npz")
    assert graph.kinds == ("encoder", "decoder self", "decoder cross")
    assert graph.passive[0].tolist() == [False, False, True]
    assert len(graph.only("cross")) == 1
