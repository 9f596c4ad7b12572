"""Images under patch maps: from a path, a PIL image or an array to bytes that every back end can draw."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from attnflow.errors import InvalidArgument, MissingExtra
from attnflow.render._view import Picture

ImageLike = Any  # a path, a PIL image, an array [row, column] or [row, column, channel], or a Picture


def picture(image: ImageLike) -> Picture:
    """An image as RGB bytes, upright. Give a `Picture` where the patches cover only a part of it."""
    if isinstance(image, Picture):
        return image
    if isinstance(image, str | os.PathLike):
        image = _opened(image)
    if hasattr(image, "convert"):  # a PIL image
        image = np.asarray(image.convert("RGB"))
    pixels = np.asarray(image)
    if pixels.ndim == 2:
        pixels = np.repeat(pixels[..., None], 3, axis=2)
    if pixels.ndim != 3 or pixels.shape[2] not in (3, 4) or 0 in pixels.shape:
        raise InvalidArgument(f"an image is [row, column] or [row, column, RGB or RGBA], got shape {pixels.shape}.")
    if pixels.dtype.kind == "f":
        if not (np.isfinite(pixels).all() and pixels.min() >= 0 and pixels.max() <= 1):
            raise InvalidArgument("an image of floating point numbers holds values from 0 to 1.")
        pixels = np.rint(pixels * 255)
    pixels = np.ascontiguousarray(pixels[..., :3].astype(np.uint8))
    return Picture(pixels, (0.0, 0.0, float(pixels.shape[1]), float(pixels.shape[0])))


def encoded(shown: Picture, longest: int = 1024) -> tuple[bytes, str]:
    """A picture as JPEG or PNG, whichever is smaller, no side longer than `longest`; and its media type."""
    image = _pillow().fromarray(shown.pixels)
    image.thumbnail((longest, longest))
    files = []
    for form, options in (("PNG", {"optimize": True}), ("JPEG", {"quality": 88})):
        file = io.BytesIO()
        image.save(file, form, **options)
        files.append((file.getvalue(), f"image/{form.lower()}"))
    return min(files, key=lambda file: len(file[0]))


def _opened(path: str | os.PathLike[str]) -> Any:
    from PIL import ImageOps, UnidentifiedImageError

    try:
        return ImageOps.exif_transpose(_pillow().open(path))
    except UnidentifiedImageError:
        raise InvalidArgument(f"{os.fspath(path)} is not an image that pillow can read.") from None
    except OSError as error:
        raise InvalidArgument(f"could not read the image {os.fspath(path)}: {error.strerror or error}.") from None


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("pillow, which reads and writes images,", package="pillow") from None
    return Image
