"""A small classifier with random weights that are large enough for its answers to depend on its input."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.tiny import build
from tests.one_thread import one_thread as one_thread

TEXTS = [
    "the old key to the cabinets",
    "cabinets the key is old to",
    "the cabinet",
    "old old key are the to cabinets is",
]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("study") / "tiny")
