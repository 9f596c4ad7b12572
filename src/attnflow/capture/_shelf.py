"""One array for all levels of a run, so that the finished graph needs no second one.

The array is made for as many levels as the model has layers. What is never written takes no memory, and a level that is
read once more (residual, rows that sum to 1) is written back to its place.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch


class Shelf:
    """Room for matrices of one shape, one after the other."""

    def __init__(self, capacity: int = 0) -> None:
        self.capacity = capacity
        self.array: torch.Tensor | None = None
        self.used = 0

    def room(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """The next place; an array of its own where the shape is another, several inputs run at once, or all is full."""
        if self.array is None and shape[0] == 1 and self.capacity:
            self.array = torch.empty((self.capacity, *shape), dtype=dtype)
        if self.array is None or self.array.shape[1:] != shape or self.used == self.capacity:
            return torch.empty(shape, dtype=dtype)
        self.used += 1
        return self.array[self.used - 1]

    def holds(self, matrices: Sequence[torch.Tensor]) -> bool:
        """Whether these are all that was put here, in order and nothing else."""
        if self.array is None or len(matrices) != self.used:
            return False
        return all(
            matrix.data_ptr() == self.array[i].data_ptr() and matrix.shape == self.array.shape[1:]
            for i, matrix in enumerate(matrices)
        )
