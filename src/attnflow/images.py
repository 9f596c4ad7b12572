"""Images, from whatever they come in: upright, in red, green and blue bytes, as people see them.

Pillow opens files and is imported only for that.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from attnflow.arrays import ReadOnly, frozen
from attnflow.errors import InvalidArgument, MissingExtra

Pixels: TypeAlias = NDArray[np.uint8]
ImageLike: TypeAlias = Any  # a path, a PIL image, an array [row, column] or [row, column, channel], or a Picture
Box: TypeAlias = tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class Picture(ReadOnly):
    """An image [row, column, RGB] in bytes, and the part of it that patches cover: left, top, right, bottom.

    The box may reach beyond the image, where a model's input was padded.
    """

    pixels: Pixels
    box: Box

    def __post_init__(self) -> None:
        pixels = np.asarray(self.pixels)
        if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or 0 in pixels.shape:
            raise InvalidArgument(
                f"a picture is bytes [row, column, RGB], got {pixels.dtype} of shape {pixels.shape}. "
                "attnflow.images.picture() makes one of any image."
            )
        box = tuple(float(edge) for edge in self.box)
        if len(box) != 4 or not np.isfinite(box).all() or not (box[0] < box[2] and box[1] < box[3]):
            raise InvalidArgument(f"the part of a picture is (left, top, right, bottom), got {self.box!r}.")
        object.__setattr__(self, "pixels", frozen(pixels))
        object.__setattr__(self, "box", box)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Picture) and self.box == other.box and np.array_equal(self.pixels, other.pixels)

    def __hash__(self) -> int:
        return hash((self.box, self.pixels.shape, crc32(self.pixels.tobytes())))

    def __repr__(self) -> str:
        edges = ", ".join(f"{edge:g}" for edge in self.box)
        return f"Picture({self.width} × {self.height}, box=({edges}))"

    @property
    def width(self) -> int:
        """In pixels."""
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        """In pixels."""
        return int(self.pixels.shape[0])

    def encoded(self, longest: int = 1024) -> tuple[bytes, str]:
        """As JPEG or PNG, whichever is smaller, no side longer than `longest`; and the media type."""
        image = pillow().fromarray(self.pixels)
        image.thumbnail((longest, longest))
        files = []
        for form, options in (("PNG", {"optimize": True}), ("JPEG", {"quality": 90})):
            file = io.BytesIO()
            image.save(file, form, **options)
            files.append((file.getvalue(), f"image/{form.lower()}"))
        return min(files, key=lambda file: len(file[0]))


def picture(image: ImageLike) -> Picture:
    """An image with all of it covered by patches. Give a `Picture` where they cover only a part."""
    if isinstance(image, Picture):
        return image
    pixels = upright(image)
    return Picture(pixels, (0.0, 0.0, float(pixels.shape[1]), float(pixels.shape[0])))


def upright(image: ImageLike) -> Pixels:
    """[row, column, RGB] of a path, a PIL image or an array, turned as its EXIF data say.

    Transparent pixels lie on white. Sixteen bits become eight, floating point numbers are from 0 to 1, and of a moving
    picture it is the first frame.
    """
    if isinstance(image, str | os.PathLike):
        with _opened(image) as opened:
            return upright(opened)
    pixels = _of_pil(image) if hasattr(image, "convert") else _of_array(image)
    pixels = np.ascontiguousarray(pixels)
    pixels.flags.writeable = False
    return pixels


def is_image_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as image files begin. Its name says nothing."""
    try:
        with open(path, "rb") as file:
            start = file.read(16)
    except OSError:
        return False
    bitmap = start[:2] == b"BM" and start[6:10] == bytes(4)
    webp = start[:4] == b"RIFF" and start[8:12] == b"WEBP"
    return start.startswith(_SIGNATURES) or bitmap or webp


