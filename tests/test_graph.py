from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidArgument, InvalidAttention


@pytest.fixture
def blocks(rng: np.random.Generator) -> af.AttentionGraph:
    """An encoder level, a decoder level and a cross level over 2 + 3 positions."""
    levels = np.tile(np.eye(5), (3, 1, 1))
    levels[0, :2, :2] = rng.dirichlet(np.ones(2), 2)
    levels[1, 2:, 2:] = rng.dirichlet(np.ones(3), 3)
    levels[2, 2:, :2] = 0.5 * rng.dirichlet(np.ones(2), 3)
    levels[2, 2:, 2:] = 0.5 * np.eye(3)
    passive = np.zeros((3, 5), dtype=bool)
    passive[0, 2:] = passive[1, :2] = passive[2, :2] = True
    return af.AttentionGraph(
        levels,
        names=["encoder 0", "decoder 0", "decoder 0 cross"],
        kinds=["encoder self", "decoder self", "decoder cross"],
        passive=passive,
    )


def test_slices_keep_what_belongs_to_the_levels(blocks: af.AttentionGraph) -> None:
    upper = blocks[1:]
    assert (len(upper), upper.names, upper.kinds) == (2, blocks.names[1:], blocks.kinds[1:])
    assert (upper.levels == blocks.levels[1:]).all()
    assert (upper.passive == blocks.passive[1:]).all()
    assert blocks[-1].names == ("decoder 0 cross",)
    assert blocks[::2].names == ("encoder 0", "decoder 0 cross")
    assert np.shares_memory(upper.levels, blocks.levels)


def test_only_levels_of_a_kind(blocks: af.AttentionGraph) -> None:
    assert blocks.only("cross").names == ("decoder 0 cross",)
    assert blocks.only("decoder").names == ("decoder 0", "decoder 0 cross")
    assert blocks.only("self decoder").names == ("decoder 0",)
    for unknown in ("cros", ""):
        with pytest.raises(
            InvalidArgument, match="no level is of kind .* Known: decoder cross, decoder self, encoder self"
        ):
            blocks.only(unknown)


def test_with_level_replaces_one(blocks: af.AttentionGraph) -> None:
    new = np.full((5, 5), 0.2)
    changed = blocks.with_level(-1, new)
    assert (changed.levels[2] == new).all()
    assert (changed.levels[:2] == blocks.levels[:2]).all()
    assert not changed.passive[2].any()  # the new rows take from others
    assert (changed.passive[:2] == blocks.passive[:2]).all()
    with pytest.raises(InvalidAttention, match=r"the new level has shape \(4, 4\), the others \(5, 5\)"):
        blocks.with_level(0, np.eye(4))
    with pytest.raises(InvalidArgument, match="there is no level 3"):
        blocks.with_level(3, new)


def test_read_divides_out_the_rounding_of_the_storage(rng: np.random.Generator) -> None:
    exact = rng.dirichlet(np.ones(6), size=(2, 6))
    graph = af.AttentionGraph(exact.astype(np.float16))
    assert graph.proportions == (True, True)
    assert graph.levels.dtype == np.float16
    np.testing.assert_allclose(graph.read(-1).sum(-1), 1, rtol=1e-15)
    free = af.AttentionGraph(3 * exact)
    assert free.proportions == (False, False)
    assert (free.read(1) == 3 * exact[1]).all()


