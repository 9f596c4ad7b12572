from __future__ import annotations

import copy
import dataclasses
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidArgument, InvalidAttention
from tests.strategies import attention


@pytest.fixture
def weights(rng: np.random.Generator) -> np.ndarray:
    return attention(rng, (2, 3, 4, 4), "soft", causal=False)


def test_knows_its_size(weights: np.ndarray) -> None:
    stack = af.AttentionStack(weights, ["a", "b", "c", "d"])
    assert (stack.layers, stack.heads, len(stack), len(stack.tokens)) == (2, 3, 2, 4)
    assert repr(stack) == "AttentionStack(2 layers × 3 heads × 4 tokens, float64)"


def test_a_list_of_layers_is_a_stack(weights: np.ndarray) -> None:
    assert (af.AttentionStack(list(weights)).weights == weights).all()
    assert (af.AttentionStack(weights.tolist()).weights == weights).all()


def test_cannot_change_under_its_user(weights: np.ndarray) -> None:
    stack = af.AttentionStack(weights)
    with pytest.raises(ValueError, match="read-only"):
        stack.weights[0] = 0
    before = weights.copy()
    weights[:] = 7
    assert (stack.weights == before).all()


def test_a_read_only_array_is_not_copied(weights: np.ndarray) -> None:
    weights.flags.writeable = False
    assert af.AttentionStack(weights).weights is weights


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rounding_of_the_storage_is_accepted(weights: np.ndarray, dtype: type) -> None:
    stack = af.AttentionStack(weights.astype(dtype))
    assert stack.weights.dtype == dtype
    np.testing.assert_allclose(af.attribute(stack, "rollout").scores.sum(-1), 1, rtol=1e-12)


def test_padding_is_cropped_wherever_it_is(rng: np.random.Generator) -> None:
    padding = np.array([True, False, False, True, False])  # left, right and inside: nothing is assumed
    real = attention(rng, (2, 2, 3, 3), "soft", causal=False)
    weights = np.full((2, 2, 5, 5), np.nan)  # what a model puts into the rows of padding is nobody's business
    weights[:, :, 1:, 0] = weights[:, :, :, 3] = 0
    weights[np.ix_([0, 1], [0, 1], [1, 2, 4], [1, 2, 4])] = real
    stack = af.AttentionStack(weights, list("pabpc"), padding=padding, gradients=np.ones_like(weights))
    assert stack.tokens.labels == ("a", "b", "c")
    assert (stack.weights == real).all()
    assert stack.gradients is not None
    assert stack.gradients.shape == real.shape
    assert stack.cropped.tolist() == padding.tolist()
    assert stack.padding.tolist() == [False] * 3
    assert dataclasses.replace(stack, tokens=af.Tokens(["x", "y", "z"])).tokens.labels == ("x", "y", "z")
    by_tokens = af.AttentionStack(weights, af.Tokens(list("pabpc"), padding=padding))
    assert (by_tokens.weights == real).all()


def test_all_zero_rows_are_accepted_where_the_padding_mask_says_so(weights: np.ndarray) -> None:
    padded = np.zeros((2, 3, 5, 5))
    padded[:, :, :4, :4] = weights
    assert (af.AttentionStack(padded, padding=[0, 0, 0, 0, 1]).weights == weights).all()
    with pytest.raises(InvalidAttention, match="row 4 of layer 0, head 0 is all zero. If this position is padding"):
        af.AttentionStack(padded)


