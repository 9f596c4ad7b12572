"""The page as text: what is in it, how it is escaped, and how exact its numbers are."""

from __future__ import annotations

import base64
import json
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import attnflow as af
from attnflow import render
from attnflow.errors import InvalidArgument, SaveError
from attnflow.render import View
from attnflow.render._page import asset, embedded
from attnflow.render._quantise import cube
from tests.render.views import VIEWS, flow, view

EVIL = "</script><img onerror=alert(1) src=x>"


class Parsed(HTMLParser):
    """The elements of a page, the handlers on them, and the data that its script element holds."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[str] = []
        self.loaded: list[str] = []
        self.data = ""
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        given = dict(attributes)
        assert not any(name.startswith("on") for name in given)
        self.loaded += [str(given[name]) for name in ("src", "href") if name in given]
        self._inside = given.get("id") == "attnflow-data"

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.data += data


def decoded(plain: dict[str, Any], shown: View) -> np.ndarray:
    """The values that a reader gets back: the slow twin of the viewer's decoder."""
    levels = []
    inputs = np.asarray(shown.inputs)
    apart = np.isin(inputs, shown.special)[None, :] | np.equal.outer(shown.queries, inputs)
    for level in plain["levels"]:
        content = np.frombuffer(zlib.decompress(base64.b64decode(level["codes"]), -15), np.uint8).astype(np.int64)
        codes = content.reshape(plain["bytes"], *shown.values.shape[1:])
        whole = codes[0] + (256 * codes[1] if plain["bytes"] == 2 else 0)
        if level["above"]:
            whole = np.cumsum(whole, axis=0) % (65536 if plain["bytes"] == 2 else 256)
        scale = np.frombuffer(base64.b64decode(level["scale"]), "<f4")[:, None]
        values = (whole - plain["offset"]) * scale / plain["steps"]
        values[apart] = np.frombuffer(base64.b64decode(level["apart"]), "<f4")
        levels.append(values)
    return np.stack(levels)


@pytest.mark.parametrize("name", list(VIEWS))
@pytest.mark.parametrize("steps", [63, 255, 65_535])
def test_values_come_back_within_the_error_that_is_said(name: str, steps: int) -> None:
    shown = VIEWS[name]()
    plain = cube(shown, steps)
    back = decoded(plain, shown)
    inputs = np.asarray(shown.inputs)
    apart = np.isin(inputs, shown.special)[None, :] | np.equal.outer(shown.queries, inputs)
    scale = np.where(apart, 0, np.abs(shown.values)).max(axis=2, keepdims=True)
    assert plain["error"] < 0.01
    assert (
        np.abs(back - shown.values) <= (plain["error"] * 1.001 + 1e-6) * np.maximum(scale, np.abs(shown.values))
    ).all()


@given(st.lists(st.text(min_size=1), min_size=1, max_size=6), st.text())
def test_text_stays_text(labels: list[str], title: str) -> None:
    n = len(labels)
    a = af.rollout(af.AttentionGraph(np.full((1, n, n), 1 / n), labels))
    parsed = Parsed(render.page(a, title=title or "x"))
    expected = ["html", "head", *["meta"] * 4, "title", "link", "style", "body", "main", "noscript", "script", "script"]
    assert parsed.elements == expected
    assert len(json.loads(parsed.data)["texts"][0]["labels"]) == n


def test_a_token_that_closes_the_script_does_not(tmp_path: Path) -> None:
    a = af.rollout(af.AttentionGraph(np.full((1, 2, 2), 0.5), [EVIL, "<!--"]))
    text = render.page(a, tmp_path / "p.html", title=EVIL)
    assert "<img" not in text
    assert text == (tmp_path / "p.html").read_text(encoding="utf-8")
    assert json.loads(Parsed(text).data)["texts"][0]["labels"] == [EVIL, "<!--"]


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_embedded_json_means_the_same_and_cannot_end_its_element(content: Any) -> None:
    text = embedded(content)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == content


def test_the_page_asks_for_nothing() -> None:
    text = render.page(view())
    parsed = Parsed(text)
    assert parsed.loaded == ["data:,"]
    assert "default-src 'none'" in text
    for name in ("viewer.js", "viewer.css"):
        content = asset(name)
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", content)
        assert "</script" not in content
        assert "innerHTML" not in content


@pytest.mark.parametrize("name", list(VIEWS))
def test_every_view_becomes_a_document(name: str) -> None:
    shown = VIEWS[name]()
    plain = render.document(shown)
    text = plain["texts"][0]
    assert text["query"] == shown.query
    assert len(text["labels"]) == len(shown.labels)
    assert text["views"][0]["signed"] == shown.signed
    json.dumps(plain, allow_nan=False)


