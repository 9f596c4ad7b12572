"""The models that are served: those that were named when the server started, loaded once. No other is ever loaded."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import PurePath
from typing import Any

from attnflow import capture
from attnflow._explain import BUNDLED
from attnflow.errors import CaptureError, InvalidArgument


@dataclass(frozen=True, eq=False)
class Served:
    """A loaded model with what reads its input, under the name that questions use."""

    name: str
    model: Any
    tokenizer: Any = None
    processor: Any = None

    @property
    def kind(self) -> str:
        """What it is, for people."""
        return type(self.model).__name__

    @property
    def reads(self) -> str:
        """What it is asked about: "text", "image", or "both"."""
        known = inspect.signature(self.model.forward).parameters
        if "pixel_values" not in known:
            return "text"
        return "both" if "input_ids" in known else "image"

    @property
    def layers(self) -> int | None:
        """How many layers it says that it has."""
        count = getattr(getattr(self.model, "config", None), "num_hidden_layers", None)
        return count if isinstance(count, int) else None

    @property
    def heads(self) -> int | None:
        """How many heads a layer says that it has."""
        count = getattr(getattr(self.model, "config", None), "num_attention_heads", None)
        return count if isinstance(count, int) else None

    def count(self, *texts: str) -> int:
        """How many tokens these texts are."""
        return len(self.ids(*texts))

    def ids(self, *texts: str) -> list[int]:
        """These texts as tokens."""
        found: list[int] = self.tokenizer(*texts, verbose=False)["input_ids"]
        return found


Models = Mapping[str, Any] | Iterable[str] | None


def served(models: Models) -> dict[str, Served]:
    """Every model by its name: given as {name: folder, hub name or Served}, or as folders and hub names alone.

    None is the bundled model. A folder is called by its last part, so that no path of this machine is ever told.
    """
    named = _named(models)
    names = [name for name, _ in named]
    if not names:
        raise InvalidArgument("no model was named: give at least one, or None for the bundled one.")
    for name in names:  # before any is loaded
        if names.count(name) > 1:
            raise InvalidArgument(f"two models are called {name!r}. Give them names of their own: NAME=FOLDER.")
    return {name: _opened(name, one) for name, one in named}


def _opened(name: str, one: Any) -> Served:
    if one is None:
        return bundled()
    return replace(one, name=name) if isinstance(one, Served) else _loaded(name, os.fspath(one))


def _named(models: Models) -> list[tuple[str, Any]]:
    if models is None:
        return [(BUNDLED, None)]
    if isinstance(models, Mapping):
        return list(models.items())
    return [_split(one) for one in ([models] if isinstance(models, str) else models)]


def _split(given: str) -> tuple[str, str]:
    """NAME=FOLDER, or a folder or hub name alone."""
    name, sign, place = given.partition("=")
    if sign and name and not os.path.exists(given):
        return name, place
    path = PurePath(given)
    if os.path.isdir(given):
        path = PurePath(os.path.realpath(given))
        return (path.parent.name if path.name == "model" and path.parent.name else path.name), given
    return given, given


def _loaded(name: str, place: str) -> Served:
    model = Served(name, capture.load(place))
    if model.reads != "text":
        processor = capture.processor_for(model.model, None, place)
        return replace(model, processor=processor, tokenizer=getattr(processor, "tokenizer", None))
    return replace(model, tokenizer=capture.tokenizer_for(model.model, None, place))


def bundled() -> Served:
    """The model that comes with attnflow."""
    with resources.as_file(resources.files("attnflow") / "assets" / BUNDLED) as folder:
        if not (folder / "config.json").is_file():
            raise CaptureError(
                "the bundled model is not part of this installation. Name a model: a folder or a hub name."
            )
        return _loaded(BUNDLED, str(folder))
