"""Text that the model writes: one run over prompt and answer, and the row that predicted each token."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import attnflow as af
from attnflow import capture
from attnflow.errors import CaptureError, InvalidArgument
from tests.capture import texts
from tests.capture.fingerprint import fingerprint
from tests.capture.zoo import build

TEXT = "The keys to"


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "BLOOM", "gpt-oss", "Falcon"])
def test_prompt_and_answer_in_one_run(name: str) -> None:
    model, tokenizer = build(name, training=True), texts.byte_level()
    before = fingerprint(model)
    graph = capture.graph(model, TEXT, tokenizer, generate=4)
    assert fingerprint(model) == before
    prompt = tokenizer(TEXT)["input_ids"]
    written = graph.options["predicted"]
    count = len(prompt) + len(written)
    assert 1 <= len(written) <= 4
    ids = list(prompt)
    for i, one in enumerate(written):  # the plain loop: the likeliest token, again and again
        with torch.no_grad():
            best = int(model.eval()(input_ids=torch.tensor([ids]))[0][0, -1].argmax())
        assert tokenizer.convert_ids_to_tokens(best) == one["token"]
        assert one["row"] == len(prompt) - 1 + i
        ids.append(best)
    assert len([label for label in graph.tokens.labels if label != "[sink]"]) == count
    whole = capture.graph(model, ids, tokenizer)
    np.testing.assert_allclose(graph.levels, whole.levels, atol=1e-5)


@pytest.mark.parametrize("name", ["T5", "BART", "Marian"])
def test_an_encoder_decoder_writes_too(name: str) -> None:
    model, tokenizer = build(name), texts.sentencepiece()
    model.generation_config.forced_eos_token_id = None  # which would end the text on its own account
    graph = capture.graph(model, TEXT, tokenizer, generate=3)
    source = tokenizer(TEXT)["input_ids"]
    written = graph.options["predicted"]
    assert len(graph.tokens) == len(source) + len(written)  # the start token, and all but the last written one
    assert [one["row"] for one in written] == [len(source) + i for i in range(len(written))]
    decoder = [model.config.decoder_start_token_id]
    for one in written:
        arguments = {"input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([decoder])}
        with torch.no_grad():
            decoder.append(int(model(**arguments).logits[0, -1].argmax()))
        assert one["token"] == tokenizer.convert_ids_to_tokens(decoder[-1]) or one["token"] == str(decoder[-1])


def test_a_target_text_is_teacher_forced() -> None:
    model, tokenizer = build("BART"), texts.sentencepiece()
    graph = capture.graph(model, (TEXT, "the table"), tokenizer)
    source, target = tokenizer(TEXT)["input_ids"], tokenizer(text_target="the table")["input_ids"]
    start = model.config.decoder_start_token_id
    inside = {"input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([[start, *target[:-1]]])}
    np.testing.assert_allclose(graph.levels, capture.graph(model, inside).levels, atol=1e-6)
    assert [one["token"] for one in graph.options["predicted"]] == tokenizer.convert_ids_to_tokens(target)
    assert graph.options["query"] == len(graph.tokens) - 1


def test_target_texts_of_different_lengths_in_a_batch() -> None:
    model, tokenizer = build("T5"), texts.sentencepiece()
    pairs = [(TEXT, "the table, the keys"), ("keys", "a")]
    for pair, graph in zip(pairs, capture.graph(model, pairs, tokenizer), strict=True):
        alone = capture.graph(model, pair, tokenizer)
        assert graph.tokens == alone.tokens
        np.testing.assert_allclose(graph.levels, alone.levels, atol=1e-5)


def test_rollout_of_written_tokens_reaches_the_prompt_only_backwards() -> None:
    graph = capture.graph(build("GPT-2"), TEXT, texts.byte_level(), generate=3)
    for one in graph.options["predicted"]:
        row = af.rollout(graph, queries=[one["row"]], levels=[-1]).of(one["row"])
        assert row[one["row"] + 1 :].sum() == 0
        assert row.sum() == pytest.approx(1)


@pytest.mark.parametrize("count", [0, -1, True, 2.5])
def test_a_number_of_tokens_that_is_none(count: Any) -> None:
    with pytest.raises(InvalidArgument, match="generate is the number of tokens"):
        capture.graph(build("GPT-2"), TEXT, texts.byte_level(), generate=count)


def test_models_that_do_not_write() -> None:
    with pytest.raises(CaptureError, match="BertForSequenceClassification does not generate text"):
        capture.graph(build("BERT"), TEXT, texts.wordpiece(), generate=2)
    with pytest.raises(InvalidArgument, match="generate= needs text or token ids"):
        capture.graph(build("GPT-2"), {"input_ids": torch.tensor([[5]])}, generate=2)
