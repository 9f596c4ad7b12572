"""The positions of a model's input: which are real, and what they are called."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnflow.tokens import Tokens

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Block:
    """One axis of positions for each item of a batch: which of them are real, and what they are called.

    Without `kept` the number of positions is the model's affair (audio frames, image patches).
    """

    kept: list[Mask] | None
    tokens: list[Tokens] | None
    read_at: tuple[int, str] | None = None  # where the output is read, and its name, if that is known beforehand

    def real(self, item: int, count: int) -> Mask:
        """The mask of an item among `count` positions."""
        if self.kept is None:
            return np.ones(count, dtype=np.bool_)
        return self.kept[item]

    def labels(self, item: int, count: int, unnamed: str = "") -> Tokens:
        """The tokens of an item, of which `count` are real."""
        if self.tokens is not None and len(self.tokens[item]) == count:
            return self.tokens[item]
        return Tokens([f"{unnamed}{i}" for i in range(count)])
