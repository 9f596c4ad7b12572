"""A twin of a model that has learnt nothing: for the sanity check that a map depends on what the model learnt."""

from __future__ import annotations

import copy
from typing import Any

import torch

from attnflow.capture._models import load


def randomised(model: Any, seed: int = 0) -> Any:
    """A copy of the model in which the entries of every weight are shuffled (Adebayo et al. 2018, all layers at once).

    Each tensor keeps its own distribution, so nothing need be known of how the architecture draws its first weights, and
    activations stay in their range. The model itself is not touched.
    """
    loaded = load(model)
    twin = copy.deepcopy(loaded)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in twin.parameters():  # shared ones are met once
            order = torch.randperm(parameter.numel(), generator=generator).to(parameter.device)
            parameter.copy_(parameter.flatten()[order].view_as(parameter))
    return twin
