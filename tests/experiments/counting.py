"""Something to measure that a process of its own imports in no time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

CALLS: list[int] = []  # where the chunks began, in this process


def squares(chunk: Sequence[int], start: int) -> list[dict[str, Any]]:
    CALLS.append(start)
    return [{"square": np.array(item**2), "of": np.array([item])} for item in chunk]


def prepare() -> None:
    CALLS.clear()