def spoiled(weights: np.ndarray, value: float) -> np.ndarray:
    weights = weights.copy()
    weights[1, 2, 3, 0] = value
    return weights


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: spoiled(w, np.nan), "must be finite; layer 1, head 2, query 3, key 0 is nan"),
        (lambda w: spoiled(w, np.inf), "must be finite; layer 1, head 2, query 3, key 0 is inf"),
        (lambda w: spoiled(w, -0.25), "must not be negative; layer 1, head 2, query 3, key 0 is -0.25"),
        (lambda w: spoiled(w, w[1, 2, 3, 0] + 0.5), "row 3 of layer 1, head 2 sums to 1.5 (+0.5"),
        (lambda w: w[:, :, :3], "must be square, got 3 queries by 4 keys. With a cache of past keys"),
        (lambda w: w[0], "must have 4 dimensions (layers, heads, queries, keys), got 3: shape (3, 4, 4)"),
        (lambda w: w[None], "Pick one item of the batch"),
        (lambda w: [w[0], w[1, :2]], "must have the same shape, got layer 0 (3, 4, 4), layer 1 (2, 4, 4)"),
        (lambda w: w[:0], "are empty: shape (0, 3, 4, 4)"),
        (lambda w: [], "are empty"),
        (lambda w: w[:, :0], "are empty"),
        (lambda w: w[:, :, :0, :0], "are empty: shape (2, 3, 0, 0)"),
        (lambda w: w.astype(object), "must be real numbers, got a ndarray of type object"),
        (lambda w: "attention", "must be real numbers, got a str"),
        (lambda w: None, "must be real numbers, got a NoneType"),
        (lambda w: w.astype(str), "must be real numbers"),
        (lambda w: w.astype(complex), "of type complex128"),
        (lambda w: [[[[0.5, 0.5], [1.0]]]], "layer 0 of the attention weights must be one rectangular array"),
    ],
)
def test_bad_weights(weights: np.ndarray, change: Any, message: str) -> None:
    with pytest.raises(InvalidAttention) as error:
        af.AttentionStack(change(weights))
    assert message in str(error.value)
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_wrong_row_is_named_with_how_much(weights: np.ndarray, dtype: type) -> None:
    weights = weights.astype(dtype)
    weights[1, 0, 2] *= 0.41
    with pytest.raises(InvalidAttention, match=r"row 2 of layer 1, head 0 sums to 0\.4\d* \(-0\.59"):
        af.AttentionStack(weights)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"tokens": ["a"]}, InvalidArgument, "got 1 tokens for attention over 4 positions"),
        ({"padding": [True] * 4}, InvalidAttention, "all 4 positions are marked as padding"),
        ({"padding": [True]}, InvalidArgument, "padding mask must be 4 booleans"),
        ({"padding": [1, 0, 0, 0]}, InvalidAttention, "went to positions marked as padding"),
        ({"gradients": np.ones((2, 3, 4, 3))}, InvalidAttention, "gradients must be square"),
        (
            {"gradients": np.ones((1, 3, 4, 4))},
            InvalidAttention,
            "gradients have shape (1, 3, 4, 4), weights (2, 3, 4, 4)",
        ),
        ({"gradients": np.full((2, 3, 4, 4), np.nan)}, InvalidAttention, "gradients hold NaN"),
    ],
)
def test_what_does_not_fit_the_weights(
    weights: np.ndarray, arguments: dict[str, Any], error: type, message: str
) -> None:
    with pytest.raises(error) as caught:
        af.AttentionStack(weights, **arguments)
    assert message in str(caught.value)


class TestFromOutputs:
    def test_any_item_of_a_tuple_or_an_output(self, weights: np.ndarray) -> None:
        batch = [np.stack([layer[::-1], layer]) for layer in weights]
        for outputs in (
            tuple(batch),
            SimpleNamespace(attentions=tuple(batch)),
            {"attentions": tuple(batch)},
            np.array(batch),
        ):
            assert (af.AttentionStack.from_outputs(outputs, index=1).weights == weights).all()
            assert (af.AttentionStack.from_outputs(outputs, index=-2).weights == weights[:, ::-1]).all()
        with pytest.raises(InvalidArgument, match="there is no batch item 2: there are 2"):
            af.AttentionStack.from_outputs(tuple(batch), index=2)

    @pytest.mark.parametrize(
        ("outputs", "message"),
        [
            (SimpleNamespace(attentions=None), "holds no attentions. Run the model with output_attentions=True"),
            (SimpleNamespace(attentions=()), "or use attnflow.capture"),
            ((), "holds no attentions"),
            ({"logits": 1}, "without attentions"),
            (SimpleNamespace(logits=1), "got a SimpleNamespace without attentions"),
            (SimpleNamespace(cross_attentions=(1,), attentions=(1,)), "has cross-attention."),
            (SimpleNamespace(encoder_attentions=(1,)), "encoder-decoder model"),
            (((np.ones((1, 1, 1, 1)),),), "If these are the attentions of generate()"),
            ((np.ones((1, 2, 2)),), "layer 0 of the attentions must have 4 dimensions (batch, heads, queries, keys)"),
            (((1.0), 2.0), "got shape ()"),
        ],
    )
    def test_refuses_with_the_reason(self, outputs: Any, message: str) -> None:
        with pytest.raises(InvalidAttention) as error:
            af.AttentionStack.from_outputs(outputs)
        assert message in str(error.value)

    def test_padding_of_the_item(self, weights: np.ndarray) -> None:
        padded = np.zeros((2, 1, 3, 6, 6))
        padded[:, 0, :, 2:, 2:] = weights
        stack = af.AttentionStack.from_outputs(tuple(padded), padding=np.array([1, 1, 0, 0, 0, 0]))
        assert (stack.weights == weights).all()


