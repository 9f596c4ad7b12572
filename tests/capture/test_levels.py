"""Names and kinds of levels: shared layers, layers without attention, two sides, cross-attention."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import attnflow as af
from attnflow import capture
from attnflow.capture._levels import Seen, levels_of
from attnflow.errors import CaptureError, InvalidArgument
from tests.capture.zoo import build, eager_twin, keywords, one_of


def test_shared_layers_are_levels_of_their_own() -> None:
    graph = capture.graph(build("ALBERT"), one_of(keywords("ALBERT"), 0))
    assert graph.names == ("layer 0", "layer 1", "layer 2")
    assert not np.allclose(graph.levels[0], graph.levels[2])


def test_layers_without_attention_are_identities_and_say_so() -> None:
    graph = capture.graph(build("Jamba"), one_of(keywords("Jamba"), 0))
    assert graph.names == ("layer 0 (no attention)", "layer 1", "layer 2 (no attention)")
    assert graph.kinds == ("identity", "self", "identity")
    np.testing.assert_array_equal(graph.levels[0], np.eye(12))
    assert graph.passive[0].all()
    assert not graph.passive[1].any()
    outputs = eager_twin(build("Jamba"))(**one_of(keywords("Jamba"), 0), output_attentions=True)
    attention = next(a for a in outputs.attentions if a is not None)
    np.testing.assert_allclose(
        graph.levels[1], 0.5 * attention[0].mean(0).detach().numpy() + 0.5 * np.eye(12), atol=1e-5
    )
    stack = capture.stack(build("Jamba"), one_of(keywords("Jamba"), 0))
    np.testing.assert_allclose(af.mix(stack).levels, graph.levels, atol=1e-6)


def test_a_sink_is_a_virtual_last_token() -> None:
    model, arguments = build("gpt-oss"), one_of(keywords("gpt-oss"), 0)
    graph = capture.graph(model, arguments, residual=None)
    assert graph.tokens.labels[-1] == "[sink]"
    assert graph.tokens.special[-1]
    assert graph.passive[:, -1].all()
    np.testing.assert_array_equal(graph.levels[:, -1, -1], 1)
    outputs = eager_twin(model)(**arguments, output_attentions=True)
    for level, attention in zip(graph.levels, outputs.attentions, strict=True):
        missing = 1 - attention[0].mean(0).sum(-1).detach().numpy()
        np.testing.assert_allclose(level[:-1, -1], missing, atol=1e-5)
        assert (missing > 0).all()
    np.testing.assert_allclose(graph.levels.sum(-1), 1, atol=1e-5)
    aside = capture.graph(model, arguments, drop_special=True)
    assert "[sink]" not in aside.tokens.labels
    assert aside.options["query"] == len(aside.tokens) - 1
    stack = capture.stack(model, arguments)
    np.testing.assert_allclose(af.mix(stack, residual=None).levels, graph.levels, atol=1e-6)


def test_windows_soft_caps_and_groups_leave_their_shape() -> None:
    graph = capture.graph(build("Gemma 2"), one_of(keywords("Gemma 2"), 0), residual=None)
    reach = np.subtract.outer(np.arange(12), np.arange(12))
    assert (graph.levels[0][(reach >= 5) | (reach < 0)] == 0).all()  # a window of 5
    assert (graph.levels[1][reach < 0] == 0).all()  # every second layer sees all
    assert (graph.levels[1][reach >= 5] > 0).all()


def test_an_encoder_decoder_made_of_two_models() -> None:
    model = build("BERT encoder and decoder")
    graph = capture.graph(model, one_of(keywords("BERT encoder and decoder"), 0))
    assert graph.names[:4] == ("encoder 0", "encoder 1", "encoder 2", "decoder 0 self")
    assert graph.kinds[-1] == "decoder cross"
    assert len(graph) == 9


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Mamba", "MambaModel cannot be captured: its 2 layers .*MambaMixer.* compute no attention"),
        ("Longformer", "LongformerModel cannot be captured: its attention is a window"),
        ("RWKV", "RwkvModel cannot be captured: what it returns as attention has shape"),
        ("SqueezeBERT", "SqueezeBertModel cannot be captured: .* comes from before the softmax"),
        ("Funnel", "FunnelModel cannot be captured: layer 1 attends from .* not a matrix over the input's positions"),
    ],
)
@pytest.mark.parametrize("length", [12, 5])  # 5 is the window and the position itself: square by chance
def test_models_that_cannot_be_captured_say_why(name: str, reason: str, length: int) -> None:
    with pytest.raises(CaptureError, match=reason):
        capture.graph(build(name), keywords(name, (length,)))


def test_a_stack_of_two_sides_points_to_the_graph() -> None:
    with pytest.raises(CaptureError, match="BartForConditionalGeneration has an encoder and a decoder.*capture.graph"):
        capture.stack(build("BART"), one_of(keywords("BART"), 0))


def test_discard_is_for_square_matrices() -> None:
    with pytest.raises(InvalidArgument, match="discard is a share of one square matrix"):
        capture.graph(build("BART"), one_of(keywords("BART"), 0), discard=0.5)
    graph = capture.graph(build("BERT"), one_of(keywords("BERT"), 0), discard=0.5)
    assert (graph.levels == 0).mean() > 0.4


def test_two_calls_of_one_layer_are_told_apart() -> None:
    model = torch.nn.Module()
    model.layers = torch.nn.ModuleList([torch.nn.Module(), torch.nn.Module()])
    for layer in model.layers:
        layer.first, layer.second = torch.nn.Module(), torch.nn.Module()
    calls = [Seen(f"layers.{i}.{part}", torch.eye(3)[None]) for i in range(2) for part in ("first", "second")]
    assert [level.name for level in levels_of(model, calls)] == ["layer 0", "layer 0 (2)", "layer 1", "layer 1 (2)"]


@pytest.mark.parametrize(
    "heads", ["mean", "max", "min", 2, -1, [1, 2, 3, 4], np.arange(1, 13).reshape(3, 4), lambda w: w.mean(0) ** 2]
)
@pytest.mark.parametrize("name", ["Llama", "DeBERTa-v2", "gpt-oss"])
def test_heads_are_mixed_as_mix_does(name: str, heads: object) -> None:
    model, arguments = build(name), one_of(keywords(name), 0)
    streamed = capture.graph(model, arguments, heads=heads)
    mixed = af.mix(capture.stack(model, arguments), heads=heads)
    np.testing.assert_allclose(streamed.levels, mixed.levels, atol=1e-6)
    assert streamed.options["heads"] == mixed.options["heads"]


def test_options_of_mix_are_those_of_mix() -> None:
    model, arguments = build("BERT"), one_of(keywords("BERT"), 0)
    options: dict[str, Any] = {"residual": [0.1, 0.2, 0.9], "top_k": 3, "threshold": 0.01}
    streamed = capture.graph(model, arguments, **options)
    np.testing.assert_allclose(streamed.levels, af.mix(capture.stack(model, arguments), **options).levels, atol=1e-6)


def test_half_the_storage() -> None:
    model, arguments = build("BERT"), one_of(keywords("BERT"), 0)
    small, full = capture.graph(model, arguments, dtype="float16"), capture.graph(model, arguments)
    assert small.levels.dtype == np.float16
    np.testing.assert_allclose(small.levels, full.levels, atol=1e-3)
    np.testing.assert_allclose(af.rollout(small).scores, af.rollout(full).scores, atol=3e-3)