def test_texts_methods_differences_and_flows(graph: af.AttentionGraph) -> None:
    other = af.AttentionGraph(np.full((2, 3, 3), 1 / 3), ["x", "y", "z"])
    plain = render.document(
        [af.raw(graph), af.rollout(graph), af.rollout(other), af.bottleneck(other, 0, 2)],
        graphs=[graph, other],
        difference=True,
    )
    first, second = plain["texts"]
    assert [one["method"] for one in first["views"]] == ["raw", "rollout", "raw − rollout"]
    assert first["views"][2]["signed"]
    assert [one["method"] for one in second["views"]] == ["rollout"]
    assert {(one["query"], one["input"]) for one in first["flows"]} == {(0, i) for i in range(5)}
    assert len([one for one in second["flows"] if one["input"] == 2]) == 1  # the same pair, asked for and found
    alone = render.document([af.raw(graph)], graphs=graph, bottlenecks=None)
    assert alone["texts"][0]["flows"] == []
    chosen = render.document([af.raw(graph)], bottlenecks=[af.bottleneck(graph, 1, 2)])
    assert [one["input"] for one in chosen["texts"][0]["flows"]] == [2]
    assert render.document(flow())["texts"][0]["views"] == []


def test_flows_carry_what_was_found(graph: af.AttentionGraph) -> None:
    b = af.bottleneck(graph, "cab", "the")
    plain = render.document([af.raw(graph), b])["texts"][0]["flows"][0]
    assert plain["value"] == pytest.approx(b.value)
    cut = [edge for edge in plain["edges"] if edge[5]]
    assert sum(edge[3] for edge in cut) == pytest.approx(b.value, rel=1e-4)
    assert sum(amount for amount, _ in plain["paths"]) == pytest.approx(b.value, rel=1e-4)


def test_a_query_opens_the_texts_that_have_it(graph: af.AttentionGraph) -> None:
    other = af.AttentionGraph(np.full((2, 3, 3), 1 / 3), ["x", "y", "z"])
    plain = render.document([af.raw(graph), af.raw(other)], query="y")
    assert [text["query"] for text in plain["texts"]] == [0, 1]
    with pytest.raises(InvalidArgument, match="no token is 'w'"):
        render.document([af.raw(graph), af.raw(other)], query="w")


def test_methods_share_a_scale_unless_one_would_go_pale() -> None:
    small, large = view(1, values=np.full((1, 5, 5), 0.1)), view(1, values=np.full((1, 5, 5), 0.9))
    assert render.document([small, small])["scale"] == "shared"
    assert render.document([small, large])["scale"] == "separate"
    assert render.document([small, large], scale="shared")["scale"] == "shared"
    with pytest.raises(InvalidArgument, match="scale"):
        render.document(small, scale="log")


def test_queries_are_chosen_or_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = render.document(view(n=40), queries=["w3", 39])["texts"][0]
    assert plain["views"][0]["queries"] == [0, 3, 39]
    monkeypatch.setattr("attnflow.render._document.MOST_VALUES", 3 * 40 * 10)
    thin = render.document(view(n=40, query=7))["texts"][0]["views"][0]
    assert len(thin["queries"]) == 10
    assert {0, 7} <= set(thin["queries"])


def test_what_is_too_large_gets_fewer_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    assert render.document(view())["texts"][0]["views"][0]["cube"]["steps"] == 65_535
    monkeypatch.setattr("attnflow.render._document.MOST_LETTERS", 10)
    assert render.document(view())["texts"][0]["views"][0]["cube"]["steps"] == 63


def test_images_come_along(tmp_path: Path) -> None:
    from PIL import Image

    pixels = np.zeros((40, 60, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "p.png")
    grid = af.PatchGrid(2, 3, 0)
    a = af.rollout(af.AttentionGraph(np.full((1, 6, 6), 1 / 6), af.Tokens(list("abcdef"), grids=[grid])))
    for image in (
        pixels,
        tmp_path / "p.png",
        str(tmp_path / "p.png"),
        Image.fromarray(pixels),
        pixels[..., 0],
        pixels / 255.0,
    ):
        found = render.document(a, images=image)["texts"][0]["grids"][0]
        assert found["image"].startswith("data:image/")
        assert (found["size"], found["box"]) == ([60, 40], [0, 0, 60, 40])
    (tmp_path / "not.png").write_text("no image")
    for bad, words in (
        (pixels.ravel(), "got shape"),
        (tmp_path / "gone.png", "could not read"),
        (tmp_path / "not.png", "not an image"),
        (pixels + 300.0, "from 0 to 1"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            render.document(a, images=bad)
    with pytest.raises(InvalidArgument, match="2 images"):
        render.document(a, images=[[pixels, pixels]])
    with pytest.raises(InvalidArgument, match="0 of them have patch grids"):
        render.document(view(), images=pixels)


def test_bad_arguments(graph: af.AttentionGraph, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="bottlenecks"):
        render.page(view(), bottlenecks="all")
    with pytest.raises(InvalidArgument, match="theme"):
        render.page(view(), theme="sepia")
    with pytest.raises(InvalidArgument, match="special"):
        render.page(view(), special="no")
    with pytest.raises(InvalidArgument, match="tokens are those of no attribution"):
        render.page(view(), graphs=graph)
    with pytest.raises(SaveError):
        render.page(view(), tmp_path / "no" / "p.html")