class TestForeignArrays:
    @pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
    def test_torch(self, weights: np.ndarray, dtype: str) -> None:
        torch = pytest.importorskip("torch")
        tensor = torch.tensor(weights, dtype=getattr(torch, dtype), requires_grad=True)
        stack = af.AttentionStack(tensor, padding=torch.zeros(4, dtype=torch.bool))
        np.testing.assert_allclose(stack.weights, weights, atol=4e-3)
        outputs = tuple(layer[None] for layer in tensor)
        np.testing.assert_array_equal(af.AttentionStack.from_outputs(outputs).weights, stack.weights)

    @pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
    def test_jax(self, weights: np.ndarray, dtype: str) -> None:
        jax_numpy = pytest.importorskip("jax.numpy")
        array = jax_numpy.asarray(weights, dtype=dtype)
        np.testing.assert_allclose(af.AttentionStack(array).weights, weights, atol=4e-3)

    def test_whole_numbers(self) -> None:
        assert af.AttentionStack(np.eye(3, dtype=int)[None, None]).weights.dtype == np.float64


class TestHarderCases:
    @pytest.mark.parametrize(("error", "accepted"), [(0.004, True), (-0.004, True), (0.006, False), (-0.006, False)])
    def test_the_tolerance_is_what_bfloat16_needs(self, error: float, accepted: bool) -> None:
        weights = np.array([[[[0.5, 0.5 + error], [0.5, 0.5]]]])
        if accepted:
            assert af.AttentionStack(weights).layers == 1
        else:
            with pytest.raises(InvalidAttention, match="row 0 of layer 0, head 0 sums to"):
                af.AttentionStack(weights)

    def test_a_negative_weight_is_found_though_its_row_sums_to_1(self) -> None:
        with pytest.raises(InvalidAttention, match="query 0, key 1 is -0.5"):
            af.AttentionStack([[[[1.5, -0.5], [0, 1]]]])

    def test_messages_name_the_positions_of_the_caller(self) -> None:
        weights = np.tile(np.eye(4), (1, 1, 1, 1))
        weights[0, 0, 3] = [1, 0, 0, 0]  # attends to padding
        with pytest.raises(InvalidAttention, match="row 3 of layer 0, head 0 sums to 0 .*True means padding"):
            af.AttentionStack(weights, padding=[1, 0, 0, 0])

    def test_two_masks_that_disagree_are_refused(self) -> None:
        tokens = af.Tokens(list("abcd"), padding=[0, 0, 0, 1])  # type: ignore[list-item]
        with pytest.raises(InvalidArgument, match="Give one mask, in one place"):
            af.AttentionStack(np.eye(4)[None, None], tokens, padding=[0] * 4)

    def test_a_view_of_somebodys_memory_is_copied(self, weights: np.ndarray) -> None:
        view = weights.view()
        view.flags.writeable = False
        before = weights.copy()
        stack = af.AttentionStack(view)
        weights[:] = 99
        assert (stack.weights == before).all()

    def test_copies_stay_read_only(self, weights: np.ndarray) -> None:
        stack = af.AttentionStack(weights)
        for again in (pickle.loads(pickle.dumps(stack)), copy.deepcopy(stack)):
            assert not again.weights.flags.writeable
            assert not again.tokens.special.flags.writeable
            assert (again.weights == weights).all()

    @pytest.mark.parametrize("dtype", [">f4", ">f8", "longdouble"])
    def test_any_real_numbers(self, weights: np.ndarray, dtype: str) -> None:
        assert af.AttentionStack(weights.astype(dtype)).weights.dtype in (np.float32, np.float64)

    def test_nested_lists_of_tensors(self, weights: np.ndarray) -> None:
        torch = pytest.importorskip("torch")
        nested = [[torch.tensor(head, requires_grad=True) for head in layer] for layer in weights]
        assert (af.AttentionStack(nested).weights == weights).all()
        with pytest.raises(InvalidAttention, match="attention weights must be one rectangular array"):
            af.AttentionStack(torch.empty(1, 1, 2, 2, device="meta"))

    def test_a_real_model_output(self) -> None:
        outputs = pytest.importorskip("transformers.modeling_outputs")
        torch = pytest.importorskip("torch")
        layers = (torch.eye(3).expand(2, 4, 3, 3),) * 5
        assert af.AttentionStack.from_outputs(outputs.BaseModelOutput(attentions=layers), index=1).heads == 4
        for empty in (outputs.BaseModelOutput(attentions=(None, None)), outputs.BaseModelOutput()):
            with pytest.raises(InvalidAttention, match="holds no attentions"):
                af.AttentionStack.from_outputs(empty)
        with pytest.raises(InvalidAttention, match="encoder-decoder"):
            af.AttentionStack.from_outputs(outputs.Seq2SeqLMOutput())
        with pytest.raises(InvalidAttention, match="return_dict=False"):
            af.AttentionStack.from_outputs((torch.zeros(1, 3, 8), layers))
