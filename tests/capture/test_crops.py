"""The part of an image that a model sees: measured, and compared with what each processor's settings say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from transformers import BeitImageProcessorPil, CLIPImageProcessorPil, ViTImageProcessorPil

from attnflow.capture._crops import crop
from attnflow.capture._images import Camera

SIZES = [(32, 32), (60, 40), (40, 60), (400, 300), (37, 90), (1, 20), (640, 33)]


def close(found: Any, expected: Any, size: tuple[int, int]) -> None:
    """Within half a pixel of the model's input, or what 256 steps of brightness can tell."""
    sides = np.array([size[0], size[1], size[0], size[1]])
    assert np.abs(np.subtract(found, expected)).max() <= np.maximum(0.5 * sides / 32, sides / 255).max(), (
        found,
        expected,
    )


@pytest.mark.parametrize("size", SIZES)
def test_resizing_covers_the_whole_image(size: tuple[int, int]) -> None:
    camera = Camera(ViTImageProcessorPil(size={"height": 32, "width": 48}))
    shot = camera(Image.new("RGB", size, "grey"))
    assert shot.pixels.shape == (3, 32, 48)
    assert shot.picture is not None
    assert shot.picture.box == (0, 0, *size)


@pytest.mark.parametrize("size", [size for size in SIZES if 1 not in size])
def test_resizing_the_short_side_and_cropping_the_middle(size: tuple[int, int]) -> None:
    camera = Camera(CLIPImageProcessorPil(size={"shortest_edge": 40}, crop_size={"height": 32, "width": 32}))
    shot = camera(Image.new("RGB", size, "grey"))
    width, height = size
    scale = min(size) / 40  # pixels of the image for one of the model's
    wide, tall = int(width / scale), int(height / scale)
    left, top = (wide - 32) // 2 * width / wide, (tall - 32) // 2 * height / tall
    expected = (left, top, left + 32 * width / wide, top + 32 * height / tall)
    assert shot.picture is not None
    close(shot.picture.box, expected, size)


def test_resizing_both_sides_and_cropping() -> None:
    settings: dict[str, Any] = {"size": {"height": 40, "width": 40}, "crop_size": {"height": 32, "width": 32}}
    shot = Camera(BeitImageProcessorPil(**settings, do_center_crop=True))(Image.new("RGB", (200, 100)))
    assert shot.picture is not None
    close(shot.picture.box, (20, 10, 180, 90), (200, 100))


def test_a_crop_larger_than_the_image_reaches_beyond_it() -> None:
    settings: dict[str, Any] = {"do_resize": False, "crop_size": {"height": 32, "width": 32}}
    shot = Camera(CLIPImageProcessorPil(**settings))(Image.new("RGB", (20, 24), "grey"))
    assert shot.picture is not None
    close(shot.picture.box, (-6, -4, 26, 28), (20, 24))


@given(
    width=st.integers(2, 300),
    height=st.integers(2, 300),
    part=st.tuples(*[st.floats(0, 0.4)] * 2, *[st.floats(0.6, 1)] * 2),
)
def test_any_straight_map_is_found(width: int, height: int, part: tuple[float, ...]) -> None:
    """A processor that shows an arbitrary part of the image, at 48 × 32 pixels."""
    box = (part[0] * width, part[1] * height, part[2] * width, part[3] * height)

    def process(images: Sequence[Image.Image]) -> np.ndarray:
        made = [
            np.asarray(image.transform((48, 32), Image.Transform.EXTENT, box, Image.Resampling.BILINEAR))
            for image in images
        ]
        return (np.stack(made).transpose(0, 3, 1, 2) / 255 - 0.45) / 0.22

    found = crop(process, width, height)
    assert found is not None
    # Bilinear steps of the last pixels are flat, so very small images are less sure.
    allowed = max(width, height) / 255 + max(1.0, 0.5 * max(width, height) / 32)
    assert np.abs(np.subtract(found, box)).max() <= allowed


def test_what_is_no_straight_map_is_not_taken_for_one() -> None:
    rng = np.random.default_rng(0)
    order = rng.permutation(32)
    processor = CLIPImageProcessorPil(size={"height": 32, "width": 32}, do_center_crop=False)

    def shuffled(images: Sequence[Image.Image]) -> np.ndarray:
        found: np.ndarray = np.asarray(processor(images=list(images), return_tensors="np")["pixel_values"])
        return found[..., order]

    assert crop(shuffled, 64, 64) is None


def test_the_map_is_measured_once_for_each_size() -> None:
    calls = []
    processor = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})

    class Counting:
        save_pretrained = None  # as processors of transformers have it

        def __call__(self, images: Any, **options: Any) -> Any:
            calls.append(len(images))
            return processor(images, **options)

    camera = Camera(Counting())
    for _ in range(3):
        camera(Image.new("RGB", (50, 40)))
    assert sorted(calls) == [1, 1, 1, 4]
