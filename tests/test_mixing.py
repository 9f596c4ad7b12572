from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import attnflow as af
from attnflow.errors import InvalidArgument, InvalidAttention
from attnflow.mixing import EDGES
from tests import naive
from tests.strategies import seeds


def test_the_default_is_the_papers(stack: af.AttentionStack) -> None:
    np.testing.assert_allclose(af.mix(stack).levels, 0.5 * stack.weights.mean(1) + 0.5 * np.eye(5), atol=1e-15)


@given(
    seeds(),
    st.sampled_from(sorted(EDGES)),
    st.sampled_from(["mean", "max", "min"]),
    st.sampled_from([0.0, 0.3, 0.9]),
    st.data(),
)
def test_every_step_equals_the_slow_twin(
    seed: int, edges: str, heads: str, discard: float, data: st.DataObject
) -> None:
    rng = np.random.default_rng(seed)
    n = data.draw(st.integers(2, 5))
    weights, gradients = rng.dirichlet(np.ones(n), size=(1, 3, n)), rng.normal(size=(1, 3, n, n))
    special = rng.random(n) < 0.3
    choices: dict[str, Any] = {
        "edges": edges,
        "heads": heads,
        "residual": data.draw(st.sampled_from([0.0, 0.3, 0.5])),
        "discard": discard,
        "top_k": data.draw(st.integers(1, n)),
        "threshold": data.draw(st.sampled_from([0.0, 0.1])),
    }
    stack = af.AttentionStack(weights, af.Tokens([str(i) for i in range(n)], special), gradients=gradients)
    expected = naive.mix_layer(weights[0], gradients[0], special=special, **choices)
    np.testing.assert_allclose(af.mix(stack, **choices).levels[0], expected, atol=1e-12)


class TestHeads:
    def test_one_head(self, stack: af.AttentionStack) -> None:
        for head in (1, -1, np.int64(1)):
            np.testing.assert_allclose(af.mix(stack, heads=head, residual=None).levels, stack.weights[:, 1], atol=1e-15)

    def test_weights_are_shares(self, stack: af.AttentionStack) -> None:
        expected = (stack.weights[:, 0] + 3 * stack.weights[:, 1]) / 4
        for heads in ([1, 3], (2.0, 6.0), np.tile([0.1, 0.3], (3, 1))):
            np.testing.assert_allclose(af.mix(stack, heads=heads, residual=None).levels, expected, atol=1e-15)

    def test_weights_per_layer(self, stack: af.AttentionStack) -> None:
        mixed = af.mix(stack, heads=[[1, 0], [0, 1], [1, 1]], residual=None).levels
        expected = [stack.weights[0, 0], stack.weights[1, 1], stack.weights[2].mean(0)]
        np.testing.assert_allclose(mixed, expected, atol=1e-15)

    def test_a_mask_selects_heads(self, stack: af.AttentionStack) -> None:
        assert (af.mix(stack, heads=[False, True]).levels == af.mix(stack, heads=1).levels).all()

    def test_a_function(self, stack: af.AttentionStack) -> None:
        by_name = af.mix(stack, heads="max").levels
        assert (af.mix(stack, heads=lambda heads: heads.max(0)).levels == by_name).all()

    def test_max_and_min_are_renormalised_by_row(self, stack: af.AttentionStack) -> None:
        for heads, fused in (("max", stack.weights.max(1)), ("min", stack.weights.min(1))):
            level = 0.5 * fused + 0.5 * np.eye(5)
            np.testing.assert_allclose(
                af.mix(stack, heads=heads).levels, level / level.sum(-1, keepdims=True), atol=1e-15
            )

    @pytest.mark.parametrize(
        ("heads", "message"),
        [
            (2, "there is no head 2: there are 2"),
            (-3, "there is no head -3"),
            ("average", "unknown way to mix heads 'average'. Known: max, mean, min."),
            ([1, 2, 3], "2 weights (one per head) or shape (3, 2) (one per layer and head); got shape (3,)"),
            ([-1, 2], "not negative"),
            ([0, 0], "not all zero in a layer"),
            ([np.nan, 1], "must be finite"),
            (0.5, "got shape ()"),
            (["a", "b"], "got ['a', 'b']"),
            ([[1, 2], [1]], "got [[1, 2], [1]]"),
            ([], "got shape (0,)"),
            (None, "heads must be a name"),
        ],
    )
    def test_bad(self, stack: af.AttentionStack, heads: Any, message: str) -> None:
        with pytest.raises(InvalidArgument) as error:
            af.mix(stack, heads=heads)
        assert message in str(error.value)

    @pytest.mark.parametrize(
        "returned", [np.ones(3), np.full((5, 5), np.nan), "no", np.full((5, 5), "x"), np.ones((2, 5, 5))]
    )
    def test_a_function_that_returns_something_else(self, stack: af.AttentionStack, returned: Any) -> None:
        with pytest.raises(InvalidAttention, match=r"must return finite numbers of shape \(5, 5\)"):
            af.mix(stack, heads=lambda _: returned)