def test_names_and_kinds_have_defaults() -> None:
    graph = af.AttentionGraph(np.ones((2, 1, 1)))
    assert (graph.names, graph.kinds, graph.tokens.labels) == (("level 0", "level 1"), ("self", "self"), ("0",))
    assert repr(graph) == "AttentionGraph(2 levels × 1 tokens, float64)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"levels": np.eye(2)}, "needs 3 dimensions (levels, queries, keys), got 2"),
        ({"levels": np.ones((1, 1, 2, 2))}, "Heads are mixed into levels by attnflow.mix"),
        ({"levels": np.ones((2, 3, 2))}, "must be square, got 3 queries by 2 keys. Put both sequences on one axis"),
        ({"levels": np.ones((0, 2, 2))}, "at least one level and one token"),
        ({"levels": []}, "at least one level and one token"),
        ({"levels": [np.eye(2), np.eye(3)]}, "all levels must have the same shape, got (2, 2), (3, 3)"),
        ({"levels": [[[1, 2], [3, -1]]]}, "level 0, query 1, key 1 is -1"),
        ({"levels": [[[1, np.nan], [3, 1]]]}, "level 0, query 0, key 1 is nan"),
        ({"levels": [[[1, 2], [np.inf, 1]]]}, "level 0, query 1, key 0 is inf"),
        ({"levels": "no"}, "levels must be real numbers"),
        ({"levels": [np.eye(2)], "tokens": ["a"]}, "got 1 tokens"),
        ({"levels": [np.eye(2)], "names": ["a", "b"]}, "names must be 1 strings"),
        ({"levels": [np.eye(2)], "kinds": "self"}, "kinds must be 1 strings"),
        ({"levels": [np.eye(2)], "passive": np.ones(2, dtype=bool)}, "passive must be booleans of shape (1, 2)"),
        ({"levels": [np.ones((2, 2))], "passive": np.array([[False, True]])}, "row 1 of level 0 is marked as passive"),
    ],
)
def test_bad_input(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(af.AttnflowError) as error:
        af.AttentionGraph(**arguments)
    assert message in str(error.value)
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (slice(3, 3), "select none of the 3 levels"),
        (slice(None, None, -1), "a step of at least 1, got -1"),
        (slice(None, None, 0), "got 0"),
        (slice("a", 2), "goes by whole numbers, got 'a'"),
        (slice(0, 1.5), "goes by whole numbers, got 1.5"),
    ],
)
def test_bad_slices(blocks: af.AttentionGraph, levels: slice, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        blocks[levels]
    with pytest.raises(InvalidArgument, match="there is no level 5"):
        blocks[5]


def test_iterating_gives_the_levels(blocks: af.AttentionGraph) -> None:
    assert [level.names for level in blocks] == [("encoder 0",), ("decoder 0",), ("decoder 0 cross",)]


def test_proportions_are_known_level_by_level() -> None:
    graph = af.AttentionGraph([np.eye(2), np.full((2, 2), 0.4)])
    assert graph.proportions == (True, False)


@pytest.mark.parametrize(
    ("dtype", "miss", "meant"), [(np.float64, 1e-4, True), (np.float32, 1e-4, True), (np.float16, 1e-4, False)]
)
def test_rows_that_miss_1_by_more_than_rounding_are_left_alone(dtype: type, miss: float, meant: bool) -> None:
    graph = af.AttentionGraph(np.array([[[0.5, 0.5 - miss], [0.5, 0.5]]], dtype=dtype))
    assert graph.proportions == (not meant,)


def test_with_level_keeps_the_wider_storage_and_says_so(blocks: af.AttentionGraph) -> None:
    narrow = af.AttentionGraph(blocks.levels.astype(np.float32), options={"heads": "mean"}, passive=blocks.passive)
    exact = np.full((5, 5), 0.2)
    changed = narrow.with_level(0, exact.tolist())
    assert (changed.levels[0] == exact).all()
    assert changed.options == {"heads": "mean", "replaced_levels": ["level 0"]}
    assert changed.with_level(1, exact).options["replaced_levels"] == ["level 0", "level 1"]
    assert narrow.with_level(0, narrow.levels[0]).passive[0].tolist() == blocks.passive[0].tolist()


def test_a_part_of_the_levels_says_which(blocks: af.AttentionGraph) -> None:
    assert blocks[1:].options == {"levels": ["decoder 0", "decoder 0 cross"]}
    assert blocks.only("self").options == {"levels": ["encoder 0", "decoder 0"]}
    assert (blocks.only("self").levels == blocks.levels[:2]).all()
    assert (blocks.only("cross").passive == blocks.passive[2:]).all()
    assert blocks[:].options == {}


def test_names_may_be_left_out(blocks: af.AttentionGraph) -> None:
    assert af.AttentionGraph(blocks.levels, names=None, kinds=None).names == ("level 0", "level 1", "level 2")  # type: ignore[arg-type]


def test_a_stack_or_an_array_is_not_a_graph(stack: af.AttentionStack) -> None:
    for method in (af.raw, af.rollout, af.flow, af.flow_bounds, lambda graph: af.bottleneck(graph, 0, 0)):
        for wrong in (stack, stack.weights[0], None):
            with pytest.raises(InvalidAttention, match="expected an AttentionGraph, got a .*attnflow.mix"):
                method(wrong)  # type: ignore[arg-type]
    for wrong in (af.mix(stack), stack.weights):
        with pytest.raises(InvalidAttention, match="expected an AttentionStack, got a"):
            af.mix(wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidAttention, match="expected an AttentionStack, got a"):
            af.by_head(wrong)  # type: ignore[arg-type]


class TestSigned:
    """Graphs of rules whose entries may be negative."""

    @pytest.fixture
    def signed(self, rng: np.random.Generator) -> af.AttentionGraph:
        return af.AttentionGraph(rng.normal(size=(3, 4, 4)), signed=True)

    def test_negative_entries_are_refused_unless_announced(self, signed: af.AttentionGraph) -> None:
        with pytest.raises(InvalidAttention, match="not negative; .*signed=True.*which raw and rollout read"):
            af.AttentionGraph(signed.levels)
        with pytest.raises(InvalidAttention, match="levels must be finite; level 0, query 0, key 0 is -inf"):
            af.AttentionGraph([[[-np.inf]]], signed=True)
        with pytest.raises(InvalidAttention, match="key 0 is nan"):
            af.AttentionGraph([[[np.nan]]], signed=True)

    def test_the_sign_stays_with_parts_and_copies(self, signed: af.AttentionGraph, tmp_path: Path) -> None:
        assert signed.signed
        assert "signed" in repr(signed)
        assert signed[1:].signed
        assert signed.only("self").signed
        assert signed.with_level(0, -np.eye(4)).levels[0, 0, 0] == -1
        signed.save(tmp_path / "signed.npz")
        opened = af.AttentionGraph.load(tmp_path / "signed.npz")
        assert opened.signed
        assert (opened.levels == signed.levels).all()

    def test_rows_with_a_negative_entry_are_no_proportions(self) -> None:
        levels = np.array([[[1.5, -0.5], [0, 1]], [[0.5, 0.5], [0, 1]]])
        assert af.AttentionGraph(levels, signed=True).proportions == (False, True)
        assert af.AttentionGraph(levels[1:]).signed is False

    def test_raw_and_rollout_read_them(self, signed: af.AttentionGraph) -> None:
        assert (af.raw(signed).scores == signed.levels).all()
        product = signed.levels[2] @ signed.levels[1] @ signed.levels[0]
        np.testing.assert_allclose(af.rollout(signed).scores[-1], product, atol=1e-12)
        np.testing.assert_allclose(af.rollout(signed, queries=[1], levels=[-1]).scores[0, 0], product[1], atol=1e-12)

    def test_flow_refuses_them(self, signed: af.AttentionGraph) -> None:
        for ask in (af.flow, af.flow_bounds, lambda graph: af.bottleneck(graph, 0, 0)):
            with pytest.raises(InvalidAttention, match="a negative number is no capacity.*Use raw or rollout"):
                ask(signed)
