"""The map of vit-explain (Gildenblat 2020, vit_rollout.py), written down from its formula, beside attnflow's.

Heads fused to F; a = (F + I) / 2; a_ij divided by Σ_m a_jm, since keepdim is missing there; R = a · R over the layers;
the map is R[0, 1:] as a square, divided by its maximum. With mean heads and nothing discarded row sums are 1, so it is rollout.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import attnflow as af
from tests.capture.vision_zoo import build, pixels
from tests.capture.zoo import eager_twin


def vit_explain(attentions: Any, fusion: str = "mean", discard: float = 0.0) -> np.ndarray:
    result = torch.eye(attentions[0].size(-1))
    for attention in attentions:
        fused = {"mean": lambda a: a.mean(axis=1), "max": lambda a: a.max(axis=1)[0]}[fusion](attention)
        flat = fused.view(fused.size(0), -1)
        _, indices = flat.topk(int(flat.size(-1) * discard), -1, False)
        flat[0, indices[indices != 0]] = 0
        identity = torch.eye(fused.size(-1))
        a = (fused + 1.0 * identity) / 2
        a = a / a.sum(dim=-1)
        result = torch.matmul(a, result)
    mask = result[0, 0, 1:]
    width = int(mask.size(-1) ** 0.5)
    square: np.ndarray = mask.reshape(width, width).numpy()
    found: np.ndarray = square / np.max(square)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_mean_heads_without_discarding(seed: int) -> None:
    model, values = build("ViT", seed=seed), pixels(1)
    with torch.no_grad():
        attentions = eager_twin(model)(pixel_values=values, output_attentions=True).attentions
    found = af.explain(values[0], model).scores[0, 0, 1:].reshape(4, 4)
    np.testing.assert_allclose(found / found.max(), vit_explain([one.clone() for one in attentions]), atol=1e-5)


def test_elsewhere_it_divides_columns_where_rows_are_meant() -> None:
    """Why only that case is to agree: with maximum heads the rows do not sum to 1, and the code divides by another row's sum."""
    model, values = build("ViT"), pixels(1)
    with torch.no_grad():
        attentions = eager_twin(model)(pixel_values=values, output_attentions=True).attentions
    found = af.explain(values[0], model, heads="max").scores[0, 0, 1:].reshape(4, 4)
    theirs = vit_explain([one.clone() for one in attentions], "max")
    assert np.abs(found / found.max() - theirs).max() > 0.01