class TestResidual:
    def test_none_is_no_residual(self, stack: af.AttentionStack) -> None:
        np.testing.assert_allclose(af.mix(stack, residual=None).levels, stack.weights.mean(1), atol=1e-15)
        assert (af.mix(stack, residual=0).levels == af.mix(stack, residual=None).levels).all()

    def test_1_is_identity(self, stack: af.AttentionStack) -> None:
        assert (af.mix(stack, residual=1).levels == np.eye(5)).all()

    def test_one_per_layer_and_one_per_query(self, stack: af.AttentionStack) -> None:
        per_layer = af.mix(stack, residual=[0.0, 0.5, 1.0]).levels
        assert (per_layer[1] == af.mix(stack).levels[1]).all()
        assert (per_layer[2] == np.eye(5)).all()
        table = np.tile(np.linspace(0, 1, 5), (3, 1))
        per_query = af.mix(stack, residual=table).levels
        np.testing.assert_allclose(
            per_query[1, 1], 0.75 * stack.weights[1].mean(0)[1] + 0.25 * np.eye(5)[1], atol=1e-15
        )

    @pytest.mark.parametrize(
        ("residual", "message"),
        [
            (1.2, "a share from 0 to 1, got 1.2"),
            (-0.1, "a share from 0 to 1, got -0.1"),
            ([0.5, np.nan, 0.5], "a share from 0 to 1"),
            ([0.5, 0.5], "3 of them (one per layer), or shape (3, 5)"),
            ("half", "got 'half'"),
        ],
    )
    def test_bad(self, stack: af.AttentionStack, residual: Any, message: str) -> None:
        with pytest.raises(InvalidArgument) as error:
            af.mix(stack, residual=residual)
        assert message in str(error.value)


class TestSparsity:
    def test_discard_protects_what_goes_to_special_tokens(self, stack: af.AttentionStack) -> None:
        thin = af.mix(stack, discard=0.9, residual=None, renormalise=False).levels
        assert (thin[:, :, [0, 4]] == stack.weights.mean(1)[:, :, [0, 4]]).all()
        assert (thin[:, :, 1:4] == 0).mean() > 0.7

    def test_top_k_counts_the_residual(self, stack: af.AttentionStack) -> None:
        levels = af.mix(stack, top_k=1).levels
        assert (levels == np.eye(5)).all()  # the residual holds at least half
        assert (np.count_nonzero(af.mix(stack, top_k=3).levels, axis=-1) == 3).all()
        assert (af.mix(stack, top_k=5).levels == af.mix(stack).levels).all()

    def test_threshold(self, stack: af.AttentionStack) -> None:
        whole = af.mix(stack).levels
        kept = af.mix(stack, threshold=0.1, renormalise=False).levels
        assert (kept == np.where(whole > 0.1, whole, 0)).all()

    def test_a_row_that_lost_everything_keeps_its_own_token(self) -> None:
        stack = af.AttentionStack(np.full((1, 1, 4, 4), 0.25))
        assert (af.mix(stack, residual=None, threshold=0.5).levels[0] == np.eye(4)).all()
        assert (af.mix(stack, residual=None, threshold=0.5, renormalise=False).levels == 0).all()

    def test_special_tokens_leave_the_graph(self, stack: af.AttentionStack) -> None:
        graph = af.mix(stack, drop_special=True, residual=np.tile([0.9, 0.1, 0.2, 0.3, 0.9], (3, 1)))
        assert graph.tokens.labels == ("the", "cab", "##inets")
        assert graph.tokens.words == ((0, 1, "the"), (1, 3, "cabinets"))
        inner = stack.weights[0].mean(0)[1:4, 1:4]
        level = inner * [[0.9], [0.8], [0.7]] + np.diag([0.1, 0.2, 0.3])
        np.testing.assert_allclose(graph.levels[0], level / level.sum(-1, keepdims=True), atol=1e-15)

    @pytest.mark.parametrize(
        ("choice", "message"),
        [
            ({"top_k": 0}, "from 1 to the number of tokens, 5; got 0"),
            ({"top_k": 6}, "got 6"),
            ({"top_k": 1.5}, "got 1.5"),
            ({"threshold": 1}, "threshold must be a number from 0 to below 1, got 1"),
            ({"threshold": "a"}, "threshold must be a number"),
            ({"discard": -0.1}, "discard must be a number from 0 to below 1, got -0.1"),
            ({"discard": float("nan")}, "discard must be"),
        ],
    )
    def test_bad(self, stack: af.AttentionStack, choice: dict[str, Any], message: str) -> None:
        with pytest.raises(InvalidArgument) as error:
            af.mix(stack, **choice)
        assert message in str(error.value)

    def test_only_special_tokens(self) -> None:
        stack = af.AttentionStack(np.eye(2)[None, None], af.Tokens(["a", "b"], special=[True, True]))
        with pytest.raises(InvalidArgument, match="all tokens are special"):
            af.mix(stack, drop_special=True)


