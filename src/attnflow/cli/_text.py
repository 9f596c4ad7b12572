"""TEXT|FILE|-: the text to explain, from the command line, a file or a pipe; or a file that holds an image."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from attnflow.errors import InvalidArgument

# A word that ends like this, or that holds a slash, was meant as the name of a file.
ENDINGS = (".txt", ".text", ".md", ".rst", ".log", ".csv", ".tsv", ".json", ".jsonl", ".html", ".xml", ".tex", ".py",
           ".jpg", ".jpeg", ".png", ".npz", ".npy", ".pdf")  # fmt: skip


def read_source(given: str) -> str | Path:
    """What is explained: an image by its path, anything else as text. The content tells, not the name."""
    from attnflow.images import is_image_file  # imports numpy, which help does without

    return Path(given) if given != "-" and is_image_file(given) else read_text(given)


def read_text(given: str) -> str:
    """The text itself, the content of a file of this name, or of stdin for "-"."""
    if given == "-":
        return _decoded(sys.stdin.buffer.read(), "stdin")
    if os.path.isdir(given):
        raise InvalidArgument(f"{given} is a folder. Give a text or a file of text.")
    if os.path.exists(given):
        try:
            with open(given, "rb") as file:
                return _decoded(file.read(), given)
        except OSError as error:
            raise InvalidArgument(f"could not read {given}: {error.strerror or error}.") from None
    if _looks_like_a_file(given):
        raise InvalidArgument(
            f"there is no file {given}. If this is the text itself: echo '{given}' | attnflow explain -"
        )
    if not given.strip():
        raise InvalidArgument("the text is empty: there is nothing to explain.")
    try:
        given.encode()
    except UnicodeEncodeError:  # the shell handed on bytes that are no letters
        raise InvalidArgument("the text is not UTF-8. Put it into a file and convert that with iconv.") from None
    return given


def _looks_like_a_file(given: str) -> bool:
    one_word = given == given.strip() and len(given.split()) == 1
    return one_word and (given.lower().endswith(ENDINGS) or given.startswith(("/", "./", "../", "~/")))


def _decoded(content: bytes, name: str) -> str:
    if b"\0" in content:
        raise InvalidArgument(f"{name} is not text: it holds zero bytes, as binary files do.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = content[error.start]
        raise InvalidArgument(
            f"{name} is not UTF-8: byte {found:#04x} at position {error.start}. Convert it, for example: iconv -f latin1 -t utf-8"
        ) from None
    if not text.strip():
        raise InvalidArgument(f"{name} is empty: there is nothing to explain.")
    return text.strip("\r\n")
