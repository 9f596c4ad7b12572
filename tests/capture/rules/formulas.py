"""The rules' formulas, one loop for each index, over a Hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch

from tests.capture.rules.by_hand import Hand, linear_part

Found = tuple[torch.Tensor, torch.Tensor]  # the matrix (queries, keys), and the query's own share beside it


def _moved(hand: Hand, vector: torch.Tensor, i: int, layernorm: str) -> torch.Tensor:
    """A part of query i through the norms that the sum passes."""
    if layernorm != "none":
        for norm in hand.norms:
            vector = linear_part(norm, hand.x + hand.written, vector, i)
    if layernorm == "both" and hand.end is not None:
        norm, rows = hand.end
        vector = linear_part(norm, rows, vector, i)
    return vector


def _vector(hand: Hand, i: int, j: int, layernorm: str, residual: bool) -> torch.Tensor:
    own = hand.x[i] if residual and i == j and not hand.cross else 0
    return _moved(hand, hand.vector(i, j) + own, i, layernorm)


def _each(hand: Hand, value: Callable[[int, int], torch.Tensor]) -> torch.Tensor:
    queries, keys = hand.weights.shape[1:]
    found = torch.zeros(queries, keys, dtype=torch.float64)
    for i, j in itertools.product(range(queries), range(keys)):
        found[i, j] = value(i, j)
    return found


def _own(
    hand: Hand, value: Callable[[torch.Tensor, int], torch.Tensor], residual: bool, layernorm: str
) -> torch.Tensor:
    found = torch.zeros(len(hand.x), dtype=torch.float64)
    if residual and hand.cross:
        for i, row in enumerate(hand.x):
            found[i] = value(_moved(hand, row, i, layernorm), i)
    return found


def norm(hand: Hand, layernorm: str, *, residual: bool = True) -> Found:
    matrix = _each(hand, lambda i, j: _vector(hand, i, j, layernorm, residual).norm())
    return matrix, _own(hand, lambda row, i: row.norm(), residual, layernorm)


def alti(hand: Hand, order: int, *, residual: bool = True) -> Found:
    total = hand.x + hand.written
    whole = hand.norms[0](total) if hand.norms else total
    if not residual:
        whole = torch.stack(
            [y - _moved(hand, x, i, "first") for i, (y, x) in enumerate(zip(whole, hand.x, strict=True))]
        )

    def nearer(part: torch.Tensor, i: int) -> torch.Tensor:
        left = whole[i].norm(p=order) - (whole[i] - part).norm(p=order)
        return torch.clamp(left, min=0)

    matrix = _each(hand, lambda i, j: nearer(_vector(hand, i, j, "first", residual), i))
    return matrix, _own(hand, nearer, residual, "first")


def routes(hand: Hand) -> Found:
    whole = hand.x + hand.written

    def prox(part: torch.Tensor, i: int) -> torch.Tensor:
        return (whole[i].abs().sum() - (whole[i] - part).abs().sum()).clamp(min=1e-5)

    def edge(i: int, j: int) -> torch.Tensor:
        heads = range(len(hand.weights))
        seen = [prox(hand.weights[h, i, j] * hand.values[h, j], i) for h in heads if hand.weights[h, i, j] > 0]
        return torch.stack(seen).sum() if seen else torch.zeros(())

    matrix = _each(hand, edge)
    own = torch.stack([prox(row, i) for i, row in enumerate(hand.x)])
    total = matrix.sum(-1) + own
    return matrix / total[:, None], own / total


def effective(hand: Hand) -> Found:
    """By the paper's own space, that of V W_O."""
    made = torch.zeros(hand.weights.shape[1:], dtype=torch.float64)
    for weights, values in zip(hand.weights, hand.values, strict=True):
        left, sizes, _ = torch.linalg.svd(values)
        rank = int((sizes > sizes.max() * 1e-6).sum())
        made += weights @ left[:, :rank] @ left[:, :rank].T / len(hand.weights)
    return made, torch.zeros(len(hand.x), dtype=torch.float64)


def measured(hand: Hand) -> torch.Tensor:
    x: torch.Tensor = torch.linalg.norm(hand.x, dim=-1)
    share: torch.Tensor = x / (x + torch.linalg.norm(hand.written, dim=-1))
    return share


def w_res(hand: Hand) -> torch.Tensor:
    found = []
    for i, x in enumerate(hand.x):
        keys = range(hand.weights.shape[2])
        others = [hand.vector(i, j) for j in keys if hand.cross or j != i]
        mixing = torch.stack([*others, torch.zeros_like(x)]).sum(0).norm()
        preserving = (x if hand.cross else x + hand.vector(i, i)).norm()
        found.append(preserving / (preserving + mixing))
    return torch.stack(found)
