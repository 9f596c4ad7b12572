"""Random attention for property tests: the kinds that models produce, and the corners they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

import attnflow as af

KINDS = ("soft", "sharp", "hard", "uniform", "sparse")


def attention(rng: np.random.Generator, shape: tuple[int, ...], kind: str, *, causal: bool) -> NDArray[np.float64]:
    """Row-stochastic matrices of a kind; `shape` ends with n, n."""
    temperature = {"soft": 1.0, "sharp": 6.0, "hard": 1.0, "uniform": 0.0, "sparse": 2.0}[kind]
    scores = temperature * rng.normal(size=shape)
    if kind == "sparse":
        scores[rng.random(shape) < 0.6] = -np.inf
    n = shape[-1]
    np.einsum("...ii->...i", scores)[:] = np.maximum(np.einsum("...ii->...i", scores), -9)  # no row is empty
    if causal:
        scores[..., ~np.tri(n, dtype=bool)] = -np.inf
    weights: NDArray[np.float64] = np.exp(scores - scores.max(-1, keepdims=True))
    if kind == "hard":
        weights = (weights == weights.max(-1, keepdims=True)).astype(np.float64)
    weights /= weights.sum(-1, keepdims=True)
    return weights


@st.composite
def stacks(draw: st.DrawFn, /, max_layers: int = 4, max_tokens: int = 6, gradients: bool = False) -> af.AttentionStack:
    """A stack of random shape, kind and direction."""
    layers, heads = draw(st.integers(1, max_layers)), draw(st.integers(1, 3))
    n = draw(st.integers(1, max_tokens))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = attention(rng, (layers, heads, n, n), draw(st.sampled_from(KINDS)), causal=draw(st.booleans()))
    return af.AttentionStack(weights, gradients=rng.normal(size=weights.shape) if gradients else None)


@st.composite
def graphs(draw: st.DrawFn, /, max_levels: int = 4, max_tokens: int = 6, **mixing: Any) -> af.AttentionGraph:
    """A mixed stack: row-stochastic levels, with the residual of the paper, none, or one per layer."""
    stack = draw(stacks(max_levels, max_tokens))
    residual = draw(st.sampled_from([0.5, None, 0.1, [0.3] * stack.layers]))
    return af.mix(stack, **{"residual": residual, **mixing})


def seeds() -> st.SearchStrategy[int]:
    return st.integers(0, 2**32 - 1)
