"""From what a user has (a path, a PIL image, an array, a pixel tensor) to pixel values, and where they lie on the image."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attnflow.capture._batch import Batch
from attnflow.capture._crops import crop
from attnflow.capture._models import device_of, processor_for, takes
from attnflow.capture._patches import patches_of, shown, sizing
from attnflow.errors import CaptureError, InvalidArgument
from attnflow.images import Box, Picture, picture


@dataclass(frozen=True, eq=False)
class Shot:
    """One image as the model takes it: values [channel, row, column], and the picture with the part that they show."""

    pixels: torch.Tensor
    picture: Picture | None


def sees_only(model: torch.nn.Module) -> bool:
    """Whether the model reads images and no text."""
    return takes(model, "pixel_values") and not takes(model, "input_ids")


def image_kind(inputs: Any) -> str:
    """What the input of a model that sees is: image, "many image", or keywords."""
    if isinstance(inputs, Mapping):
        return "keywords"
    if isinstance(inputs, str | os.PathLike) or hasattr(inputs, "convert"):
        return "image"
    if hasattr(inputs, "shape"):
        if len(inputs.shape) not in (2, 3, 4):
            raise InvalidArgument(
                f"an image has 2 or 3 dimensions and a batch of them 4, got an array of shape {tuple(inputs.shape)}. "
                'Video goes in as the model\'s own argument: {"pixel_values": (1, frames, channels, rows, columns)}.'
            )
        return "many image" if len(inputs.shape) == 4 else "image"
    if not isinstance(inputs, Sequence):
        raise InvalidArgument(
            f"this model reads images: paths, PIL images, arrays or pixel tensors, or a list of them; got a {type(inputs).__name__}."
        )
    if not len(inputs):
        raise CaptureError("the list of images is empty: there is nothing to capture.")
    return "many image"


def is_image(inputs: Any) -> bool:
    """Whether the input can only be an image, or a list of them: text, numbers and sound come as something else."""
    if isinstance(inputs, list | tuple) and inputs:
        return is_image(inputs[0])
    array = hasattr(inputs, "shape") and len(inputs.shape) >= 3 and str(inputs.dtype).endswith("uint8")
    return isinstance(inputs, os.PathLike) or hasattr(inputs, "convert") or array


def shots_of(model: Any, inputs: Any, kind: str, processor: Any, name: str | None) -> list[Shot]:
    """Each image as pixel values. Floating point tensors are pixel values already, whatever is in them."""
    each = list(inputs) if kind == "many image" else [inputs]
    for one in each:
        if isinstance(one, str) and not os.path.exists(one):
            raise CaptureError(f"{type(model).__name__} reads images: there is no file {one!r}.")
    if not all(_is_pixel_values(one) for one in each):
        processor = image_processor(processor_for(model, processor, name))
    camera = Camera(processor)
    return [Shot(one, shown(one)) if _is_pixel_values(one) else camera(one) for one in each]


def image_batches(model: Any, shots: Sequence[Shot], size: int) -> Iterator[Batch]:
    """Images of one size together, in order."""
    for _, alike in itertools.groupby(shots, key=lambda shot: shot.pixels.shape):
        same = list(alike)
        for start in range(0, len(same), size):
            yield _batch(model, same[start : start + size])


def _batch(model: Any, shots: Sequence[Shot]) -> Batch:
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)
    pixels = torch.stack([shot.pixels for shot in shots]).to(device_of(model), dtype)
    pictures = [[shot.picture] for shot in shots]
    return Batch(
        {"pixel_values": pixels, **sizing(model, pixels)}, len(shots), patches_of(model, pixels, pictures), None
    )


class Camera:
    """A processor that also says which part of each image it shows to the model."""

    def __init__(self, processor: Any) -> None:
        self.processor = processor
        self._crops: dict[tuple[int, int], Box | None] = {}

    def __call__(self, image: Any) -> Shot:
        """One image, from whatever it comes in."""
        from PIL import Image

        whole = picture(image)
        pixels = torch.from_numpy(self.process([Image.fromarray(whole.pixels)])[0])
        size = (whole.width, whole.height)
        if size not in self._crops:
            self._crops[size] = crop(self.process, *size)
        box = self._crops[size]
        # Where the map from image to input is not known, the input itself is what the patches lie on.
        return Shot(pixels, shown(pixels) if box is None else replace(whole, box=box))

    def process(self, images: Sequence[Any]) -> NDArray[Any]:
        """[image, channel, row, column]."""
        if not hasattr(self.processor, "save_pretrained"):  # a function from one image to one tensor
            return np.stack([np.asarray(self.processor(image), dtype=np.float32) for image in images])
        try:
            found = self.processor(images=list(images), return_tensors="np")["pixel_values"]
        except (ValueError, TypeError, KeyError) as error:
            raise CaptureError(f"{type(self.processor).__name__} could not read the image: {error}") from error
        pixels = np.asarray(found)
        if pixels.ndim != 4:
            raise CaptureError(
                f"{type(self.processor).__name__} makes pixel values of shape {pixels.shape} of an image. Pass what the model "
                "needs as a dict of its own arguments."
            )
        return pixels


def image_processor(processor: Any) -> Any:
    """The part of a processor that reads images."""
    return getattr(processor, "image_processor", None) or processor


def _is_pixel_values(image: Any) -> bool:
    return isinstance(image, torch.Tensor) and image.is_floating_point() and image.ndim == 3
