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
    """One layer through every step of `mix`, entry by entry."""
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
    smallest_kept = sorted(fused.ravel())[int(n * n * discard)]
    for i, j in itertools.product(range(n), range(n)):
        if fused[i, j] < smallest_kept and not special[j]:
            fused[i, j] = 0.0
    level = np.zeros((n, n))
    for i in range(n):
        row = [(1 - residual) * fused[i, j] + (residual if i == j else 0.0) for j in range(n)]
        kth = sorted(row, reverse=True)[top_k - 1]
        row = [value if value >= kth and value > threshold else 0.0 for value in row]
        total = sum(row)
        level[i] = [value / total for value in row] if total > 0 else [float(i == j) for j in range(n)]
    return level


def max_flow(levels: Array, query: int, key: int) -> float:
    """Ford and Fulkerson, 1956: while there is a way with capacity left, send along it what its narrowest edge takes."""
    top, n, _ = levels.shape
    residual = {
        ((at + 1, i), (at, j)): levels[at, i, j] for at, i, j in itertools.product(range(top), range(n), range(n))
    }
    residual.update({(b, a): 0.0 for a, b in list(residual)})
    total = 0.0
    while True:
        came_from: dict[Any, Any] = {(top, query): None}
        waiting = [(top, query)]
        while waiting and (0, key) not in came_from:
            here = waiting.pop(0)
            for (a, b), left in residual.items():
                if a == here and b not in came_from and left > 1e-12:
                    came_from[b] = here
                    waiting.append(b)
        if (0, key) not in came_from:
            return total
        way = [(0, key)]
        while way[-1] != (top, query):
            way.append(came_from[way[-1]])
        steps = [(b, a) for a, b in itertools.pairwise(way)]
        amount = min(residual[step] for step in steps)
        for a, b in steps:
            residual[a, b] -= amount
            residual[b, a] += amount
        total += amount
