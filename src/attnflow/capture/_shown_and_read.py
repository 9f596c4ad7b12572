"""From an image and a text to the arguments that a model's processor makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnflow.capture._image_text import PLACEHOLDERS
from attnflow.capture._images import Camera, image_processor, is_image
from attnflow.capture._models import processor_for
from attnflow.errors import CaptureError, InvalidArgument
from attnflow.images import Picture, is_image_file, picture


@dataclass(frozen=True, eq=False)
class Scene:
    """The arguments of one image-text input, and its pictures with the parts that are shown to the model."""

    keywords: dict[str, Any]
    pictures: list[Picture | None]


def is_shown(value: Any) -> bool:
    """Whether something is an image, or a list of images: a path to an image file is one."""
    if isinstance(value, list | tuple):
        return bool(value) and all(map(is_shown, value))
    return is_image(value) or (isinstance(value, str) and is_image_file(value))


def is_pair(inputs: Any) -> bool:
    """(image, text) or (text, image); several images may stand for one."""
    return isinstance(inputs, tuple) and len(inputs) == 2 and sorted(map(is_shown, inputs)) == [False, True]


def scenes_of(model: Any, inputs: Any, family: str, processor: Any, name: str | None) -> list[Scene]:
    """One scene for each pair."""
    found = processor_for(model, processor, name)
    if getattr(found, "tokenizer", None) is None or image_processor(found) is found:
        raise CaptureError(
            f"{type(found).__name__} does not read both images and text. Pass processor=… with the model's own, or a dict of the model's arguments."
        )
    camera = Camera(image_processor(found))
    return [_scene(one, family, found, camera) for one in (inputs if isinstance(inputs, list) else [inputs])]


def _scene(pair: Any, family: str, processor: Any, camera: Camera) -> Scene:
    if not is_pair(pair):
        raise InvalidArgument(f"an input of this model is a pair (image, text), got {pair!r:.80}.")
    image, text = pair if is_shown(pair[0]) else pair[::-1]
    if not isinstance(text, str) or not text.strip():
        raise CaptureError(f"the text is empty ({text!r}): there is nothing to capture.")
    images = list(image) if isinstance(image, list | tuple) else [image]
    wholes = [picture(one) for one in images]
    if family == PLACEHOLDERS:
        text = _with_places(text, len(images), processor)
    from PIL import Image

    made: Mapping[str, Any] = processor(
        images=[Image.fromarray(whole.pixels) for whole in wholes], text=[text], return_tensors="pt"
    )
    keywords = {name: value for name, value in made.items() if isinstance(value, Tensor)}
    return Scene(keywords, _pictures(wholes, keywords["pixel_values"], camera))


def _with_places(text: str, count: int, processor: Any) -> str:
    """The text with a place for each image; where it names none, they come first."""
    mark: str | None = getattr(processor, "image_token", None)
    if mark is None or text.count(mark) == count:
        return text
    if text.count(mark):
        raise InvalidArgument(f"the text has {text.count(mark)} places {mark} for {count} images.")
    return mark * count + "\n" + text


def _pictures(wholes: Sequence[Picture], pixels: torch.Tensor, camera: Camera) -> list[Picture | None]:
    """What is shown of each image. Pixel values that are cut up already (Qwen2-VL) show all of it."""
    if pixels.ndim != 4 or len(pixels) != len(wholes):
        return list(wholes)
    return [camera(whole.pixels).picture for whole in wholes]
