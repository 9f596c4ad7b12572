"""Blank-out, gradients and Captum as importances; targets; gradients that are asked for in vain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from attnflow import capture
from attnflow.errors import CaptureError, InvalidArgument
from tests.capture import texts
from tests.capture.fingerprint import fingerprint
from tests.capture.zoo import build

TEXT = "The keys to the cabinets"


def probability(model: Any, ids: list[int], target: int, position: int | None = None) -> float:
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids]))[0][0]
    return float(torch.softmax(logits if position is None else logits[position], -1)[target])


def by_vectors(model: Any, text: str, tokenizer: Any) -> tuple[torch.Tensor, Callable[[torch.Tensor], float]]:
    """What BERT's embedding layer makes of a text, and the logit of class 1 as a function of it."""
    arguments = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        vectors = model.bert.embeddings(input_ids=arguments["input_ids"])

    def logit(moved: torch.Tensor) -> float:
        handle = model.bert.embeddings.register_forward_hook(lambda *_: moved)
        with torch.no_grad():
            found = float(model(**arguments)[0][0, 1])
        handle.remove()
        return found

    return vectors, logit


@pytest.mark.parametrize("replace", ["unk", "mask", "pad", "remove"])
def test_blank_out_is_one_run_for_each_token(replace: str) -> None:
    model, tokenizer = build("BERT"), texts.wordpiece()
    found = capture.blank_out(model, TEXT, tokenizer, target=1, replace=replace, batch_size=3)
    ids = tokenizer(TEXT)["input_ids"]
    whole = probability(model, ids, 1)
    assert found.value == pytest.approx(whole)
    for j, (label, change) in enumerate(zip(found.tokens.labels, found.signed, strict=True)):
        if label in ("[CLS]", "[SEP]"):
            assert change == 0
            continue
        new = [] if replace == "remove" else [getattr(tokenizer, f"{replace}_token_id")]
        assert change == pytest.approx(whole - probability(model, [*ids[:j], *new, *ids[j + 1 :]], 1), abs=1e-6)
    np.testing.assert_array_equal(found.scores, np.abs(found.signed))


def test_the_masked_position_stays() -> None:
    model, tokenizer = build("DistilBERT"), texts.wordpiece()
    found = capture.blank_out(model, "The [MASK] to the", tokenizer, replace="remove")
    place = found.tokens.labels.index("[MASK]")
    ids = tokenizer("The [MASK] to the")["input_ids"]
    target = found.options["target"]
    assert found.signed[place] == 0
    assert found.value == pytest.approx(probability(model, ids, target, place))
    shorter = [*ids[:1], *ids[2:]]  # the mask moves up
    assert found.signed[1] == pytest.approx(found.value - probability(model, shorter, target, place - 1), abs=1e-6)


def test_a_second_mask_is_no_second_question() -> None:
    model, tokenizer = build("DistilBERT"), texts.wordpiece()
    found = capture.blank_out(model, "The [MASK] to the", tokenizer, replace="mask", batch_size=2)
    ids = tokenizer("The [MASK] to the")["input_ids"]
    place, target = found.tokens.labels.index("[MASK]"), found.options["target"]
    for j in (1, 3):
        masked = [*ids[:j], tokenizer.mask_token_id, *ids[j + 1 :]]
        assert found.signed[j] == pytest.approx(found.value - probability(model, masked, target, place), abs=1e-6)


def test_decoders_are_read_at_their_last_token() -> None:
    model, tokenizer = build("GPT-2"), texts.byte_level()
    found = capture.blank_out(model, "the keys", tokenizer, target=7, replace="remove")
    ids = tokenizer("the keys")["input_ids"]
    assert found.value == pytest.approx(probability(model, ids, 7, -1), abs=1e-6)
    assert found.signed[0] == pytest.approx(found.value - probability(model, ids[1:], 7, -1), abs=1e-6)


def test_encoder_decoder_models_have_references_of_what_they_read() -> None:
    model, tokenizer = build("BART"), texts.sentencepiece()
    found = capture.blank_out(model, ("The keys", "the table"), tokenizer, replace="unk", target=5)
    assert len(found) == len(tokenizer("The keys")["input_ids"])
    assert (found.scores > 0).any()
    gradient = capture.input_gradient(model, ("The keys", "the table"), tokenizer, target=5)
    assert len(gradient) == len(found)


