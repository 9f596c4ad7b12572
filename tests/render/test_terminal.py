from __future__ import annotations

import io
import re

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

import attnflow as af
from attnflow import render
from attnflow.errors import InvalidArgument
from attnflow.render._terminal_brush import Brush
from attnflow.render._terminal_patches import patch_lines
from attnflow.tokens import PatchGrid
from tests.render.views import VIEWS, flow, view

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def printed(shown: object, *, colour: bool = False, width: int = 80, **options: object) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, color_system="truecolor" if colour else None)
    render.terminal(shown, console=console, **options)  # type: ignore[arg-type]
    return out.getvalue()


@pytest.mark.parametrize("kind", ["strip", "levels"])
@pytest.mark.parametrize("name", list(VIEWS))
def test_every_view_fits_every_terminal(name: str, kind: str) -> None:
    for colour, width in ((False, 80), (True, 80), (True, 200), (False, 40)):
        text = printed(VIEWS[name](), colour=colour, width=width, kind=kind)
        assert max(cell_len(ESCAPES.sub("", line)) for line in text.splitlines()) <= width
        assert colour or "\x1b" not in text
        assert "rollout" in text


def test_the_strip_shows_value_method_query_and_level() -> None:
    text = printed(view(values=np.tile([0.5, 0.1, 0.3, 0.0, 0.1], (3, 5, 1))), level=1, query=4)
    assert text.startswith("rollout: what “are” draws on, at layer 1  (made up)")
    assert "the▃ key█ ##s are▃" in text
    assert re.search(r"2 key +0.3 +█+\n", text)
    assert "not in the scale" in text


def test_colours_are_of_the_ground_and_ink_reads_on_them() -> None:
    shown = view(values=np.tile([0.0, 0.4, 0.2, 0.1, 0.0], (3, 5, 1)))
    dark, light = (printed(shown, colour=True, theme=theme, top=0) for theme in ("dark", "light"))
    assert "48;2;222;244;246" in dark  # the end of the dark ramp
    assert "48;2;28;44;107" in light
    apart = view(values=np.tile([0.9, 0.4, 0.2, 0.1, 0.9], (3, 5, 1)), special=(0, 4))
    for theme, grey in (("dark", "48;2;117;125;137"), ("light", "48;2;163;170;180")):
        text = printed(apart, colour=True, theme=theme, query=1, top=0)
        assert all(re.search(rf"{grey}m{label}", text) for label in (r"\[CLS\]", "are"))  # outside the scale
        assert "special tokens and “the” itself" in text
    assert ESCAPES.sub("", dark) == ESCAPES.sub("", light)


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    render.terminal(view(), width=80)
    assert not re.search(r"\x1b\[[0-9;]*(38|48);", capsys.readouterr().out)


def test_levels_lists_the_largest_in_reading_order() -> None:
    values = np.zeros((3, 9, 9))
    values[:, 0, 3], values[:, 0, 1] = 0.2, 0.1
    text = printed(view(3, 9, values=values), kind="levels", top=2)
    assert re.search(r"1 w1 .*\n.*⋮.*\n +3 w3 .*0\.2\n", text)
    assert "7 more inputs" in text
    assert "more inputs" not in printed(view(3, 9, values=values), kind="levels", top=None)
    assert "⋮" not in printed(view(3, 9, values=values), kind="levels", top=7)  # a mark would take the place of a line


def test_numbers_stay_in_their_column_beside_labels_written_from_the_right() -> None:
    shown = view(2, 5, labels=["漢字", "שלום", "مرحبا", "ไทย", "x"])
    for kind in ("strip", "levels"):
        text = printed(shown, kind=kind)
        assert re.search("שלום *\u200e", text)
        assert re.search("مرحبا *\u200e", text)
        assert "漢字\u200e" not in text


def test_bars_are_as_long_as_their_values_to_an_eighth() -> None:
    shown = view(1, values=np.tile([0.0, 0.4, 0.2, 0.105, 0.0], (1, 5, 1)))
    widths = [len(bar) for bar in re.findall(r" ([█▏▎▍▌▋▊▉]+)\n", printed(shown, top=3))]
    assert widths == [38, 19, 10]
    coloured = ESCAPES.sub("", printed(shown, colour=True, top=3))
    assert re.search(r"0\.4 {39}\n", coloured)  # a coloured ground, without the seams of block letters


def test_many_levels_show_the_upper_ones() -> None:
    text = printed(view(60, 5), kind="levels", width=80)
    assert "do not fit" in text
    assert " 59 " in text


def test_hidden_special_tokens_are_gone() -> None:
    assert "[CLS]" not in printed(view(query=1), special="hidden").split("\n", 1)[1]


def test_advice_ends_the_output() -> None:
    assert printed(VIEWS["some rows"]()).rstrip().endswith("⚠ Raw attention misleads here.")
    assert "misleads" not in printed(VIEWS["some rows"](), level=0)


def test_signs_show_without_colour() -> None:
    text = printed(view(values=np.tile([0.0, -0.3, 0.3, 0.0, 0.0], (3, 5, 1))))
    assert "the-█ key█" in text
    assert "−0.3" in text


def test_the_flow_of_a_pair(graph: af.AttentionGraph) -> None:
    text = printed(flow())
    assert "0.75 flows from “the” up to “is”" in text
    assert "is →₀ the" in text
    assert "is →₁ key →₀ the" in text
    assert "layer 1: is ← key" in text
    assert "flows from" in printed(af.bottleneck(graph, 1, 2))


def test_control_characters_never_reach_the_terminal() -> None:
    evil = af.AttentionGraph(np.full((1, 2, 2), 0.5), ["\x1b[2J", "a\u202eb"])
    text = printed(af.rollout(evil))
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_bad_arguments() -> None:
    with pytest.raises(InvalidArgument, match=r"'strp'.* Did you mean 'strip'"):
        render.terminal(view(), kind="strp")
    with pytest.raises(InvalidArgument, match="top is how many"):
        render.terminal(view(), top=-1)
    with pytest.raises(InvalidArgument, match="no picture of a dict"):
        render.terminal({})  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="there is no level 7"):
        render.terminal(view(), level=7)
    with pytest.raises(InvalidArgument, match="2 queries of this view are 'a'"):
        render.terminal(view(labels=["a", "a", "b", "c", "d"]), query="a")


def test_patches_are_a_map() -> None:
    lines = printed(VIEWS["image"](), top=0).splitlines()
    assert "[CLS]" in lines[2]
    assert "patch" not in "".join(lines)
    assert [len(line) for line in lines[3:5]] == [6, 6]  # 2 × 3 patches, two letters each
    coloured = printed(VIEWS["image"](), colour=True, top=0).splitlines()
    assert all(ESCAPES.sub("", line) == " " * 6 for line in coloured[3:5])


def test_patches_that_do_not_fit_share_their_mean_without_what_is_apart() -> None:
    brush = Brush(Console(file=io.StringIO(), color_system=None), None, width=4)
    shares = np.array([[0.5, 1.0, 0.0, 0.0], [9.0, 0.0, 0.0, 1.0]]).ravel()
    chosen = shares < 2
    lines = patch_lines(shares, chosen, PatchGrid(2, 4, 0), brush, signed=False)
    assert [line.plain for line in lines] == [brush.patch(0.5) + brush.patch(0.25)]
