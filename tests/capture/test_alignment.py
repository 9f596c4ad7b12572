"""From pixels to patches and back: a model that looks at the one bright spot lights exactly that spot of the original image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

import attnflow as af
from attnflow import render

tf: Any = transformers
PATCH = 8


def seeker(height: int, width: int, before: int = 1) -> Any:
    """A real vision transformer with weights made by hand: every position attends to the brightest patch alone.

    Of each patch it keeps the brightness in one direction and a constant in another; keys are the first, queries do not
    depend on anything.
    """
    shape: dict[str, Any] = {
        "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 4, "patch_size": PATCH,
        "image_size": (height, width), "qkv_bias": True,
    }  # fmt: skip
    model = (tf.ViTModel(tf.ViTConfig(**shape)) if before == 1 else tf.DeiTModel(tf.DeiTConfig(**shape))).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "layernorm" not in name:
                parameter.zero_()
            if name.endswith("projection.weight"):
                parameter[0] = 4 / parameter[0].numel()
            if name.endswith(("projection.bias", "cls_token", "distillation_token")):
                parameter[..., 1] = 4
            if name.endswith(("cls_token", "distillation_token")):
                parameter[..., 0] = -9  # darker than anything
            if name.endswith("k_proj.weight") or name.endswith("key.weight"):
                parameter[0, 0] = 200
            if name.endswith("q_proj.bias") or name.endswith("query.bias"):
                parameter[0] = 1
    return model


# How a processor shows the image, and which part of it that is, by hand.
PROCESSORS: dict[str, Any] = {
    "squeezed": lambda w, h: (tf.ViTImageProcessorPil(size={"height": 48, "width": 64}), (0, 0, w, h), (48, 64)),
    "cropped": lambda w, h: (
        tf.CLIPImageProcessorPil(size={"shortest_edge": 64}, crop_size={"height": 64, "width": 64}),
        ((w - min(w, h)) / 2, (h - min(w, h)) / 2, (w + min(w, h)) / 2, (h + min(w, h)) / 2),
        (64, 64),
    ),
    "cropped closely": lambda w, h: (
        tf.CLIPImageProcessorPil(size={"shortest_edge": 96}, crop_size={"height": 64, "width": 64}),
        (w / 2 - min(w, h) / 3, h / 2 - min(w, h) / 3, w / 2 + min(w, h) / 3, h / 2 + min(w, h) / 3),
        (64, 64),
    ),
}
SIZES = {"square": (192, 192), "wide": (384, 192), "tall": (160, 320)}
TURNED = {1: lambda a: a, 3: lambda a: a[::-1, ::-1], 6: lambda a: np.rot90(a, 1), 8: lambda a: np.rot90(a, -1)}


def spotted(size: tuple[int, int], box: Any, rows: int, columns: int, row: int, column: int) -> Any:
    """A dark image with a bright spot in the middle of one patch; and the patch's edges on the image."""
    left, top, right, bottom = box
    wide, tall = (right - left) / columns, (bottom - top) / rows
    edges = (left + column * wide, top + row * tall, left + (column + 1) * wide, top + (row + 1) * tall)
    pixels = np.full((size[1], size[0], 3), 20, dtype=np.uint8)
    inner = [round(e) for e in (edges[0] + wide / 4, edges[1] + tall / 4, edges[2] - wide / 4, edges[3] - tall / 4)]
    pixels[inner[1] : inner[3], inner[0] : inner[2]] = 255
    return pixels, edges


@pytest.mark.parametrize("turn", TURNED)
@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("processing", PROCESSORS)
@pytest.mark.parametrize("before", [1, 2])
def test_the_bright_patch_lights_on_the_original_image(
    processing: str, shape: str, turn: int, before: int, tmp_path: Path
) -> None:
    size = SIZES[shape]
    processor, box, (height, width) = PROCESSORS[processing](*size)
    rows, columns = height // PATCH, width // PATCH
    row, column = (rows * 2) // 3, columns // 5
    upright, edges = spotted(size, box, rows, columns, row, column)
    exif = Image.Exif()
    exif[0x0112] = turn
    path = tmp_path / "photo.png"
    Image.fromarray(np.ascontiguousarray(TURNED[turn](upright))).save(path, exif=exif)

    found = af.explain(path, seeker(height, width, before), processor=processor, residual=None)
    scores = found.scores[0, 0]
    assert scores[before + row * columns + column] > 0.99
    grid = found.tokens.grids[0]
    assert (grid.rows, grid.columns, grid.offset) == (rows, columns, before)
    drawn = render.figure(found, smooth=False)
    picture, overlay = drawn.axes[0].images
    assert picture.get_array().shape[:2] == (size[1], size[0])  # type: ignore[union-attr]
    lit = lit_part(overlay)
    assert np.abs(np.subtract(lit, edges)).max() < 0.1 * min(edges[2] - edges[0], edges[3] - edges[1])


def lit_part(overlay: Any) -> tuple[float, float, float, float]:
    """Which part of the image the one lit cell of an overlay covers."""
    left, right, bottom, top = overlay.get_extent()
    values = np.asarray(overlay.get_array())
    (row, column), (rows, columns) = np.unravel_index(values.argmax(), values.shape), values.shape
    assert np.sort(values.ravel())[-2] < 0.01 * values.max()
    wide, tall = (right - left) / columns, (bottom - top) / rows
    return left + column * wide, top + row * tall, left + (column + 1) * wide, top + (row + 1) * tall


def test_the_page_puts_the_patches_on_the_same_part() -> None:
    size = SIZES["wide"]
    processor, box, (height, width) = PROCESSORS["cropped"](*size)
    upright, _ = spotted(size, box, 8, 8, 2, 3)
    found = af.explain(upright, seeker(height, width), processor=processor)
    grid = render.document(found)["texts"][0]["grids"][0]
    assert grid["size"] == list(size)
    np.testing.assert_allclose(grid["box"], box, atol=1.5)
    assert grid["image"].startswith("data:image/")


def test_a_saved_map_lies_where_it_lay(tmp_path: Path) -> None:
    size = SIZES["tall"]
    processor, box, (height, width) = PROCESSORS["cropped closely"](*size)
    upright, edges = spotted(size, box, 8, 8, 5, 1)
    af.explain(upright, seeker(height, width), processor=processor, residual=None).save(tmp_path / "a.npz")
    found = af.Attribution.load(tmp_path / "a.npz")
    lit = lit_part(render.figure(found, smooth=False).axes[0].images[1])
    assert np.abs(np.subtract(lit, edges)).max() < 2


def test_another_copy_of_the_image_may_be_drawn_under_the_map() -> None:
    """The same size keeps the part that is covered; another image is covered whole."""
    size = SIZES["wide"]
    processor, box, (height, width) = PROCESSORS["cropped"](*size)
    upright, _ = spotted(size, box, 8, 8, 2, 3)
    found = af.explain(upright, seeker(height, width), processor=processor)
    copy = render.view(found, image=255 - upright).grids[0].picture
    other = render.view(found, image=upright[:50]).grids[0].picture
    assert copy is not None
    assert other is not None
    np.testing.assert_allclose(copy.box, box, atol=1.5)
    assert other.box == (0, 0, size[0], 50)