@pytest.mark.parametrize("measure", ["sum", "l2", "gradient_x_input"])
def test_the_input_gradient_is_the_slope_of_the_logit(measure: str) -> None:
    model, tokenizer = build("BERT").double(), texts.wordpiece()
    before = fingerprint(model)
    found = capture.input_gradient(model, TEXT, tokenizer, target=1, measure=measure)
    assert fingerprint(model) == before
    vectors, logit = by_vectors(model, TEXT, tokenizer)

    for token in (0, 2):
        slopes = np.zeros(vectors.shape[-1])
        for d in range(len(slopes)):
            step = torch.zeros_like(vectors)
            step[0, token, d] = 1e-5
            slopes[d] = (logit(vectors + step) - logit(vectors - step)) / 2e-5
        vector = vectors[0, token].numpy()
        expected = {"sum": slopes.sum(), "l2": np.linalg.norm(slopes), "gradient_x_input": slopes @ vector}[measure]
        assert found.signed[token] == pytest.approx(expected, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("name", ["BERT", "XLNet", "DeBERTa-v2", "Llama", "T5", "ModernBERT"])
def test_gradients_of_a_list_are_those_of_each(name: str) -> None:
    model, tokenizer = build(name), texts.wordpiece()
    lines = ["The keys [MASK]", "[MASK] table are on"]
    together = capture.input_gradient(model, lines, tokenizer, target=[1, 0])
    for line, one, target in zip(lines, together, (1, 0), strict=True):
        alone = capture.input_gradient(model, line, tokenizer, target=target)
        np.testing.assert_allclose(one.signed, alone.signed, atol=1e-4 * np.abs(alone.signed).max() + 1e-7)


def test_the_predicted_class_is_the_default_target() -> None:
    model, tokenizer = build("BERT"), texts.wordpiece()
    with torch.no_grad():
        best = int(model(**tokenizer(TEXT, return_tensors="pt")).logits.argmax())
    default, named = (
        capture.blank_out(model, TEXT, tokenizer),
        capture.blank_out(model, TEXT, tokenizer, target=f"label_{best}"),
    )
    assert default.options["target"] == best
    np.testing.assert_array_equal(default.signed, named.signed)


def test_a_pair_is_a_difference_and_a_function_is_itself() -> None:
    model, tokenizer = build("BERT"), texts.wordpiece()
    pair, first, second = (capture.input_gradient(model, TEXT, tokenizer, target=t).signed for t in ((0, 1), 0, 1))
    np.testing.assert_allclose(pair, first - second, atol=1e-6)
    by_function = capture.input_gradient(
        model, TEXT, tokenizer, target=lambda outputs: outputs.logits[:, 0] - outputs.logits[:, 1]
    )
    np.testing.assert_allclose(by_function.signed, pair, atol=1e-6)
    blanked, one, other = (capture.blank_out(model, TEXT, tokenizer, target=t).signed for t in ((0, 1), 0, 1))
    np.testing.assert_allclose(blanked, one - other, atol=1e-6)


def test_a_token_is_named_as_it_is_written() -> None:
    model, tokenizer = build("GPT-2"), texts.byte_level()
    spaced = tokenizer.convert_tokens_to_ids("Ġkeys")
    assert isinstance(spaced, int)
    named = capture.input_gradient(model, "the table", tokenizer, target="keys")
    numbered = capture.input_gradient(model, "the table", tokenizer, target=spaced)
    np.testing.assert_array_equal(named.signed, numbered.signed)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (2, "target 2 is out of range: BertForSequenceClassification scores 2 outputs, 0 to 1"),
        (-1, "target -1 is out of range"),
        ("positive", "no class is called 'positive'. The classes are: LABEL_0, LABEL_1"),
        ((0, 1, 2), "a pair whose difference is taken, got 3"),
        (0.5, "a target is a class or token"),
        ([0, 1], "a list of 2 targets for 1 inputs"),
        (lambda outputs: "high", "must return a tensor"),
        ((0, 7), "target 7 is out of range"),
    ],
)
@pytest.mark.parametrize("call", ["blank_out", "input_gradient", "stack"])
def test_targets_that_do_not_fit(target: Any, message: str, call: str) -> None:
    options: dict[str, Any] = {"record": ("attention", "gradients")} if call == "stack" else {}
    with pytest.raises((CaptureError, InvalidArgument), match=message):
        getattr(capture, call)(build("BERT"), TEXT, texts.wordpiece(), target=target, **options)


def test_tokens_that_are_not_one_token() -> None:
    with pytest.raises(CaptureError, match="is not one token of this tokenizer: it becomes"):
        capture.input_gradient(build("GPT-2"), "the", texts.byte_level(), target="cabinets are")
    with pytest.raises(CaptureError, match="a tokenizer is needed to find the token"):
        capture.input_gradient(build("GPT-2"), [5, 6], target="keys")


def test_models_without_a_head_and_outputs_without_a_place() -> None:
    with pytest.raises(CaptureError, match="ElectraModel has no head that scores"):
        capture.input_gradient(build("ELECTRA"), TEXT, texts.wordpiece(), target=0)
    with pytest.raises(CaptureError, match="Put the mask token where the model shall predict"):
        capture.blank_out(build("RoBERTa"), TEXT, texts.wordpiece())
    with pytest.raises(CaptureError, match=r"2 masked positions"):
        capture.blank_out(build("DistilBERT"), "[MASK] keys [MASK]", texts.wordpiece())


