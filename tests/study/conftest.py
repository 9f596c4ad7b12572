"""A small classifier with random weights that are large enough for its answers to depend on its input."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.cli.tiny import build

TEXTS = [
    "the old key to the cabinets",
    "cabinets the key is old to",
    "the cabinet",
    "old old key are the to cabinets is",
]


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("study") / "tiny")
