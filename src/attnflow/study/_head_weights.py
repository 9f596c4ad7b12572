"""Weights of heads, learnt: how much each head shall count in rollout so that the map agrees with an importance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnflow import capture
from attnflow.errors import InvalidArgument, suggest
from attnflow.study._baselines import baselines_called
from attnflow.study._faithfulness import REFERENCES
from attnflow.study._subject import Features, Subject
from attnflow.study._ways import Floats

_PULL = 1e-2  # towards equal weights, for heads that the data says nothing of


@dataclass(frozen=True, eq=False)
class _Example:
    """One input: its heads [layer, head, query, key], where it is read, and the importances of its features."""

    weights: NDArray[Any]
    query: int
    features: Features
    wanted: Floats


def learn_heads(
    model: Any,
    data: Any,
    *,
    tokenizer: Any = None,
    reference: str = "occlusion",
    replace: str = "unk",
    target: Any = None,
    residual: float = 0.5,
    truncate: bool = False,
    rounds: int = 100,
) -> Floats:
    """Weights [layer, head] for `heads=`, fitted so that rollout agrees with an importance of the same inputs.

    Maximises the mean correlation (Pearson) of the query's row of R = Π_l ((1 − α) Σ_h w_lh W_lh + α I) with the size of the reference,
    over w_lh = softmax_h(θ_lh) by L-BFGS, with its exact gradient. Try the weights on inputs that they have not seen.
    """
    from scipy.optimize import minimize

    if reference not in REFERENCES:
        raise InvalidArgument(f"unknown reference {reference!r}." + suggest(reference, REFERENCES))
    subject = Subject.of(model, data, tokenizer, target, truncate=truncate)
    importances = baselines_called([reference])[reference](subject, replace, 0)
    examples = []
    stacks = capture.stack(subject.model, list(subject.inputs), **subject.asked)
    graphs = capture.graph(subject.model, list(subject.inputs), **subject.asked)
    for stack, graph, features, row in zip(stacks, graphs, subject.features, importances, strict=True):
        if len(features.groups) > 1 and np.ptp(np.abs(row)) > 0:
            examples.append(_Example(np.asarray(stack.weights, np.float64), int(graph.options["query"]), features, np.abs(row)))  # fmt: skip
    if not examples:
        raise InvalidArgument(
            "no input has an importance that differs between its tokens: there is nothing to learn from."
        )
    shape = examples[0].weights.shape[:2]

    def loss(flat: Floats) -> tuple[float, Floats]:
        theta = flat.reshape(shape)
        shares = _softmax(theta)
        value, slope = _objective(examples, shares, residual)
        through = shares * (slope - (slope * shares).sum(axis=1, keepdims=True))  # the softmax's derivative
        return -value + _PULL * float((theta**2).mean()), (-through + 2 * _PULL * theta / theta.size).ravel()

    found = minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": rounds})
    return _softmax(found.x.reshape(shape))


def _objective(examples: Sequence[_Example], shares: Floats, residual: float) -> tuple[float, Floats]:
    """The mean correlation, and its slope by the shares."""
    total, slope = 0.0, np.zeros(shares.shape)
    for one in examples:
        levels = (1 - residual) * np.einsum("lh,lhij->lij", shares, one.weights, optimize=True)
        levels += residual * np.eye(levels.shape[1])
        above = [np.eye(levels.shape[1])[one.query]]  # above[k]: the query's row of the product of the k highest levels
        for level in levels[::-1]:
            above.append(above[-1] @ level)
        value, by_feature = _correlation(one.features.add_up(above[-1]), one.wanted)
        total += value
        below = np.zeros(levels.shape[1])
        below[: one.features.count] = one.features.of_token.T @ by_feature
        for layer in range(len(levels)):  # from the lowest: ∂R/∂level = (row above) ⊗ (what lies below)
            row = above[len(levels) - 1 - layer]
            slope[layer] += (1 - residual) * np.einsum("i,hij,j->h", row, one.weights[layer], below, optimize=True)
            below = levels[layer] @ below
    return total / len(examples), slope / len(examples)


def _correlation(row: Floats, wanted: Floats) -> tuple[float, Floats]:
    """Pearson's correlation, and its slope by the row."""
    x, y = row - row.mean(), wanted - wanted.mean()
    length, other = float(np.linalg.norm(x)), float(np.linalg.norm(y))
    if length < 1e-15:
        return 0.0, np.zeros(len(row))
    x, y = x / length, y / other
    value = float(x @ y)
    slope = (y - value * x) / length
    return value, slope - slope.mean()


def _softmax(theta: Floats) -> Floats:
    exp = np.exp(theta - theta.max(axis=1, keepdims=True))
    return np.asarray(exp / exp.sum(axis=1, keepdims=True))
