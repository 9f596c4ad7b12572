"""An image model as a function of which patches of its image are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attnflow.capture._ablated import Ablation
from attnflow.capture._batch import Batch
from attnflow.capture._patches import Patches
from attnflow.capture._run import forward
from attnflow.capture._session import borrowed
from attnflow.capture._targets import fixed, readout_row, values
from attnflow.errors import CaptureError, InvalidArgument, suggest
from attnflow.tokens import Tokens

REPLACEMENTS = ("mean", "blank")

Mask = NDArray[np.bool_]


def of_patches(model: Any, batch: Batch, target: Any, replace: str, batch_size: int) -> Ablation:
    """`replace`: "mean", the mean colour of the image, or "blank", 0 as the model sees it (the middle grey of most processors)."""
    if replace not in REPLACEMENTS:
        raise InvalidArgument(f"cannot replace a patch by {replace!r}." + suggest(replace, REPLACEMENTS))
    pixels = batch.keywords["pixel_values"]
    source = batch.source
    if not isinstance(source, Patches) or source.layout.frames > 1 or pixels.ndim != 4:
        raise CaptureError(f"{type(model).__name__} has no grid of patches on one image, to be taken away one by one.")
    layout = source.layout
    tokens = source.labels(0, len(layout.before) + layout.patches + len(layout.after))
    with borrowed(model), torch.no_grad():
        outputs = forward(model, batch)
        chosen = target if callable(target) else fixed(target, readout_row(outputs, 0, None, model), model, None)
        [value] = values(outputs, [chosen], [None], model, None, probability=True).tolist()
    filler = pixels.mean(dim=(2, 3), keepdim=True) if replace == "mean" else torch.zeros_like(pixels[:, :, :1, :1])
    grid = tokens.grids[0]
    removable = np.zeros(len(tokens), dtype=np.bool_)
    removable[grid.offset : grid.stop] = True

    def probabilities(kept: Mask) -> NDArray[np.float64]:
        found: list[float] = []
        with borrowed(model), torch.no_grad():
            for start in range(0, len(kept), batch_size):
                seen = torch.from_numpy(on_pixels(kept[start : start + batch_size], tokens, pixels.shape[2:]))
                shown = torch.where(seen[:, None].to(pixels.device), pixels, filler)
                keywords = {**batch.keywords, "pixel_values": shown}
                outputs = forward(model, Batch(keywords, len(shown), batch.source, None))
                found += values(outputs, [chosen] * len(shown), [None] * len(shown), model, None, probability=True).tolist()  # fmt: skip
        return np.array(found, dtype=np.float64)

    return Ablation(tokens, removable, chosen, float(value), replace, probabilities)


def on_pixels(kept: Mask, tokens: Tokens, size: Any) -> Mask:
    """Variants [variant, token] as masks over the pixels [variant, row, column]."""
    grid, (height, width) = tokens.grids[0], size
    patches = kept[:, grid.offset : grid.stop].reshape(len(kept), grid.rows, grid.columns)
    rows, columns = np.arange(height) * grid.rows // height, np.arange(width) * grid.columns // width
    return np.ascontiguousarray(patches[:, rows][:, :, columns])
