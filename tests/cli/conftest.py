"""A model folder and a folder of files, made once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import attnflow as af
from tests.cli.tiny import build

TOKENS = af.Tokens(
    ["[CLS]", "the", "key", "to", "the", "cabinet", "##s", "[SEP]"], [True, *[False] * 6, True],
    words=[(1, 2), (2, 3), (3, 4), (4, 5), (5, 7)],
)  # fmt: skip


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """graph.npz, stack.npz, rollout.npz, flow.npz, large.npz; texts that are none. Not to be written to."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(5)
    weights = rng.dirichlet(np.full(8, 0.4), size=(3, 2, 8))
    stack = af.AttentionStack(weights, TOKENS)
    stack.save(folder / "stack.npz")
    mixed = af.mix(stack)
    graph = af.AttentionGraph(mixed.levels, TOKENS, mixed.names, options={**mixed.options, "query": 0})
    graph.save(folder / "graph.npz")
    af.rollout(graph).save(folder / "rollout.npz")
    af.flow(graph).save(folder / "flow.npz")
    large = 0.5 * rng.dirichlet(np.full(300, 0.3), size=(8, 300)) + 0.5 * np.eye(300)
    af.AttentionGraph(large.astype(np.float32)).save(folder / "large.npz")
    (folder / "text.txt").write_text("the key to the cabinets\n")
    (folder / "latin1.txt").write_bytes("le café".encode("latin1"))
    (folder / "binary.txt").write_bytes(b"\x7fELF\0\1")
    (folder / "empty.txt").write_bytes(b" \n")
    (folder / "damaged.npz").write_bytes((folder / "graph.npz").read_bytes()[:300])
    return folder
