"""Ablation: a model's answer to one input by what of it is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnflow.errors import InvalidArgument
from attnflow.tokens import Tokens

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Ablation:
    """The target's probability of one input by which of its tokens are kept; the others are replaced.

    `removable` are the tokens that may be replaced: not special ones, nor the masked position that is asked about.
    `value` is the probability on the whole input, `target` what it is of.
    """

    tokens: Tokens
    removable: Mask
    target: Any
    value: float
    replace: str
    _probabilities: Callable[[Mask], NDArray[np.float64]] = field(repr=False)

    def __call__(self, kept: Any) -> NDArray[np.float64]:
        """The probability for each variant [variant, token]; tokens that are not removable stay, whatever is asked."""
        mask = np.asarray(kept)
        if mask.dtype != np.bool_ or mask.ndim != 2 or mask.shape[1] != len(self.tokens):
            raise InvalidArgument(
                f"which tokens are kept is boolean [variant, token], here with {len(self.tokens)} tokens; "
                f"got {mask.dtype} of shape {mask.shape}."
            )
        return self._probabilities(mask | ~self.removable)
