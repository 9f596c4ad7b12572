from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import attnflow as af
from attnflow import render
from attnflow.attribution import Saturation
from attnflow.errors import InvalidArgument, InvalidAttention
from attnflow.render import FlowView
from attnflow.render._colour import GROUND, KINDS, colour, ink, oklab, parsed, ramp
from attnflow.render._describe import readable
from attnflow.render._flow_view import flow_view
from attnflow.render._view import counted, limit
from tests.render.views import view


def test_a_view_says_what_the_attribution_says(graph: af.AttentionGraph) -> None:
    a = af.rollout(graph)
    seen = render.view(a, query="cab")
    assert (seen.values == a.scores).all()
    assert seen.labels == ("[CLS]", "the", "cab", "inets", "[SEP]")
    assert (seen.method, seen.query, seen.special, seen.joined) == ("rollout", 2, (0, 4), (3,))
    assert seen.caption == "mean of heads · residual 0.5"
    assert (seen.row(2, 1) == a.of("cab", level=1)).all()


def test_words_are_added_up_and_the_query_moves_along(graph: af.AttentionGraph) -> None:
    seen = render.view(af.rollout(graph), query="[SEP]", words=True)
    assert seen.labels == ("[CLS]", "the", "cabinets", "[SEP]")
    assert seen.query == 3


def test_nan_is_refused() -> None:
    with pytest.raises(InvalidAttention, match="NaN or infinity"):
        view(values=np.full((3, 5, 5), np.nan))


def test_shapes_and_queries_are_checked() -> None:
    with pytest.raises(InvalidAttention, match=r"\(levels, queries, inputs\)"):
        view(values=np.zeros((3, 5, 4)))
    with pytest.raises(InvalidArgument, match="opens at one of its queries"):
        view(queries=(1, 2, 3, 4), values=np.zeros((3, 4, 5)))
    with pytest.raises(InvalidArgument, match="not asked for"):
        render.view(af.rollout(af.AttentionGraph(np.eye(3)[None]), queries=[1]), query=2)


def test_the_opening_query_is_the_named_one_then_the_last_of_a_decoder_then_the_first_special() -> None:
    causal = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
    assert render.view(af.rollout(af.AttentionGraph(causal[None]))).query == 3
    full = af.AttentionGraph(
        np.full((1, 4, 4), 0.25), af.Tokens(["a", "b", "[S]", "c"], special=[False, False, True, False])
    )
    assert render.view(af.rollout(full)).query == 2
    named = af.AttentionGraph(full.levels, full.tokens, options={"query": 1})
    assert render.view(af.rollout(named)).query == 1
    assert render.view(af.rollout(named), query="c").query == 3


def test_special_tokens_and_the_query_itself_leave_the_scale() -> None:
    seen = view(values=np.tile([9.0, 5.0, 2.0, 1.0, 0.5], (3, 5, 1)))
    row = seen.row(1, 0)
    assert limit(row, counted(seen, 1, "unscaled")) == 2
    assert limit(row, counted(seen, 1, "hidden")) == 2
    assert limit(row, counted(seen, 1, "shown")) == 9
    assert limit(np.zeros(4)) == 1
    alone = view(1, 1, labels=["alone"], special=())
    assert counted(alone, 0, "unscaled").all()  # where nothing would be left
    table = np.array([[9.0, 1.0], [2.0, 9.0]])
    assert limit(table, ~np.eye(2, dtype=np.bool_)) == 2
    with pytest.raises(InvalidArgument, match="special"):
        counted(seen, 1, "gone")


def test_a_difference_is_signed_and_over_what_both_have(graph: af.AttentionGraph) -> None:
    raw, rollout = af.raw(graph), af.rollout(graph, levels=[1, 2], queries=[0, 2])
    seen = render.difference(rollout, raw)
    assert seen.method == "rollout − raw"
    assert (seen.levels, seen.queries) == (("layer 1", "layer 2"), (0, 2))
    assert np.allclose(seen.values, rollout.scores - raw.scores[1:, [0, 2]])
    assert seen.signed
    with pytest.raises(InvalidArgument, match="same tokens"):
        render.difference(rollout, af.raw(af.AttentionGraph(np.eye(5)[None])))
    with pytest.raises(InvalidArgument, match="both attributions have"):
        render.difference(rollout, af.raw(graph, levels=[0]))


