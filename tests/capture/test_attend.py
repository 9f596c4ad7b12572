"""Attention in blocks of queries against the formula written out, for everything that can change the weights."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from attnflow.capture import _attend
from attnflow.capture._attend import attend, weigh
from attnflow.capture._call import Call
from attnflow.errors import CaptureError

B, H, N, D = 2, 4, 11, 8


def naive(call: Call) -> tuple[torch.Tensor, torch.Tensor]:
    """Query by query, head by head."""
    groups = call.query.shape[1] // call.key.shape[1]
    queries, keys = call.query.shape[2], call.key.shape[2]
    weights = torch.zeros(*call.query.shape[:3], keys + (call.sinks is not None), dtype=torch.float64)
    output = torch.zeros(len(call.query), queries, call.query.shape[1], call.value.shape[-1], dtype=torch.float64)
    for b, h, i in itertools.product(*map(range, call.query.shape[:3])):
        scores = call.scale * (call.key[b, h // groups].double() @ call.query[b, h, i].double())
        if call.softcap is not None:
            scores = call.softcap * torch.tanh(scores / call.softcap)
        if call.bias is not None:
            scores = scores + call.bias.expand(B, H, queries, keys)[b, h, i].double()
        if call.causal:
            scores[i + 1 :] = -1e30
        if call.mask is not None:
            row = call.mask.expand(B, H, queries, keys)[b, h, i]
            scores = scores.masked_fill(~row, -1e30) if row.dtype == torch.bool else scores + row.double()
        if call.sinks is not None:
            scores = torch.cat([scores, call.sinks[h : h + 1].double()])
        weights[b, h, i] = torch.softmax(scores, -1)
        output[b, i, h] = weights[b, h, i, :keys] @ call.value[b, h // groups].double()
    return output, weights


def make(
    *, key_heads: int = H, keys: int = N, mask: Any = None, module: Any = None, width: int = D, **options: Any
) -> Call:
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(B, H, N, D, generator=generator) * 2
    key = torch.randn(B, key_heads, keys, D, generator=generator) * 2
    value = torch.randn(B, key_heads, keys, width, generator=generator)
    return Call.of(module or torch.nn.Module(), "layer", query, key, value, mask, options)


def window(size: int) -> torch.Tensor:
    i, j = torch.arange(N)[:, None], torch.arange(N)
    return ((j <= i) & (j > i - size))[None, None]


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


PADDING = torch.ones(B, 1, 1, N, dtype=torch.bool)
PADDING[1, ..., 7:] = False
CASES: dict[str, dict[str, Any]] = {
    "full": {"is_causal": False},
    "causal": {"is_causal": True},
    "causal by default": {},
    "scaled": {"scaling": 1.0, "is_causal": False},
    "padded": {"mask": PADDING.expand(B, 1, N, N)},
    "padded, broadcast": {"mask": PADDING},
    "sliding window": {"mask": window(3), "sliding_window": 3},
    "numbers to add": {"mask": random(B, 1, N, N)},
    "position bias": {"position_bias": random(1, H, N, N), "is_causal": False},
    "position bias, causal": {"position_bias": random(1, H, N, N)},
    "ALiBi in the mask": {"mask": -torch.arange(1, H + 1.0).view(1, H, 1, 1) * (torch.arange(N) - N).abs()},
    "soft-capped": {"softcap": 2.0},
    "soft-capped window": {"softcap": 2.0, "mask": window(4)},
    "sinks": {"s_aux": random(H)},
    "sinks, window, groups": {"s_aux": random(H), "mask": window(4), "key_heads": 2},
    "grouped": {"key_heads": 2},
    "one key head": {"key_heads": 1},
    "cross": {"keys": 5, "is_causal": False},
    "narrow values": {"width": 3},
    "everything": {
        "s_aux": random(H),
        "softcap": 3.0,
        "position_bias": random(1, H, N, N),
        "mask": window(5),
        "key_heads": 2,
    },
}


@pytest.mark.parametrize("block", [1, 3, 32])
@pytest.mark.parametrize("name", CASES)
def test_blocks_see_every_weight_once(name: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_attend, "_BLOCK_BYTES", 1)
    monkeypatch.setattr(_attend, "_SMALLEST_BLOCK", block)
    call = make(**CASES[name])
    expected_output, expected = naive(call)
    seen = torch.full(expected.shape, torch.nan)

    def take(start: int, stop: int, weights: torch.Tensor) -> None:
        keys = weights.shape[-1] - (call.sinks is not None)
        assert seen[:, :, start:stop].isnan().all()
        seen[:, :, start:stop] = 0
        seen[:, :, start:stop, :keys] = weights[..., :keys]
        if call.sinks is not None:
            seen[:, :, start:stop, -1] = weights[..., -1]

    output = attend(call, take)
    torch.testing.assert_close(seen.double(), expected, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(output.double(), expected_output, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(attend(call).double(), expected_output, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_all_weights_at_once_are_the_same(name: str) -> None:
    call = make(**CASES[name])
    expected_output, expected = naive(call)
    output, weights = weigh(call)
    torch.testing.assert_close(weights.double(), expected, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(output.double(), expected_output, atol=1e-5, rtol=1e-5)


def test_a_row_that_may_see_nothing_is_a_number() -> None:
    mask = torch.ones(B, 1, N, N, dtype=torch.bool)
    mask[0, 0, 4] = False
    assert attend(make(mask=mask), lambda *_: None).isfinite().all()


def test_an_option_that_is_not_known_goes_to_the_models_own_function() -> None:
    """Sparse attention by indices, say: the model's own code decides, and its weights are taken."""
    import transformers.models.bert.modeling_bert as bert

    class Odd(torch.nn.Module):
        pass

    Odd.__module__ = bert.__name__
    call = make(indices=torch.zeros(1), scaling=0.5, is_causal=False, module=Odd())
    _, expected = naive(call)
    taken: list[torch.Tensor] = []
    attend(call, lambda start, stop, weights: taken.append(weights))
    torch.testing.assert_close(taken[0].double(), expected, atol=1e-6, rtol=1e-5)


def test_an_option_that_nobody_knows_is_refused() -> None:
    with pytest.raises(CaptureError, match="layer changes its attention by indices, which attnflow does not know"):
        attend(make(indices=torch.zeros(1)))


def test_no_block_holds_all_weights() -> None:
    """Long inputs: the largest tensor of weights is a block, not heads · n²."""
    largest = 0

    def take(start: int, stop: int, weights: torch.Tensor) -> None:
        nonlocal largest
        largest = max(largest, weights.numel() * weights.element_size())

    query = torch.randn(1, 8, 2048, 4)
    attend(Call.of(torch.nn.Module(), "", query, query, query, None, {"is_causal": False}), take)
    assert 0 < largest <= _attend._BLOCK_BYTES < 8 * 2048**2 * 4 / 20
