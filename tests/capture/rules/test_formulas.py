"""Every rule against its formula, on tiny random models of every kind of layer."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import attnflow as af
from attnflow import capture
from tests.capture.rules import by_hand, formulas
from tests.capture.rules.by_hand import Hand

CLOSE = 1e-5


@cache
def case(name: str) -> tuple[Any, dict[str, torch.Tensor], list[Hand]]:
    model, arguments = by_hand.build(name)
    with torch.no_grad():
        return model, arguments, by_hand.hands(model, name, arguments)


def graph(name: str, edges: Any, **options: Any) -> af.AttentionGraph:
    model, arguments, _ = case(name)
    made = capture.graph(model, arguments, edges=edges, **options)
    assert isinstance(made, af.AttentionGraph)
    return made


def blocks(found: af.AttentionGraph, hand: Hand, level: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The part of a level that the attention fills, and the diagonal of its rows."""
    queries, keys = hand.weights.shape[1:]
    rows = np.flatnonzero(~found.passive[level])
    assert len(rows) == queries
    start = 0 if hand.cross else rows[0]
    matrix = found.levels[level][rows]
    return matrix[:, start : start + keys], matrix[np.arange(queries), rows]


def check(found: af.AttentionGraph, hand: Hand, level: int, matrix: torch.Tensor, own: torch.Tensor) -> None:
    """The level is this matrix, the own share on its diagonal."""
    block, diagonal = blocks(found, hand, level)
    if hand.cross:
        np.testing.assert_allclose(block, matrix, atol=CLOSE, rtol=CLOSE)
        np.testing.assert_allclose(diagonal, own, atol=CLOSE, rtol=CLOSE)
    else:
        np.testing.assert_allclose(block, matrix + torch.diag(own), atol=CLOSE, rtol=CLOSE)


