"""Any set of tokens replaced, against the same done by hand; Grad-CAM against its formula; a twin that has learnt nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import transformers

from attnflow import capture
from attnflow.errors import CaptureError, InvalidArgument
from tests.capture import texts
from tests.capture.fingerprint import fingerprint
from tests.capture.zoo import build

TEXT = "The keys to the cabinets"


def probability(model: Any, target: int, position: int | None = None, **arguments: Any) -> float:
    with torch.no_grad():
        logits = model(**arguments)[0][0]
    return float(torch.softmax(logits if position is None else logits[position], -1)[target])


def masks(count: int, several: int = 6) -> np.ndarray:
    return np.random.default_rng(4).random((several, count)) < 0.6


@pytest.mark.parametrize("replace", ["unk", "mask", "pad", "remove"])
@pytest.mark.parametrize("name", ["BERT", "DeBERTa-v2", "Llama"])
def test_any_set_of_tokens_is_one_run_for_each_variant(name: str, replace: str) -> None:
    model, tokenizer = build(name), texts.wordpiece()
    before = fingerprint(model)
    found = capture.ablation(model, TEXT, tokenizer, target=1, replace=replace, batch_size=4)
    ids = tokenizer(TEXT)["input_ids"]
    place = -1 if name == "Llama" else None
    assert found.value == pytest.approx(probability(model, 1, place, input_ids=torch.tensor([ids])), abs=1e-6)
    asked = masks(len(ids))
    for kept, value in zip(asked, found(asked), strict=True):
        new = getattr(tokenizer, f"{replace}_token_id", None)
        stays = kept | ~found.removable
        variant = [i if keep else new for i, keep in zip(ids, stays, strict=True)]
        variant = [i for i in variant if i is not None]
        assert value == pytest.approx(probability(model, 1, place, input_ids=torch.tensor([variant])), abs=1e-5)
    assert fingerprint(model) == before


def test_the_mean_vector_stands_in_the_tokens_place() -> None:
    model, tokenizer = build("BERT"), texts.wordpiece()
    found = capture.ablation(model, TEXT, tokenizer, target=1, replace="mean")
    ids = torch.tensor([tokenizer(TEXT)["input_ids"]])
    table = model.bert.embeddings.word_embeddings.weight
    asked = masks(ids.shape[1])
    for kept, value in zip(asked, found(asked), strict=True):
        vectors = table[ids].clone()
        vectors[0, torch.from_numpy(~(kept | ~found.removable))] = table.mean(0)
        assert value == pytest.approx(probability(model, 1, inputs_embeds=vectors.detach()), abs=1e-5)


def test_keeping_everything_changes_nothing_and_special_tokens_stay() -> None:
    model, tokenizer = build("BERT"), texts.wordpiece()
    for replace in ("unk", "remove", "mean"):
        found = capture.ablation(model, TEXT, tokenizer, replace=replace)
        whole, empty = found(np.array([[True] * len(found.tokens), [False] * len(found.tokens)]))
        assert whole == pytest.approx(found.value)
        assert empty != pytest.approx(found.value)
        assert found.removable.tolist() == (~found.tokens.special).tolist()


def test_a_list_gives_a_list_each_with_its_own_target() -> None:
    model, tokenizer = build("BERT"), texts.wordpiece()
    one, other = capture.ablation(model, [TEXT, "the table"], tokenizer, target=[0, 1])
    assert (one.target, other.target) == (0, 1)
    assert other.value == pytest.approx(capture.ablation(model, "the table", tokenizer, target=1).value, abs=1e-6)


def test_an_input_that_loses_all_its_tokens_is_one_token_without_content() -> None:
    model, tokenizer = build("GPT-2"), texts.byte_level()
    found = capture.ablation(model, "the keys", tokenizer, target=7, replace="remove")
    [empty] = found(np.zeros((1, len(found.tokens)), dtype=bool))
    assert empty == pytest.approx(
        probability(model, 7, -1, input_ids=torch.tensor([[tokenizer.eos_token_id]])), abs=1e-6
    )


def test_bad_masks_and_replacements() -> None:
    model, tokenizer = build("BERT"), texts.wordpiece()
    found = capture.ablation(model, TEXT, tokenizer)
    with pytest.raises(InvalidArgument, match=r"boolean \[variant, token\]"):
        found(np.ones((2, 3), dtype=bool))
    with pytest.raises(InvalidArgument, match="cannot replace a token by 'average'"):
        capture.ablation(model, TEXT, tokenizer, replace="average")
    with pytest.raises(CaptureError, match="this tokenizer has no mask token"):
        capture.ablation(build("GPT-2"), "the", texts.byte_level(), replace="mask")


def test_grad_cam_is_its_formula() -> None:
    model, tokenizer = build("BERT").double(), texts.wordpiece()
    before = fingerprint(model)
    found = capture.grad_cam(model, TEXT, tokenizer, target=1)
    assert fingerprint(model) == before
    arguments = tokenizer(TEXT, return_tensors="pt")
    outputs = model(**arguments, output_hidden_states=True)
    states = outputs.hidden_states[-2]  # what enters the last block
    [gradient] = torch.autograd.grad(outputs.logits[0, 1], [states])
    expected = (gradient[0].mean(0) * states[0]).sum(-1).clamp(min=0).detach().numpy()
    np.testing.assert_allclose(found.signed, expected, atol=1e-9)
    assert (found.signed > 0).any()


@pytest.mark.parametrize("name", ["DistilBERT", "ModernBERT", "Llama", "GPT-2", "DeBERTa-v2"])
def test_grad_cam_finds_the_blocks_of_every_family(name: str) -> None:
    model = build(name)
    tokenizer = texts.wordpiece()
    text = "The [MASK] to" if "BERT" in name and name != "DeBERTa-v2" else TEXT
    found = capture.grad_cam(model, text, tokenizer, layer=1)
    assert len(found) == len(tokenizer(text)["input_ids"])
    assert (found.signed >= 0).all()
    with pytest.raises(InvalidArgument, match="no layer 9"):
        capture.grad_cam(model, text, tokenizer, layer=9)


def test_a_randomised_twin_has_the_same_numbers_in_other_places() -> None:
    model, tokenizer = build("BERT"), texts.wordpiece()
    before = fingerprint(model)
    twin = capture.randomised(model, seed=1)
    assert fingerprint(model) == before
    for (name, own), other in zip(model.named_parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(own.flatten().sort().values, other.flatten().sort().values)
        if own.numel() > 50 and len(own.unique()) > 1:
            assert not torch.equal(own, other), name
    graph, changed = (capture.graph(one, TEXT, tokenizer).levels for one in (model, twin))
    assert np.abs(graph - changed).max() > 0.005
    again = capture.randomised(model, seed=1)
    for one, other in zip(twin.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


def test_shapley_values_are_drawn_from_the_seed() -> None:
    pytest.importorskip("captum", reason="captum is not installed")
    model, tokenizer = build("BERT"), texts.wordpiece()

    def draw(seed: int) -> Any:
        return capture.captum(model, TEXT, "KernelShap", tokenizer, target=1, n_samples=20, seed=seed).signed

    np.testing.assert_array_equal(draw(1), draw(1))
    assert not np.array_equal(draw(1), draw(2))


@pytest.mark.parametrize("replace", ["mean", "blank"])
def test_patches_of_an_image_are_replaced_in_its_pixels(replace: str) -> None:
    tf: Any = transformers  # whose classes are not typed
    config = tf.ViTConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, image_size=8, patch_size=4, num_labels=3,
        initializer_range=0.4,
    )  # fmt: skip
    torch.manual_seed(0)
    model = tf.ViTForImageClassification(config).eval()
    pixels = torch.rand(3, 8, 8)
    found = capture.ablation(model, pixels, target=1, replace=replace)
    assert found.removable.tolist() == [False, True, True, True, True]  # the class token, four patches
    filler = pixels.mean(dim=(1, 2), keepdim=True) if replace == "mean" else torch.zeros(3, 1, 1)
    altered = pixels.clone()
    altered[:, :4, 4:] = filler  # the second patch
    altered[:, 4:, :4] = filler  # the third
    kept = np.array([[True, True, False, False, True], [True] * 5])
    with torch.no_grad():
        expected = model(pixel_values=torch.stack([altered, pixels])).logits.softmax(-1)[:, 1].numpy()
    np.testing.assert_allclose(found(kept), expected, atol=1e-6)
    assert found.value == pytest.approx(expected[1], abs=1e-6)
    with pytest.raises(InvalidArgument, match="cannot replace a patch by 'unk'"):
        capture.ablation(model, pixels, replace="unk")