# PNG, JPEG, GIF, and TIFF of either byte order.
_SIGNATURES = (b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*")


def _of_pil(image: Any) -> Pixels:
    from PIL import ImageOps

    try:
        name = _name(image)
        image = ImageOps.exif_transpose(image)
        if image.mode.startswith("I;16") or image.mode in ("I", "F"):
            return _of_array(_in_range(np.asarray(image)))
        if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
            image = image.convert("RGBA")
            ground = pillow().new("RGBA", image.size, "white")
            image = pillow().alpha_composite(ground, image)
        pixels: Pixels = np.asarray(image.convert("RGB"))
        return pixels
    except OSError as error:  # pillow reads pixels when they are asked for
        raise InvalidArgument(f"the image {name}cannot be read to its end: {error}.") from None


def _in_range(values: NDArray[Any]) -> NDArray[Any]:
    """Pillow's wide integers and floats, as arrays are given: 16 bits, 8 bits or 0 to 1."""
    if values.dtype.kind == "f":
        return values / 255 if values.max() > 1 else values
    return values.astype(np.uint16) if values.max() > 255 or values.dtype.itemsize == 2 else values.astype(np.uint8)


def _of_array(image: Any) -> Pixels:
    if hasattr(image, "detach"):  # a torch tensor
        image = image.detach().cpu().numpy()
    pixels = np.asarray(image)
    if pixels.ndim == 3 and pixels.shape[0] in (1, 3, 4) and pixels.shape[2] not in (1, 3, 4):
        pixels = pixels.transpose(1, 2, 0)  # channels first, as torch has them
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    if pixels.ndim != 3 or pixels.shape[2] not in (1, 3, 4) or 0 in pixels.shape:
        raise InvalidArgument(
            f"an image is [row, column] or [row, column, grey, RGB or RGBA], got {_described(image, pixels)}."
        )
    whole = _as_bytes(pixels)
    if whole.shape[2] == 4:
        cover = whole[..., 3:].astype(np.float64) / 255
        whole = np.rint(whole[..., :3] * cover + 255 * (1 - cover)).astype(np.uint8)
    return np.repeat(whole, 3, axis=2) if whole.shape[2] == 1 else whole


def _as_bytes(pixels: NDArray[Any]) -> Pixels:
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype == np.bool_:
        return pixels.astype(np.uint8) * np.uint8(255)
    if pixels.dtype == np.uint16:
        return np.rint(pixels / 257).astype(np.uint8)
    if pixels.dtype.kind in "iu":
        if pixels.min() >= 0 and pixels.max() <= 255:
            return pixels.astype(np.uint8)
        raise InvalidArgument(
            f"an image of whole numbers holds 0 to 255 (or is uint16), got {pixels.min()} to {pixels.max()}."
        )
    if pixels.dtype.kind != "f":
        raise InvalidArgument(f"an image holds numbers, got {pixels.dtype}.")
    if not (np.isfinite(pixels).all() and pixels.min() >= 0 and pixels.max() <= 1):
        raise InvalidArgument(
            f"an image of floating point numbers holds values from 0 to 1, got {pixels.min():.3g} to {pixels.max():.3g}."
        )
    whole: Pixels = np.rint(pixels * 255).astype(np.uint8)
    return whole


def _opened(path: str | os.PathLike[str]) -> Any:
    from PIL import UnidentifiedImageError

    try:
        return pillow().open(path)
    except UnidentifiedImageError:
        raise InvalidArgument(f"{os.fspath(path)} is not an image that pillow can read.") from None
    except OSError as error:
        raise InvalidArgument(f"could not read the image {os.fspath(path)}: {error.strerror or error}.") from None


def saved(pixels: Pixels, path: Path) -> bytes:
    """Pixels as a file of the form that the path's ending names."""
    forms = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP", ".tif": "TIFF", ".tiff": "TIFF"}
    form = forms.get(path.suffix.lower())
    if form is None:
        raise InvalidArgument(f"an image is written as {', '.join(forms)}; got {str(path)!r}.")
    file = io.BytesIO()
    pillow().fromarray(pixels).save(file, form, **({"quality": 92} if form in ("JPEG", "WEBP") else {}))
    return file.getvalue()


def decoded(content: bytes) -> Pixels:
    """The pixels of an encoded picture."""
    pixels: Pixels = np.asarray(pillow().open(io.BytesIO(content)).convert("RGB"))
    return pixels


def has_pillow() -> bool:
    """Whether encoded pictures can be read."""
    from importlib.util import find_spec

    return find_spec("PIL") is not None


def pillow() -> Any:
    """PIL.Image, or the error that says how to install it."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("pillow, which reads and writes images,", package="pillow") from None
    return Image


def _name(image: Any) -> str:
    file = getattr(image, "filename", "")
    return f"{Path(file).name} " if file else ""


def _described(image: Any, pixels: NDArray[Any]) -> str:
    return f"shape {pixels.shape}" if pixels.ndim else f"a {type(image).__name__}"
