"""The overlay: the image's own pixels, with the map on exactly the part that the patches cover."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import attnflow as af
from attnflow import render
from attnflow.errors import InvalidArgument
from attnflow.images import Picture
from attnflow.render._overlay import _weights

GREY = np.full((60, 90, 3), 120, dtype=np.uint8)


def lit(row: int, column: int, picture: Picture | None = None, value: float = 1.0) -> af.Attribution:
    """A map of 3 × 4 patches of which one is lit."""
    shown = picture or Picture(GREY, (10, 0, 90, 60))
    tokens = af.Tokens(["[CLS]", *map(str, range(12))], [True] + [False] * 12, grids=[af.PatchGrid(3, 4, 1, shown)])
    scores = np.zeros((1, 1, 13))
    scores[0, 0, 0], scores[0, 0, 1 + row * 4 + column] = 9, value
    return af.Attribution(scores, tokens, "made", (0,), (0,), tuple(range(13)))


@pytest.mark.parametrize(("row", "column"), [(0, 0), (1, 2), (2, 3)])
def test_blocks_light_exactly_their_patch(row: int, column: int) -> None:
    drawn = render.overlay(lit(row, column), smooth=False)
    assert drawn.shape == GREY.shape
    changed = (drawn != drawn[0, 0] if (row, column) != (0, 0) else drawn != drawn[-1, -1]).any(axis=2)
    expected = np.zeros((60, 90), dtype=bool)
    expected[row * 20 : row * 20 + 20, 10 + column * 20 : 30 + column * 20] = True
    np.testing.assert_array_equal(changed, expected)


def test_smooth_maps_fade_from_the_middle_of_the_patch() -> None:
    drawn = render.overlay(lit(1, 1)).astype(int)
    away = np.abs(drawn - drawn[-1, -1]).sum(axis=2)
    row, column = np.unravel_index(away.argmax(), away.shape)
    assert abs(row - 29.5) <= 1
    assert abs(column - 39.5) <= 1
    assert (np.diff(away[30, 40:50]) <= 0).all()
    assert not away[:, :10].any()


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize(("start", "stop", "count", "size"), [(0, 60, 3, 60), (-7.5, 20.25, 5, 18), (4, 9, 1, 30)])
def test_inside_the_part_the_weights_of_each_pixel_sum_to_one(
    start: float, stop: float, count: int, size: int, smooth: bool
) -> None:
    sums = _weights(start, stop, count, size, smooth=smooth).sum(axis=1)
    centres = np.arange(size) + 0.5
    np.testing.assert_allclose(sums, ((centres >= start) & (centres < stop)).astype(float), atol=1e-12)


@pytest.mark.parametrize("ending", ["png", "jpg", "webp"])
def test_it_is_written_at_the_images_own_resolution(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"map.{ending}"
    large = Picture(np.zeros((1100, 700, 3), dtype=np.uint8), (0, 0, 700, 1100))
    drawn = render.overlay(lit(0, 1, large), path, theme="dark")
    with Image.open(path) as opened:
        assert opened.size == (700, 1100)
        if ending == "png":
            np.testing.assert_array_equal(np.asarray(opened), drawn)


def test_signed_maps_have_two_colours() -> None:
    red, blue = (render.overlay(lit(1, 1, value=value), smooth=False)[30, 40].astype(int) for value in (-1.0, 1.0))
    assert red[0] > red[2]
    assert blue[2] > blue[0]


def test_another_image_and_another_query() -> None:
    other = np.zeros((30, 40, 3), dtype=np.uint8)
    assert render.overlay(lit(0, 0), image=other).shape == other.shape


@pytest.mark.parametrize(
    ("shown", "options", "message"),
    [
        (lit(0, 0), {"grid": 1}, "no patch grid 1"),
        (lit(0, 0), {"theme": "blue"}, "light or dark"),
        (lit(0, 0), {"path": "map.txt"}, "written as .png"),
        (af.raw(af.AttentionGraph([np.eye(2)], ["a", "b"])), {}, "no patch grid 0"),
        (
            af.raw(af.AttentionGraph([np.eye(2)], af.Tokens(["a", "b"], grids=[af.PatchGrid(1, 2)]))),
            {},
            "image=…",
        ),
    ],
)
def test_what_cannot_be_laid_over_is_said(shown: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        render.overlay(shown, **options)
