from __future__ import annotations

import builtins
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnflow as af
from attnflow import render
from attnflow.errors import InvalidArgument, MissingExtra, SaveError
from tests.render.views import VIEWS, flow, view

matplotlib = pytest.importorskip("matplotlib")
KINDS = ("strip", "levels", "matrix", "graph", "bars")


def svg(shown: object, kind: str | None, path: Path, **options: Any) -> ET.Element:
    render.figure(shown, kind, path / "f.svg", **options)  # type: ignore[arg-type]
    return ET.parse(path / "f.svg").getroot()


def words(root: ET.Element) -> str:
    return "\n".join("".join(node.itertext()) for node in root.iter() if node.tag.endswith("text"))


def ids(root: ET.Element) -> set[str]:
    return {node.get("id", "") for node in root.iter()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name in VIEWS if name != "2,048 tokens"])
def test_every_view_in_every_kind(name: str, kind: str, tmp_path: Path) -> None:
    root = svg(VIEWS[name](), kind, tmp_path)
    assert "rollout" in words(root)


@pytest.mark.parametrize("kind", ["levels", "matrix", "graph"])
def test_two_thousand_tokens(kind: str, tmp_path: Path) -> None:
    render.figure(VIEWS["2,048 tokens"](), kind, tmp_path / "f.png")
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


def test_text_stays_text_and_says_what_is_drawn(tmp_path: Path) -> None:
    root = svg(view(), "levels", tmp_path, query=2)
    for said in ("rollout", "query “key” · every level · made up", "[CLS]", "layer 2"):
        assert said in words(root)
    assert "every query · layer 2" in words(svg(view(), "matrix", tmp_path))
    assert "layer 0" in words(svg(view(), "strip", tmp_path, level=0))


def test_a_strip_has_a_box_for_each_token(tmp_path: Path) -> None:
    root = svg(view(), "strip", tmp_path)
    assert {f"token-{i}" for i in range(5)} <= ids(root)
    hidden = svg(view(), "strip", tmp_path, special="hidden")
    assert "token-0" not in ids(hidden)


def test_a_dollar_is_a_dollar(tmp_path: Path) -> None:
    assert "$x_1$" in words(svg(VIEWS["scripts"](), "levels", tmp_path))


def test_the_graph_of_a_flow_marks_the_cut(tmp_path: Path) -> None:
    root = svg(flow(), None, tmp_path)
    assert {"cut-1-2-2", "cut-1-2-1", "edge-0-2-0", "edge-0-1-0"} <= ids(root)
    assert "0.75 flows from “the” up to “is”" in words(root)
    assert "minimum cut, 0.75 in all" in words(root)


def test_bars_of_candidates(tmp_path: Path) -> None:
    root = svg(view(), "bars", tmp_path, candidates=["key", -1])
    assert {"bar-0-2", "bar-2-4"} <= ids(root)
    assert "“key”" in words(root)
    with pytest.raises(InvalidArgument, match="0 inputs of this view are 'missing'"):
        render.figure(view(), "bars", candidates=["missing"])


def test_scales_shared_or_separate_and_balanced_for_signs() -> None:
    small, large = view(1, values=np.full((1, 5, 5), 0.1)), view(1, values=np.full((1, 5, 5), 0.4))

    def ends(*shown: object, **options: Any) -> list[tuple[float, float]]:
        drawn = render.figure(list(shown), "levels", **options)  # type: ignore[arg-type]
        return [axes.images[0].get_clim() for axes in drawn.axes if axes.get_gid() == "levels" or axes.images]

    assert ends(small, large) == [(0, 0.4), (0, 0.4)]
    assert ends(small, large, scale="separate") == [(0, 0.1), (0, 0.4)]
    low, high = ends(VIEWS["signed"]())[0]
    assert low == -high


def test_patches_over_the_image(tmp_path: Path) -> None:
    for smooth in (True, False):
        drawn = render.figure(VIEWS["image"](), path=tmp_path / "p.png", smooth=smooth)
        picture, overlay = drawn.axes[0].images
        assert list(picture.get_extent()) == [0, 60, 40, 0]
        assert list(overlay.get_extent()) == [0, 60, 40, 0]
        assert np.asarray(overlay.get_array()).shape == (2, 3)
    with pytest.raises(InvalidArgument, match="no patch grid"):
        render.figure(view(), "patches")


@pytest.mark.parametrize(("form", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_ending_chooses_the_format(form: str, start: bytes, tmp_path: Path) -> None:
    render.figure([view(), VIEWS["signed"]()], "levels", tmp_path / f"f.{form}", theme="dark")
    assert (tmp_path / f"f.{form}").read_bytes().startswith(start)


def test_the_same_picture_is_the_same_file(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        render.figure(view(), "levels", tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_nothing_global_is_touched() -> None:
    before = dict(matplotlib.rcParams)
    render.figure(view(), "strip", theme="dark")
    assert dict(matplotlib.rcParams) == before


def test_a_notebook_can_show_it(graph: af.AttentionGraph) -> None:
    drawn: Any = render.figure([af.raw(graph), af.rollout(graph)], words=True)
    assert drawn._repr_png_().startswith(b"\x89PNG")


def test_bad_arguments(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"Did you mean 'levels'"):
        render.figure(view(), "level")
    with pytest.raises(InvalidArgument, match=r"\.png, \.svg or \.pdf"):
        render.figure(view(), path=tmp_path / "f.gif")
    with pytest.raises(InvalidArgument, match='drawn as a "graph"'):
        render.figure(flow(), "strip")
    with pytest.raises(InvalidArgument, match="scale"):
        render.figure(view(), scale="log")
    with pytest.raises(InvalidArgument, match="theme"):
        render.figure(view(), theme="sepia")
    with pytest.raises(InvalidArgument, match="special"):
        render.figure(view(), special="no")
    with pytest.raises(InvalidArgument, match="nothing to draw"):
        render.figure([])
    with pytest.raises(SaveError):
        render.figure(view(), path=tmp_path / "no" / "f.png")


def test_without_matplotlib_the_message_has_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtra, match=r'pip install "attnflow\[plot\]"'):
        render.figure(view())
