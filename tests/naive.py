"""Slow, obvious twins of what the package computes fast. They follow the definitions, one loop for each index."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def rollout_by_paths(levels: Array, level: int) -> Array:
    """The sum over all paths from each position at `level` down to each input of the product of the edges."""
    n = levels.shape[-1]
    scores = np.zeros((n, n))
    for path in itertools.product(range(n), repeat=level + 2):  # path[0] is the query, path[-1] the input
        weight = 1.0
        for step in range(level + 1):
            weight *= levels[level - step, path[step], path[step + 1]]
        scores[path[0], path[-1]] += weight
    return scores


def paper_rollout(weights: Array) -> list[Array]:
    """The reference formula: heads averaged, identity added, rows divided by their sum, matrices multiplied."""
    joint: list[Array] = []
    for heads in weights:
        level = heads.mean(axis=0) + np.eye(heads.shape[-1])
        level = level / level.sum(axis=-1)[..., None]
        joint.append(level @ joint[-1] if joint else level)
    return joint


def vit_explain_rollout(weights: Array) -> Array:
    """vit-explain's formula with mean heads and nothing discarded: a = (F + I) / 2, a[i, j] /= Σ_m a[j, m], R = a R."""
    n = weights.shape[-1]
    result = np.eye(n)
    for heads in weights:
        a = (heads.mean(axis=0) + np.eye(n)) / 2
        result = (a / a.sum(axis=-1)) @ result  # columns by row sums, as there; the same while rows sum to 1
    return result


def mix_layer(
    weights: Array,
    gradients: Array | None,
    edges: str,
    heads: str,
    residual: float,
    discard: float,
    top_k: int,
    threshold: float,
    special: Array,
) -> Array:
    """One layer through every step of `mix`, entry by entry. Ties at the discard quantile must not occur."""
    head_count, n, _ = weights.shape
    fused = np.zeros((n, n))
    for i, j in itertools.product(range(n), range(n)):
        values = []
        for h in range(head_count):
            value = weights[h, i, j]
            if gradients is not None and edges != "attention":
                value = value * gradients[h, i, j]
                if edges == "chefer":
                    value = max(value, 0.0)
            values.append(value)
        fused[i, j] = {"mean": sum(values) / head_count, "max": max(values), "min": min(values)}[heads]
        if edges == "gradient":
            fused[i, j] = max(fused[i, j], 0.0)
    order = sorted(itertools.product(range(n), range(n)), key=lambda entry: fused[entry])
    for i, j in order[: int(n * n * discard)]:
        if not special[j]:
            fused[i, j] = 0.0
    level = np.zeros((n, n))
    for i in range(n):
        row = [(1 - residual) * fused[i, j] + (residual if i == j else 0.0) for j in range(n)]
        smallest_kept = sorted(row, reverse=True)[top_k - 1]
        row = [value if value >= smallest_kept and value > threshold else 0.0 for value in row]
        total = sum(row)
        level[i] = [value / total for value in row] if total > 0 else [float(i == j) for j in range(n)]
    return level
