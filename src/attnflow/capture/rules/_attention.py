"""attention as a rule over records, for when the residual has to be measured in the model beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from attnflow.capture.rules._record import LayerRecord
from attnflow.capture.rules._rule import Edges
from attnflow.mixing import Recipe
from attnflow.tokens import Tokens


@dataclass(frozen=True)
class Attention:
    """A, its heads mixed as `mix` does. Needs the attention call alone; rows are proportions."""

    heads: Any = field(default="mean", compare=False)
    name: ClassVar[str] = "attention"
    signed: ClassVar[bool] = False

    def __call__(self, record: LayerRecord) -> Edges:
        """By the recipe of `mix`."""
        weights = record.weights.float().cpu().numpy()
        layers = np.shape(self.heads)[0] if np.ndim(self.heads) == 2 else record.number + 1
        return Edges(Recipe(Tokens.of(None, 1), layers, len(weights), heads=self.heads).fused(record.number, weights))
