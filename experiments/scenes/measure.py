"""How well each map finds the deciding cell: three numbers a scene, and their means with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from attnflow import evaluate

from .draw import Scenes
from .maps import Map, Way
from .train import pixels

MEASURES = {
    "pointing": "the highest patch lies in the deciding cell (the pointing game, Zhang et al. 2018)",
    "energy": "the share of the map inside the cell (Wang et al. 2020)",
    "IoU": "the highest patches, as many as the cell has, against the cell: intersection over union",
}


@dataclass(frozen=True, eq=False)
class Measured:
    """Values [scene, way, measure] of the scenes that the model got right, and how many there were."""

    values: NDArray[np.float64]
    ways: tuple[str, ...]
    right: NDArray[np.bool_]

    def rows(self) -> list[tuple[str, list[evaluate.Summary]]]:
        """Each way's summaries, in the order of the measures."""
        return [(way, evaluate.summarise(self.values[:, i])) for i, way in enumerate(self.ways)]


def scored(found: Map, truth: NDArray[np.bool_]) -> tuple[float, float, float]:
    """The three measures; ties count by their share."""
    against = evaluate.against_truth(found.ravel(), truth.ravel())
    return against["hit"], against["mass"], overlap(found, truth)


def overlap(found: Map, truth: NDArray[np.bool_]) -> float:
    """|A ∩ B| / |A ∪ B| for the |B| highest patches A, each of those that tie for the last place counted by its share."""
    count = int(truth.sum())
    lowest = np.sort(found.ravel())[-count]
    above, tied = found > lowest, found == lowest
    share = (count - above.sum()) / tied.sum()
    both = float((above & truth).sum() + share * (tied & truth).sum())
    return both / (2 * count - both)


def measure(model: Any, drawn: Scenes, ways: dict[str, Way], *, quiet: bool = False) -> Measured:
    """Every way over every scene that the model gets right: of the others it is not known what decided."""
    import torch

    values = pixels(drawn)
    with torch.inference_mode():
        predicted = np.concatenate(
            [model(pixel_values=some).logits.argmax(-1).numpy() for some in torch.split(values, 128)]
        )
    right = predicted == drawn.labels
    rows = []
    for number in tqdm(np.flatnonzero(right).tolist(), unit="scene", disable=quiet):
        one, label = values[number : number + 1], int(drawn.labels[number])
        rows.append([scored(way(model, one, label), drawn.truth(number)) for way in ways.values()])
    return Measured(np.array(rows), tuple(ways), right)