def test_advice_where_a_method_misleads(graph: af.AttentionGraph) -> None:
    assert render.view(af.raw(graph)).notes[0] == ""
    assert "already mixtures" in render.view(af.raw(graph)).notes[2]
    assert render.view(af.rollout(graph)).notes == ("", "", "")
    causal = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
    assert "decoder" in render.view(af.rollout(af.AttentionGraph([causal] * 3))).notes[2]
    a = af.rollout(graph)
    shares = (0.0, 0.2, 0.9)
    full = af.Attribution(
        a.scores, a.tokens, "flow", a.levels, a.queries, a.inputs, saturation=Saturation(shares, shares, shares)
    )
    assert "90% of the flows" in render.view(full).notes[2]
    assert render.view(full).notes[1] == ""


@given(st.text())
def test_a_label_never_holds_what_a_terminal_acts_on(label: str) -> None:
    shown = readable(label)
    assert shown
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202e\u2066\u2028" for c in shown)
    shown.encode()


def test_flows_in_words(graph: af.AttentionGraph) -> None:
    one_way = af.AttentionGraph(np.array([[[0.2, 0.8], [0.5, 0.5]], [[1.0, 0.0], [0.1, 0.9]]]), ["a", "b"])
    seen = flow_view(af.bottleneck(one_way, 0, 0))
    assert isinstance(seen, FlowView)
    assert seen.value == pytest.approx(0.2)
    assert sum(edge.flow for edge in seen.edges if edge.cut) == pytest.approx(0.2)
    assert "input" in seen.limit
    assert "“a”" in seen.sentence
    assert (
        "query" in flow_view(af.bottleneck(one_way, 1, 1)).limit
        or "way" in flow_view(af.bottleneck(one_way, 1, 1)).limit
    )
    b = af.bottleneck(graph, 2, 1)
    assert {tuple(edge)[:3] for edge in b.cut} == {tuple(edge)[:3] for edge in flow_view(b).edges if edge.cut}
    assert sum(path.amount for path in flow_view(b).paths) == pytest.approx(b.value)


@pytest.mark.parametrize("theme", list(GROUND))
def test_ramps_are_even_and_keep_their_order_without_colour(theme: str) -> None:
    for kind in KINDS:
        lab = oklab(ramp(theme, kind))
        steps = np.linalg.norm(np.diff(lab, axis=0), axis=1)
        assert steps.max() < 1.25 * steps.min()  # equal steps look equal
        assert np.abs(lab[len(lab) // 2 if kind == "diverging" else 0] - oklab(parsed(GROUND[theme]))).max() < 0.01
        arms = np.split(lab[:, 0], [len(lab) // 2]) if kind == "diverging" else [lab[:, 0]]
        for arm in arms:
            changes = np.diff(arm)
            assert (changes > 0).all() or (changes < 0).all()


# What those without one kind of cone see (Machado, Oliveira & Fernandes 2009, severity 1), over linear sRGB.
BLINDNESS = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


@pytest.mark.parametrize("kind", list(BLINDNESS))
@pytest.mark.parametrize("theme", list(GROUND))
def test_both_signs_stay_apart_for_every_eye(theme: str, kind: str) -> None:
    rgb = ramp(theme, "diverging")
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.array(BLINDNESS[kind]).T, 0, 1)
    back = oklab(np.where(seen <= 0.0031308, 12.92 * seen, 1.055 * seen ** (1 / 2.4) - 0.055))
    half = len(back) // 2
    for share in (0.4, 0.7):
        step = round(share * half)
        assert np.linalg.norm(back[half - step] - back[half + step]) > 0.06  # several times what can just be told apart


@given(st.floats(-1.5, 1.5), st.booleans(), st.sampled_from(list(GROUND)))
def test_ink_is_always_readable(share: float, is_signed: bool, theme: str) -> None:
    ground = colour(share, theme, signed=is_signed)

    def luminance(rgb: tuple[int, ...]) -> float:
        c = np.array(rgb) / 255
        linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        return float(linear @ (0.2126, 0.7152, 0.0722))

    pair = sorted((luminance(ground), luminance((0, 0, 0) if ink(ground) == "#000000" else (255, 255, 255))))
    assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5


def test_a_view_is_jsonable_whatever_came_in(graph: af.AttentionGraph) -> None:
    made = render.document([af.raw(graph), af.rollout(graph)], graphs=graph, difference=True)
    assert set(json.loads(json.dumps(made, allow_nan=False))) == set(made)
