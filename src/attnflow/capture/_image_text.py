"""Models that see and read: three ways to join an image and a text, and what their positions are.

`PLACEHOLDERS`: a decoder whose text has places for the patches of images (LLaVA, Qwen2-VL). The graph is the decoder's.
`TOWERS`: an image tower and a text tower that meet in a score (CLIP, SigLIP). Both are in the graph, side by side.
`CROSSING`: a text model that attends to the image (BLIP). The image is the encoder's block, the text the decoder's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attnflow.capture._models import takes
from attnflow.capture._patches import cutter, shown
from attnflow.capture._positions import Block
from attnflow.images import Picture
from attnflow.tokens import PatchGrid, Tokens, Word

PLACEHOLDERS, TOWERS, CROSSING = "placeholders", "towers", "crossing"

_EYE = re.compile(r"vision|visual|image_encoder|image_tower|projector|connector|resampler")


def family_of(model: Any) -> str | None:
    """How a model joins image and text; None if it does not."""
    config = getattr(model, "config", None)
    if config is None or not takes(model, "pixel_values") or not takes(model, "input_ids"):
        return None
    if image_token(config) is not None:
        return PLACEHOLDERS
    if hasattr(model, "vision_model") and hasattr(model, "text_model"):
        return TOWERS
    if hasattr(model, "vision_model") and (hasattr(model, "text_decoder") or hasattr(model, "text_encoder")):
        return CROSSING
    return None


def image_token(config: Any) -> int | None:
    """The id that stands where a patch will be."""
    for name in ("image_token_id", "image_token_index"):
        value = getattr(config, name, None)
        if isinstance(value, int):
            return value
    return None


def sees(path: str) -> bool:
    """Whether a module is part of a model's eye, by its name."""
    return bool(_EYE.search(path))


def with_grids(
    block: Block, model: Any, keywords: Mapping[str, Any], pictures: Sequence[Sequence[Picture | None]] | None
) -> Block:
    """The text's positions with the patches of its images named and put into grids, where they lie together."""
    token = image_token(model.config)
    if block.tokens is None or block.kept is None or token is None:
        return block
    sizes = _sizes(model, keywords)
    named, used = [], 0
    for item, (tokens, kept) in enumerate(zip(block.tokens, block.kept, strict=True)):
        ids = keywords["input_ids"][item].cpu().numpy()[kept]
        own = None if pictures is None else pictures[item]
        marked, used = _marked(tokens, ids == token, sizes, used, own, keywords.get("pixel_values"))
        named.append(marked)
    return replace(block, tokens=named)


def _sizes(model: Any, keywords: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Rows and columns of each image's patches as the eye cuts them, merged where the model says so."""
    shapes = keywords.get("image_grid_thw")
    if isinstance(shapes, torch.Tensor):
        merge = getattr(model.config.vision_config, "spatial_merge_size", 1)
        return [(int(h) // merge, int(w) // merge) for _, h, w in shapes.tolist()]
    pixels, cut = keywords.get("pixel_values"), cutter(model)
    if not isinstance(pixels, torch.Tensor) or pixels.ndim != 4 or cut is None:
        return []
    step = cut.stride[-2:]
    return [(pixels.shape[-2] // int(step[0]), pixels.shape[-1] // int(step[1]))] * len(pixels)


def _marked(
    tokens: Tokens,
    places: NDArray[np.bool_],
    sizes: Sequence[tuple[int, int]],
    used: int,
    pictures: Sequence[Picture | None] | None,
    pixels: Any,
) -> tuple[Tokens, int]:
    """One text whose images begin with number `used` of the batch; and the number of the next text's first image."""
    runs = _runs(places)
    labels, grids = list(tokens.labels), []
    first = used
    for start, stop in runs:
        while start < stop and used < len(sizes):
            rows, columns, lead = _fitting(sizes[used], stop - start, _left(sizes, used))
            if not rows:
                break
            number = used - first
            name = "patch" if _images_in(runs, sizes, first) == 1 else f"image {number} patch"
            grids.append(PatchGrid(rows, columns, start + lead, _picture(pictures, pixels, number, used)))
            for place in range(rows * columns):
                labels[start + lead + place] = f"{name} {place // columns},{place % columns}"
            start, used = start + lead + rows * columns, used + 1
    patches = np.zeros(len(labels), dtype=np.bool_)
    for grid in grids:
        patches[grid.offset : grid.stop] = True
    words = [word for word in tokens.words if not places[word.start : word.stop].any()]
    return Tokens(labels, tokens.special & ~patches, tokens.padding, [Word(*word) for word in words], grids), used


def _runs(places: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Stretches of neighbours."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], places.astype(np.int8), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _left(sizes: Sequence[tuple[int, int]], used: int) -> int:
    """The patches of the images that may follow in the same stretch."""
    return sum(rows * columns for rows, columns in sizes[used + 1 :])


def _images_in(runs: Sequence[tuple[int, int]], sizes: Sequence[tuple[int, int]], first: int) -> int:
    total = sum(stop - start for start, stop in runs)
    count = 0
    for rows, columns in sizes[first:]:
        if total <= 0:
            break
        total, count = total - rows * columns, count + 1
    return max(count, len(runs))


def _fitting(size: tuple[int, int], room: int, after: int) -> tuple[int, int, int]:
    """Rows, columns and tokens before them, of an image's patches in a stretch of so many places.

    As the eye cut them; with the eye's class token; or merged by some whole number, as Gemma 3 and InternVL do. Zero if none fits.
    """
    rows, columns = size
    if room == rows * columns + 1:
        return rows, columns, 1
    if room >= rows * columns and room <= rows * columns + after:
        return rows, columns, 0
    step = math.isqrt(max(1, rows * columns // room))
    if step > 1 and rows % step == columns % step == 0 and (rows // step) * (columns // step) == room:
        return rows // step, columns // step, 0
    return 0, 0, 0


def _picture(pictures: Sequence[Picture | None] | None, pixels: Any, number: int, used: int) -> Picture | None:
    if pictures is not None:
        return pictures[number] if number < len(pictures) else None
    if isinstance(pixels, torch.Tensor) and pixels.ndim == 4:
        return shown(pixels[used])
    return None
