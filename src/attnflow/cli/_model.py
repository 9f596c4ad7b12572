"""--model: its libraries kept quiet, and the nearest name where it cannot be found."""

from __future__ import annotations

import difflib
import os
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

from attnflow.cli._say import voice
from attnflow.errors import CaptureError


@contextmanager
def folder_of(model: str | None) -> Iterator[str]:
    """The model that was named, or the folder of the one that comes along."""
    from attnflow._explain import BUNDLED

    if model is not None:
        yield model
        return
    with resources.as_file(resources.files("attnflow") / "assets" / BUNDLED) as folder:
        if not (folder / "config.json").is_file():
            raise CaptureError(
                "the bundled model is not part of this installation. Give --model: a folder or a hub name."
            )
        yield str(folder)


@contextmanager
def loading(model: str | None) -> Iterator[None]:
    """While a model is loaded and run: no chatter of its libraries, unless asked for, and a guess at a name that fails."""
    downloads = model is not None and not os.path.isdir(model)
    _hush(downloads=downloads)
    if downloads and _offline():
        os.environ.setdefault("HF_HUB_OFFLINE", "1")  # else the hub is asked again and again, for half a minute
    try:
        yield
    except CaptureError as error:
        near = _near(model) if model is not None and model in str(error) else ""
        if not near:
            raise
        raise CaptureError(f"{str(error).rstrip('.')}. Did you mean {near!r}?") from error


def _hush(*, downloads: bool) -> None:
    """By the variables that these libraries read when they are imported, so nothing is imported for it."""
    if voice().verbose:
        return
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    if voice().quiet or not downloads or not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    if not sys.warnoptions:
        warnings.simplefilter("ignore")


def _offline() -> bool:
    """Whether the hub has no address here. A proxy would look it up by itself."""
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return False
    try:
        socket.getaddrinfo(urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co")).hostname, 443)
    except OSError:
        return True
    return False


def _near(model: str) -> str:
    """A folder beside the one that was named, or a model that was downloaded before."""
    path = Path(model).expanduser()
    if os.path.isdir(model):
        return ""
    folder = path.parent
    beside = [str(one.parent) for one in folder.glob("*/config.json")] if folder.is_dir() else []
    found = difflib.get_close_matches(str(path), beside + _downloaded(), n=1)
    return found[0] if found else ""


def _downloaded() -> list[str]:
    """The names in the hub's cache, by the place and form that huggingface_hub documents."""
    home = os.environ.get("HF_HOME", os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "huggingface"))
    cache = Path(os.environ.get("HF_HUB_CACHE", os.path.join(home, "hub"))).expanduser()
    return [one.name.removeprefix("models--").replace("--", "/") for one in cache.glob("models--*")]