def shares(matrix: torch.Tensor, own: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    total = matrix.sum(-1) + own
    return matrix / total[:, None], own / total


@pytest.mark.parametrize("layernorm", ["none", "first", "both"])
@pytest.mark.parametrize("name", by_hand.MODELS)
def test_norm(name: str, layernorm: str) -> None:
    lengths, proportions = (
        graph(name, "norm", with_layernorm=layernorm, renormalise=False),
        graph(name, f"norm:{layernorm}"),
    )
    for level, hand in enumerate(case(name)[2]):
        check(lengths, hand, level, *formulas.norm(hand, layernorm))
        check(proportions, hand, level, *shares(*formulas.norm(hand, layernorm)))


@pytest.mark.parametrize(("distance", "order"), [("l1", 1), ("l2", 2)])
@pytest.mark.parametrize("name", by_hand.MODELS)
def test_alti(name: str, distance: str, order: int) -> None:
    found = graph(name, "alti", distance=distance)
    for level, hand in enumerate(case(name)[2]):
        check(found, hand, level, *shares(*formulas.alti(hand, order)))


@pytest.mark.parametrize("name", by_hand.MODELS)
def test_routes(name: str) -> None:
    found = graph(name, "routes")
    for level, hand in enumerate(case(name)[2]):
        check(found, hand, level, *formulas.routes(hand))


@pytest.mark.parametrize("name", by_hand.MODELS)
def test_effective(name: str) -> None:
    found = graph(name, "effective", residual=None)
    assert found.signed
    for level, hand in enumerate(case(name)[2]):
        check(found, hand, level, *formulas.effective(hand))
    half = graph(name, "effective")
    active = ~found.passive[..., None]
    np.testing.assert_allclose(half.levels * active, (found.levels + np.eye(len(half.tokens))) / 2 * active, atol=1e-6)


@pytest.mark.parametrize("residual", ["measured", "w_res"])
@pytest.mark.parametrize("name", by_hand.MODELS)
def test_measured_residuals(name: str, residual: str) -> None:
    """With attention, whose rows sum to 1, and as N-FixedRes does it with norms, which are divided by their sums first."""
    formula = {"measured": formulas.measured, "w_res": formulas.w_res}[residual]
    with_weights, with_norms = graph(name, "attention", residual=residual), graph(name, "norm:none", residual=residual)
    for level, hand in enumerate(case(name)[2]):
        alpha = formula(hand)
        for found, matrix in (
            (with_weights, hand.weights.mean(0)),
            (with_norms, formulas.norm(hand, "none", residual=False)[0]),
        ):
            if residual == "w_res" and not hand.cross:
                matrix = matrix - torch.diag(torch.diagonal(matrix))
            sums = matrix.sum(-1, keepdim=True)
            kept = torch.where(sums[:, 0] > 0, alpha, 1)
            mixed = torch.where(sums > 0, matrix / sums, 0)
            check(found, hand, level, mixed * (1 - kept)[:, None], kept)


@pytest.mark.parametrize("residual", [0.5, None])
@pytest.mark.parametrize("name", by_hand.MODELS)
def test_a_residual_from_elsewhere_leaves_the_rule_what_attention_wrote(name: str, residual: float | None) -> None:
    weight = residual or 0.0
    norms, nearness = graph(name, "norm", residual=residual), graph(name, "alti", residual=residual)
    for level, hand in enumerate(case(name)[2]):
        matrix, own = shares(*formulas.norm(hand, "first", residual=False))
        check(norms, hand, level, matrix * (1 - weight), own + weight)
        matrix, own = shares(*formulas.alti(hand, 1, residual=False))
        check(nearness, hand, level, matrix * (1 - weight), own + weight)


@pytest.mark.parametrize("name", ["BERT", "RoBERTa-PreLayerNorm", "GPT-2", "Llama", "BART"])
def test_value_zeroing(name: str) -> None:
    """Against whole runs of the model in float64, one for each layer and key, with that value set to zero by a hook."""
    model, arguments, hands = case(name)
    twin = by_hand.doubled(model)
    found = graph(name, "value_zeroing")
    places = {
        "BERT": [(layer, layer.attention.self.value, 0) for layer in twin.base_model.encoder.layer]
        if name == "BERT"
        else [],
        "RoBERTa-PreLayerNorm": [(layer, layer.attention.self.value, 0) for layer in twin.base_model.encoder.layer]
        if name == "RoBERTa-PreLayerNorm"
        else [],
        "GPT-2": [(layer, layer.attn.c_attn, 64) for layer in twin.base_model.h] if name == "GPT-2" else [],
        "Llama": [(layer, layer.self_attn.v_proj, 0) for layer in twin.base_model.layers] if name == "Llama" else [],
        "BART": _bart_places(twin) if name == "BART" else [],
    }[name]
    for level, ((layer, values, first), hand) in enumerate(zip(places, hands, strict=True)):
        clean = _output_of(twin, arguments, layer)
        turned = torch.zeros(hand.weights.shape[1:], dtype=torch.float64)
        for key in range(turned.shape[1]):
            changed = _output_of(twin, arguments, layer, values, key, first)
            turned[:, key] = 1 - torch.nn.functional.cosine_similarity(clean, changed, dim=-1)
        check(found, hand, level, *shares(turned, torch.zeros(len(turned))))


def _bart_places(twin: Any) -> list[tuple[Any, Any, int]]:
    encoder = [(layer, layer.self_attn.v_proj, 0) for layer in twin.model.encoder.layers]
    decoder = [
        (layer, part.v_proj, 0) for layer in twin.model.decoder.layers for part in (layer.self_attn, layer.encoder_attn)
    ]
    return encoder + decoder


def _output_of(
    model: Any, arguments: Any, layer: Any, values: Any = None, key: int = 0, first: int = 0
) -> torch.Tensor:
    kept: list[torch.Tensor] = []

    def keep(module: Any, given: Any, output: Any) -> None:
        kept.append((output[0] if isinstance(output, tuple) else output)[0])

    def zero(module: Any, given: Any, output: torch.Tensor) -> torch.Tensor:
        output = output.clone()
        output[:, key, first:] = 0
        return output

    hooks = [layer.register_forward_hook(keep)] + ([values.register_forward_hook(zero)] if values is not None else [])
    with torch.no_grad():
        model(**arguments)
    for hook in hooks:
        hook.remove()
    return kept[0]