def test_a_replacement_that_the_tokenizer_lacks() -> None:
    with pytest.raises(CaptureError, match='this tokenizer has no mask token.*"remove" and "mean" need none'):
        capture.blank_out(build("GPT-2"), "the", texts.byte_level(), replace="mask")
    with pytest.raises(CaptureError, match='a tokenizer is needed to know the unk token.*"remove" needs none'):
        capture.blank_out(build("GPT-2"), [5, 6])
    with pytest.raises(InvalidArgument, match="cannot replace a token by 'zero'"):
        capture.blank_out(build("GPT-2"), "the", texts.byte_level(), replace="zero")
    with pytest.raises(InvalidArgument, match="unknown measure"):
        capture.input_gradient(build("GPT-2"), "the", texts.byte_level(), measure="l1")


@pytest.mark.parametrize("name", ["BERT", "DeBERTa-v2"])
def test_no_gradients_under_inference_mode(name: str) -> None:
    model, tokenizer = build(name), texts.wordpiece()
    with torch.inference_mode():
        assert len(capture.graph(model, TEXT, tokenizer))  # attention alone is no matter
        with pytest.raises(CaptureError, match=r"gradients cannot be recorded under torch.inference_mode\(\)"):
            capture.graph(model, TEXT, tokenizer, edges="gradient")
        with pytest.raises(CaptureError, match="inference_mode"):
            capture.input_gradient(model, TEXT, tokenizer)
        made_inside = build(name)
    with pytest.raises(CaptureError, match="the model was made under"):
        capture.input_gradient(made_inside, TEXT, tokenizer)
    with torch.no_grad():
        assert capture.input_gradient(model, TEXT, tokenizer).scores.any()


def test_a_target_that_no_attention_leads_to() -> None:
    with pytest.raises(CaptureError, match="does not depend on the model's attention"):
        capture.stack(
            build("BERT"),
            TEXT,
            texts.wordpiece(),
            record=("attention", "gradients"),
            target=lambda o: o.logits.detach()[:, 0],
        )


def test_captum_is_one_more_reference() -> None:
    pytest.importorskip("captum", reason="captum is not installed")
    model, tokenizer = build("BERT"), texts.wordpiece()
    before = fingerprint(model)
    found = capture.captum(model, TEXT, "InputXGradient", tokenizer, target=1)
    own = capture.input_gradient(model, TEXT, tokenizer, target=1, measure="gradient_x_input")
    np.testing.assert_allclose(found.signed, own.signed, atol=1e-6)
    integrated = capture.captum(model, TEXT, "IntegratedGradients", tokenizer, target=1, n_steps=64)
    assert integrated.method == "captum IntegratedGradients"
    vectors, logit = by_vectors(model, TEXT, tokenizer)
    words = [("[PAD]" if t not in ("[CLS]", "[SEP]") else t) for t in found.tokens.labels]
    with torch.no_grad():
        emptied = model.bert.embeddings(input_ids=torch.tensor([tokenizer.convert_tokens_to_ids(words)]))
    assert integrated.signed.sum() == pytest.approx(logit(vectors) - logit(emptied), abs=2e-2)  # completeness
    assert fingerprint(model) == before


def test_captum_ablates_whole_tokens() -> None:
    pytest.importorskip("captum", reason="captum is not installed")
    model, tokenizer = build("BERT"), texts.wordpiece()
    found = capture.captum(model, TEXT, "FeatureAblation", tokenizer, target=1, baselines=0)
    vectors, logit = by_vectors(model, TEXT, tokenizer)
    without = vectors.clone()
    without[0, 2] = 0
    assert found.signed[2] == pytest.approx(logit(vectors) - logit(without), abs=1e-5)
    with pytest.raises(CaptureError, match="captum.attr has no method 'Integrated'"):
        capture.captum(model, TEXT, "Integrated", tokenizer)
    with pytest.raises(InvalidArgument, match="IntegratedGradients has no option 'steps'. Did you mean 'n_steps'"):
        capture.captum(model, TEXT, "IntegratedGradients", tokenizer, steps=3)


@pytest.mark.parametrize("call", ["blank_out", "input_gradient", "captum"])
def test_weights_that_are_not_numbers(call: str) -> None:
    """sdpa skips NaN in some places and goes on, so nothing in the output would show it."""
    model = build("BERT")
    with torch.no_grad():
        model.bert.encoder.layer[1].attention.self.query.weight[0, 0] = torch.nan
    with pytest.raises(
        CaptureError, match=r"hold NaN or infinity, at bert.encoder.layer.1.attention.self.query.weight"
    ):
        getattr(capture, call)(model, TEXT, tokenizer=texts.wordpiece(), target=1)


def test_a_reference_reads_like_an_array() -> None:
    found = capture.input_gradient(build("BERT"), TEXT, texts.wordpiece(), target=0)
    np.testing.assert_array_equal(np.asarray(found), found.scores)
    [(label, score)] = found.top(1)
    assert score == found.scores.max()
    assert label in found.tokens.labels
    with pytest.raises(InvalidArgument, match="k of at least 1"):
        found.top(0)
