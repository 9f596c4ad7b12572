"""Rollout and mixing: rows against the full product, ours against the reference formula, heads against np.mean."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import attnflow as af
from attnflow.mixing import recipe_for
from benchmarks._measure import Table, machine, peak_memory, race

LEVELS = 12


def reference_loop(levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """The paper's loop over mixed levels: add nothing, normalise rows, multiply, keep every level."""
    joint = np.zeros(levels.shape)
    for i, level in enumerate(levels):
        level = level / level.sum(axis=-1)[..., None]
        joint[i] = level @ joint[i - 1] if i else level
    return joint


def rows_against_product() -> None:
    table = Table(
        "tokens",
        "one row, ms",
        "full, ms",
        "full / row",
        "reference loop, ms",
        "full / reference",
        "row, MB",
        "full, MB",
        "reference, MB",
    )
    for n, times in ((128, 50), (512, 9), (2048, 3)):
        levels = np.random.default_rng(n).dirichlet(np.ones(n), size=(LEVELS, n))
        levels = 0.5 * levels + 0.5 * np.eye(n)
        one_row = partial(af.rollout, af.AttentionGraph(levels), queries=[0], levels=[-1])
        everything = partial(af.rollout, af.AttentionGraph(levels))
        row, full, loop = race(times, one_row, everything, partial(reference_loop, levels))
        memory = [peak_memory(work) for work in (one_row, everything, partial(reference_loop, levels))]
        table.row(n, row * 1e3, full * 1e3, full / row, loop * 1e3, full / loop, *memory)
    table.print("Rollout over 12 levels, float64 storage")


def mixing_against_mean() -> None:
    table = Table(
        "tokens",
        "heads, ms",
        "whole mix, ms",
        "np.mean, ms",
        "heads / np.mean",
        "mix / np.mean",
        "heads, MB",
        "mix, MB",
        "np.mean, MB",
    )
    for n in (128, 512, 1024):
        weights = np.random.default_rng(n).dirichlet(np.ones(n), size=(6, 12, n)).astype(np.float32)
        stack = af.AttentionStack(weights)
        mix, mean = partial(af.mix, stack), partial(weights.mean, axis=1)
        seconds = race(15, partial(heads_alone, stack), mix, mean)
        ratios = seconds[0] / seconds[2], seconds[1] / seconds[2]
        table.row(
            n,
            *(s * 1e3 for s in seconds),
            *ratios,
            *(peak_memory(work) for work in (partial(heads_alone, stack), mix, mean)),
        )
    table.print("Mixing 6 layers × 12 heads, float32: the heads alone, and mix with residual, proportions and checks")


def heads_alone(stack: af.AttentionStack) -> list[NDArray[Any]]:
    made = recipe_for(stack)
    return [made.fused(layer, weights) for layer, weights in enumerate(stack.weights)]


if __name__ == "__main__":
    print(machine())
    rows_against_product()
    mixing_against_mean()
