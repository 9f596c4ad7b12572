"""An image in a request: base64 of a file, opened only if it is one of a few kinds and no larger than allowed."""

from __future__ import annotations

import base64
import binascii
import io
from typing import Any

from attnflow.images import pillow
from attnflow.web._limits import Limits
from attnflow.web._refused import Refused

KINDS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")


def opened(content: str, limits: Limits) -> Any:
    """A PIL image. A file of a few bytes may claim to be enormous, so its size is looked at before its pixels."""
    Image = pillow()
    try:
        file = io.BytesIO(base64.b64decode(content, validate=True))
        image = Image.open(file, formats=KINDS)
        if image.width * image.height > limits.pixels:
            raise _too_large(f"{image.width} × {image.height} pixels", limits)
        image.load()
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _too_large("many more pixels than that", limits) from None
    except binascii.Error:
        raise _unreadable("it is no base64") from None
    except (OSError, ValueError, SyntaxError, EOFError):  # what pillow makes of bytes that are none, or not all
        raise _unreadable("it is damaged, or of another kind") from None
    return image


def blank() -> str:
    """A small grey image, as a request holds it."""
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (64, 64), "grey").save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def _unreadable(why: str) -> Refused:
    return Refused("cannot_answer", f"the image cannot be read: {why}. Send the base64 of a {', '.join(KINDS)} file.")


def _too_large(what: str, limits: Limits) -> Refused:
    return Refused(
        "cannot_answer", f"the image has {what}; this server takes at most {limits.pixels:,}. Send a smaller one."
    )
