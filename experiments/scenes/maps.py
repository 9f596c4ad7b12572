"""What different methods say about a scene, each as one number for each patch: [row, column].

The ways of attention answer for the class token at the top level. Gradients are those of the class that the model predicts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import captum.attr
import numpy as np
import torch
from numpy.typing import NDArray

import attnflow as af

from .draw import PATCH, SIDE

Map = NDArray[np.float64]
GRID = SIDE // PATCH

# A model, pixels [1, RGB, row, column] and a class.
Way = Callable[[Any, torch.Tensor, int], Map]


def by_graph(method: str, **options: Any) -> Way:
    """A method over a graph of the run."""

    def way(model: Any, pixels: torch.Tensor, label: int) -> Map:
        target = {"target": label} if options.get("edges") in ("gradient", "chefer") else {}
        found = af.explain(pixels[0], model, method, **options, **target)
        return on_patches(found.scores[0, 0])

    return way


def on_patches(scores: NDArray[Any]) -> Map:
    """Scores of all tokens, without the class token, as rows and columns."""
    found: Map = np.asarray(scores, dtype=np.float64)[1:].reshape(GRID, GRID)
    return found


def by_grad_cam(layer: int) -> Way:
    """Over what enters a block."""

    def way(model: Any, pixels: torch.Tensor, label: int) -> Map:
        return on_patches(af.capture.grad_cam(model, pixels[0], target=label, layer=layer).scores)

    return way


def by_captum(name: str, **options: Any) -> Way:
    """A method of Captum on the pixels; the sizes of a patch's attributions are added up."""

    def way(model: Any, pixels: torch.Tensor, label: int) -> Map:
        method = getattr(captum.attr, name)(lambda values: model(pixel_values=values).logits)
        found = method.attribute(pixels.clone().requires_grad_(), target=label, **options)
        sizes = found.detach().abs().sum(dim=1).reshape(GRID, PATCH, GRID, PATCH).sum(dim=(1, 3))
        return np.asarray(sizes.double().numpy())

    return way


def chance(model: Any, pixels: torch.Tensor, label: int) -> Map:
    """Noise, the same whenever the scene is the same."""
    return np.random.default_rng(int(pixels.abs().sum() * 1e3)).random((GRID, GRID))


WAYS: dict[str, Way] = {
    "raw attention": by_graph("raw"),
    "rollout": by_graph("rollout"),
    "flow": by_graph("flow"),
    "rollout, heads by maximum": by_graph("rollout", heads="max"),
    "rollout of gradient-weighted edges": by_graph("rollout", edges="chefer"),
    "flow of gradient-weighted edges": by_graph("flow", edges="chefer"),
    "relevance (Chefer et al. 2021)": by_graph("relevance", edges="chefer"),
    "rollout of ALTI": by_graph("rollout", edges="alti", residual="own"),
    "Grad-CAM, second block": by_grad_cam(1),
    "Grad-CAM, last block": by_grad_cam(-1),
    "gradient": by_captum("Saliency"),
    "input × gradient": by_captum("InputXGradient"),
    "integrated gradients": by_captum("IntegratedGradients", n_steps=32),
    "chance": chance,
}
