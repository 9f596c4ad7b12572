"""Reference: an importance of each input token that does not come from attention, to compare attention with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnflow.arrays import frozen
from attnflow.errors import InvalidArgument
from attnflow.tokens import Tokens


@dataclass(frozen=True, eq=False)
class Reference:
    """One number per input token. `signed` keeps the direction; `scores` is its size, which the paper correlates with.

    `value` is what the target scored on the whole input; `options` say how all of it was made.
    """

    signed: NDArray[np.float64]
    tokens: Tokens
    method: str
    value: float
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        signed = np.asarray(self.signed, dtype=np.float64)
        if signed.shape != (len(self.tokens),):
            raise InvalidArgument(
                f"a reference has one number for each of {len(self.tokens)} tokens, got shape {signed.shape}."
            )
        object.__setattr__(self, "signed", frozen(signed))

    @property
    def scores(self) -> NDArray[np.float64]:
        """How much each token matters, whichever way."""
        return np.abs(self.signed)

    def __len__(self) -> int:
        return len(self.tokens)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.scores.astype(dtype or np.float64)

    def __repr__(self) -> str:
        return f"Reference({self.method}: {len(self.tokens)} tokens)"

    def top(self, k: int) -> list[tuple[str, float]]:
        """The k tokens that matter most, with their scores, largest first."""
        if k < 1:
            raise InvalidArgument(f"top needs a k of at least 1, got {k}.")
        best = np.argsort(-self.scores, kind="stable")[:k]
        return [(self.tokens.labels[i], float(self.scores[i])) for i in best]
