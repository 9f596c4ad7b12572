"""The model that a worker runs, with what turns its input into numbers: loaded once, and told apart from others of its name."""

from __future__ import annotations

import hashlib
import inspect
import os
from contextlib import nullcontext
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from attnflow import capture
from attnflow._explain import BUNDLED
from attnflow.errors import CaptureError, InvalidArgument

OWN = f"attnflow/{BUNDLED}"  # what the model that comes along is called
DTYPES = {"float32": "float", "bfloat16": "bfloat16", "float16": "half"}  # and the method of a model that makes it so
_SEES_OR_HEARS = ("pixel_values", "input_features", "input_values")


class Loaded(NamedTuple):
    """A tokenizer or processor that the model has not is None."""

    model: Any
    tokenizer: Any
    processor: Any


def loaded(model: Any, tokenizer: Any, processor: Any, device: str | None, dtype: str | None) -> Loaded:
    """A model by its name or as it is (None: the one that comes along), where it shall run and in the numbers it shall compute in."""
    bundled = resources.as_file(resources.files("attnflow") / "assets" / BUNDLED)
    with bundled if model is None else nullcontext(model) as place:
        name = os.fspath(place) if isinstance(place, str | os.PathLike) else None
        found: Any = capture.load(place)
        takes = inspect.signature(found.forward).parameters
        if tokenizer is not None or "input_ids" in takes:
            tokenizer = _beside(capture.tokenizer_for, found, tokenizer, name)
        if processor is not None or any(one in takes for one in _SEES_OR_HEARS):
            processor = _beside(capture.processor_for, found, processor, name)
    if dtype is not None:
        found = getattr(found, DTYPES[dtype])()
    if device is not None:
        try:
            found = found.to(device)
        except (RuntimeError, AssertionError) as error:  # torch asserts that it was built for the device
            raise InvalidArgument(
                f"the model cannot be put on device {device!r}: {str(error).splitlines()[0]}"
            ) from None
    return Loaded(found, tokenizer, processor)


def _beside(find: Any, model: Any, given: Any, name: str | None) -> Any:
    """What was named must be there. What was not is missed by the first row that needs it, and named in its error."""
    try:
        return find(model, given, name)
    except CaptureError:
        if given is not None:
            raise
        return None


def described(model: Any) -> dict[str, Any]:
    """Which model: its name, and for a folder or a loaded one what tells it from another of that name."""
    if model is None:
        return {"model": OWN}
    if not isinstance(model, str | os.PathLike):
        sums = [parameter.detach().double().sum().item() for parameter in model.parameters()]
        name = getattr(model, "name_or_path", "") or type(model).__name__
        return {"model": name, "model_weights": f"{len(sums)} arrays of sum {sum(sums):.10g}"}
    folder = Path(model)
    if not folder.is_dir():
        return {"model": str(model)}
    content = hashlib.blake2b(digest_size=8)
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        content.update(f"{path.name} {path.stat().st_size}\n".encode())
        if path.suffix == ".json" and path.stat().st_size < 1_000_000:
            content.update(path.read_bytes())
    return {"model": str(model), "model_files": content.hexdigest()}
