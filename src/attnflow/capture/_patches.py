"""Which positions of a vision model are patches, in how many rows and columns, and what the others are.

Read from the model itself: the convolution that cuts the patches says how large they are, and its learned tokens what
stands before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from attnflow.capture._models import takes
from attnflow.capture._positions import Block
from attnflow.errors import CaptureError
from attnflow.images import Picture
from attnflow.tokens import PatchGrid, Tokens

# Learned tokens by the names that they have in models, in the order in which they stand. Detection tokens come last.
_BEFORE = {
    "cls_token": "[CLS]",
    "class_embedding": "[CLS]",
    "distillation_token": "[DIST]",
    "dist_token": "[DIST]",
    "register_tokens": "[REG]",
    "reg_token": "[REG]",
}
_AFTER = {"detection_tokens": "[DET]"}

CLASS_TOKEN = "[CLS]"


@dataclass(frozen=True)
class Layout:
    """`frames` grids of `rows` × `columns` patches one after the other, between tokens that are no patches."""

    rows: int
    columns: int
    frames: int = 1
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def patches(self) -> int:
        """How many patches there are."""
        return self.rows * self.columns * self.frames


@dataclass(frozen=True, eq=False)
class Patches(Block):
    """The positions of a vision model; `pictures` are, for each input, what its grids were cut from.

    `pooled`: what the model says is read from the mean of the patches, not from a token of its own.
    """

    layout: Layout = Layout(1, 1)
    pictures: Sequence[Sequence[Picture | None]] = ()
    model: str = ""
    pooled: bool = False
    known: bool = True  # a model of transformers

    def labels(self, item: int, count: int, unnamed: str = "") -> Tokens:
        """The tokens of an input, of which the model made `count`."""
        layout = self.layout
        before, after = self._others(count)
        start, size = len(before), layout.rows * layout.columns
        names = [*before]
        for frame in range(layout.frames):
            where = f"frame {frame} patch" if layout.frames > 1 else "patch"
            names += [f"{where} {row},{column}" for row in range(layout.rows) for column in range(layout.columns)]
        names += after
        grids = [
            PatchGrid(layout.rows, layout.columns, start + frame * size, self.pictures[item][frame])
            for frame in range(layout.frames)
        ]
        special = np.ones(count, dtype=np.bool_)
        special[start : start + layout.patches] = False
        return Tokens(names, special, grids=grids)

    def _others(self, count: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The tokens before and after the patches, if those that the model has account for all positions."""
        layout = self.layout
        for before, after in ((layout.before, layout.after), ((), ()), (layout.before[:1], ())):
            if len(before) + layout.patches + len(after) == count:
                return before, after
        raise CaptureError(
            f"{self.model} cannot be captured: it cuts the image into {layout.rows} × {layout.columns} patches"
            f"{f' in {layout.frames} frames' if layout.frames > 1 else ''}, and its attention is over {count} positions. It "
            "leaves patches out, merges them or adds to them, so which position is which patch is not known."
            f"{'' if self.known else ' Say it: tokens=Tokens(labels, grids=[PatchGrid(rows, columns, offset)]).'}"
        )


def patches_of(model: Any, pixels: Any, pictures: Sequence[Sequence[Picture | None]] | None = None) -> Block:
    """The positions that a model makes of pixel values (batch, channels, rows, columns), or (batch, frames, channels, …).

    Without `pictures`, the pixel values themselves are shown. A model that cuts no patches has nameless positions.
    """
    layout = _layout(model, pixels)
    if layout is None:
        return Block(None, None)
    if pictures is None:
        step = 1 if pixels.ndim == 4 else pixels.shape[1] // layout.frames
        pictures = [[shown(one)] if pixels.ndim == 4 else [shown(frame) for frame in one[::step]] for one in pixels]
    place = layout.before.index(CLASS_TOKEN) if CLASS_TOKEN in layout.before else 0
    pooled = reads_mean(model, layout)
    return Patches(
        None,
        None,
        (place, "the class token"),
        layout,
        pictures,
        type(model).__name__,
        pooled,
        hasattr(model, "name_or_path"),
    )


def shown(pixels: torch.Tensor) -> Picture | None:
    """Pixel values [channel, row, column] as a picture, from the lowest (black) to the highest (white)."""
    if pixels.ndim != 3 or pixels.shape[0] not in (1, 3):
        return None
    values = pixels.detach().float().cpu()
    low, high = values.min(), values.max()
    scaled = ((values - low) / (high - low).clamp(min=1e-12) * 255).round().to(torch.uint8)
    array = scaled.expand(3, -1, -1).permute(1, 2, 0).numpy()
    return Picture(array, (0, 0, array.shape[1], array.shape[0]))


def reads_mean(model: Any, layout: Layout) -> bool:
    """Whether the model's answer is read from the mean of the patches (or there is no token that gathers it)."""
    config = getattr(model, "config", None)
    averages = getattr(config, "use_mean_pooling", False) is True or getattr(model, "global_pool", "") == "avg"
    return CLASS_TOKEN not in layout.before or averages


def cutter(model: torch.nn.Module) -> torch.nn.Conv2d | torch.nn.Conv3d | None:
    """The convolution that cuts an image into patches: its steps are as wide as itself."""
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d | torch.nn.Conv3d) and _tuple(module.stride) == _tuple(
            module.kernel_size
        ):
            return module
    return None


def sizing(model: Any, pixels: torch.Tensor) -> dict[str, Any]:
    """The argument that lets a model take images of another size than it was made for, where it must be asked."""
    config = getattr(model.config, "vision_config", model.config)
    made_for = getattr(config, "image_size", None)
    if made_for is None or pixels.ndim < 4 or not takes(model, "interpolate_pos_encoding"):
        return {}
    sides = (made_for, made_for) if isinstance(made_for, int) else tuple(made_for)
    return {} if tuple(pixels.shape[-2:]) == sides else {"interpolate_pos_encoding": True}


def _layout(model: Any, pixels: Any) -> Layout | None:
    cut = cutter(model)
    if cut is None or not isinstance(pixels, torch.Tensor) or pixels.ndim not in (4, 5):
        return None
    steps = _tuple(cut.stride)
    rows, columns = (size // step for size, step in zip(pixels.shape[-2:], steps[-2:], strict=True))
    frames = 1 if pixels.ndim == 4 else pixels.shape[1] // (steps[0] if len(steps) == 3 else 1)
    if not rows or not columns or not frames:
        raise CaptureError(
            f"the image is smaller than one patch: {tuple(pixels.shape[-2:])} pixels, patches of {steps[-2:]}."
        )
    return Layout(rows, columns, frames, _learned(model, _BEFORE), _learned(model, _AFTER))


def _learned(model: torch.nn.Module, known: dict[str, str]) -> tuple[str, ...]:
    """The labels of a model's own tokens. Several of one kind are numbered."""
    found: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        kind = known.get(name.rpartition(".")[2])
        if kind is not None and kind not in found:
            found[kind] = 1 if parameter.ndim < 2 else int(parameter.shape[-2])
    order = dict.fromkeys(known.values())
    labels: list[str] = []
    for kind in order:
        count = found.get(kind, 0)
        labels += [kind] if count == 1 else [f"{kind[:-1]} {i}]" for i in range(count)]
    return tuple(labels)


def _tuple(sizes: int | tuple[int, ...]) -> tuple[int, ...]:
    return (sizes,) if isinstance(sizes, int) else tuple(sizes)