class TestEdges:
    def test_gradient_takes_the_positive_part_of_the_mean(self, stack: af.AttentionStack) -> None:
        assert stack.gradients is not None
        levels = af.mix(stack, edges="gradient", residual=None, renormalise=False).levels
        np.testing.assert_allclose(levels, np.maximum((stack.weights * stack.gradients).mean(1), 0), atol=1e-15)

    def test_chefer_takes_the_mean_of_the_positive_parts(self, stack: af.AttentionStack) -> None:
        assert stack.gradients is not None
        levels = af.mix(stack, edges="chefer", residual=None, renormalise=False).levels
        np.testing.assert_allclose(levels, np.maximum(stack.weights * stack.gradients, 0).mean(1), atol=1e-15)

    @pytest.mark.parametrize("edges", ["gradient", "chefer"])
    def test_gradients_that_were_not_recorded(self, stack: af.AttentionStack, edges: str) -> None:
        with pytest.raises(InvalidArgument, match=f"edges='{edges}' needs gradients, and this stack has none"):
            af.mix(af.AttentionStack(stack.weights), edges=edges)

    def test_unknown_rule(self, stack: af.AttentionStack) -> None:
        with pytest.raises(
            InvalidArgument, match="unknown edge rule 'gradients'. Did you mean 'gradient'\\? Known: attention"
        ):
            af.mix(stack, edges="gradients")


def test_levels_are_named_after_layers_and_say_how_they_were_made(stack: af.AttentionStack) -> None:
    graph = af.mix(stack, heads="max", top_k=2)
    assert graph.names == ("layer 0", "layer 1", "layer 2")
    assert graph.options == {
        "edges": "attention", "heads": "max", "residual": 0.5, "top_k": 2, "threshold": None, "discard": None,
        "drop_special": False, "renormalise": True,
    }  # fmt: skip


def test_half_precision_is_mixed_in_float32(stack: af.AttentionStack) -> None:
    half = af.AttentionStack(stack.weights.astype(np.float16))
    for heads in ("mean", "max", 0):
        levels = af.mix(half, heads=heads).levels
        assert levels.dtype == np.float32
        np.testing.assert_allclose(levels.sum(-1, dtype=np.float64), 1, atol=1e-6)


def test_threshold_is_a_strict_bound() -> None:
    stack = af.AttentionStack([[[[0.25, 0.75], [0.5, 0.5]]]])
    assert af.mix(stack, residual=None, threshold=0.25).levels[0].tolist() == [[0, 1], [0.5, 0.5]]


def test_tiny_gradients_do_not_overflow(stack: af.AttentionStack) -> None:
    weights = stack.weights.astype(np.float32)
    tiny = af.AttentionStack(weights, gradients=np.full_like(weights, 1e-38))
    levels = af.mix(tiny, edges="gradient", residual=None).levels
    np.testing.assert_allclose(levels, weights.mean(1), rtol=1e-3)


def test_sums_that_were_left_alone_stay_so(rng: np.random.Generator) -> None:
    stack = af.AttentionStack(rng.dirichlet(np.ones(50) * 0.1, size=(2, 2, 50)))
    graph = af.mix(stack, threshold=1e-4, renormalise=False)
    sums = graph.levels.sum(-1)
    assert (sums < 1 - 1e-7).any()
    np.testing.assert_allclose(af.rollout(graph).scores[-1].sum(-1), graph.levels[1] @ sums[0], rtol=1e-12)


def test_a_function_that_returns_negative_numbers(stack: af.AttentionStack) -> None:
    with pytest.raises(InvalidAttention, match="must not return negative numbers; got -1"):
        af.mix(stack, heads=lambda heads: -np.ones(heads.shape[1:]))
    signed = af.mix(stack, edges="gradient", heads=lambda heads: heads.mean(0))  # what is negative here is cut off
    np.testing.assert_allclose(signed.levels, af.mix(stack, edges="gradient").levels, atol=1e-15)


def test_ties_are_not_discarded() -> None:
    stack = af.AttentionStack(np.full((1, 1, 4, 4), 0.25))
    assert (af.mix(stack, discard=0.5, residual=None).levels == 0.25).all()


def test_options_from_torch(stack: af.AttentionStack) -> None:
    torch = pytest.importorskip("torch")
    learned = torch.tensor([1.0, 3.0], requires_grad=True)
    assert (af.mix(stack, heads=learned).levels == af.mix(stack, heads=[1, 3]).levels).all()
    with pytest.raises(InvalidArgument, match="got shape"):
        af.mix(stack, heads=torch.tensor(1.5))


@pytest.mark.parametrize(
    "choice", [{"edges": ["attention"]}, {"top_k": np.array([2, 3])}, {"top_k": True}, {"residual": object()}]
)
def test_options_of_another_type(stack: af.AttentionStack, choice: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        af.mix(stack, **choice)
