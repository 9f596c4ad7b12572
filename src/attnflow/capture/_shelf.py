"""One array for all levels of a run, so that the finished graph needs no second one.

The array is made for as many levels as the model has layers. What is never written takes no memory, and a level that is
read once more (residual, rows that sum to 1) is written back to its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


class Shelf:
    """Room for matrices of one shape, one after the other. numpy owns it, since graphs keep only what nobody can write to."""

    def __init__(self, capacity: int = 0) -> None:
        self.capacity = capacity
        self.array: NDArray[Any] | None = None
        self.given: list[torch.Tensor] = []

    def room(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """The next place; a tensor of its own where the shape is another, several inputs run at once, or all is full."""
        if self.array is None and shape[0] == 1 and self.capacity:
            self.array = np.empty((self.capacity, *shape), dtype=str(dtype).removeprefix("torch."))
        if self.array is None or self.array.shape[1:] != shape or len(self.given) == self.capacity:
            return torch.empty(shape, dtype=dtype)
        self.given.append(torch.from_numpy(self.array[len(self.given)]))
        return self.given[-1]

    def taken(self, matrices: Sequence[torch.Tensor]) -> NDArray[Any] | None:
        """The array [level, query, key] under these matrices, if they are all that was put here, in order; else None."""
        if self.array is None or len(matrices) != len(self.given):
            return None
        if not all(one is other for one, other in zip(matrices, self.given, strict=True)):
            return None
        return self.array[: len(matrices), 0]

    def close(self) -> None:
        """Nobody writes here again."""
        self.given.clear()
        if self.array is not None:
            self.array.flags.writeable = False
