"""Answers read back, and compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars


def answers(folder: Path) -> polars.DataFrame:
    """In the order of the input."""
    return polars.read_parquet(folder / "*.parquet").sort("input", "method")


def same(one: polars.DataFrame, other: polars.DataFrame) -> bool:
    """To the rounding of float32."""
    if not one.drop("scores").equals(other.drop("scores")):
        return False
    pairs = zip(one["scores"].to_list(), other["scores"].to_list(), strict=True)
    return all(a == b if a is None or b is None else np.allclose(a, b, atol=2e-6) for a, b in pairs)
