"""The file format of stacks, graphs and attributions: npz without pickle, with a JSON header.

The header says what the file is, by which version it was written and how its content was made, so a file opens
without torch, tokenizer or network. Nothing in it is ever executed.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from attnflow import __version__
from attnflow.errors import AttnflowError, InvalidArtifact, SaveError

T = TypeVar("T")

FORMAT_VERSION = 1
_MAGIC = "attnflow"


def save(
    path: str | os.PathLike[str], kind: str, arrays: Mapping[str, NDArray[Any] | None], meta: Mapping[str, Any]
) -> Path:
    """Write `arrays` (None is left out) and `meta`, so that a failure half-way leaves the old file as it was."""
    header = {
        "format": _MAGIC,
        "kind": kind,
        "version": FORMAT_VERSION,
        "written_by": f"attnflow {__version__}",
        **meta,
    }
    encoded = np.frombuffer(json.dumps(header, ensure_ascii=False).encode(), dtype=np.uint8)
    present = {name: array for name, array in arrays.items() if array is not None}
    return write_atomically(path, lambda file: np.savez(file, header=encoded, **present))  # type: ignore[arg-type]


def write_atomically(path: str | os.PathLike[str], write: Callable[[Any], None]) -> Path:
    """Let `write` fill a temporary file beside `path`, then rename it: the old file or the new one, never half of one."""
    path = Path(path)
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        with os.fdopen(handle, "wb") as file:
            write(file)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp gives 0600; a saved file should be as readable as any other
        os.replace(temporary, path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise SaveError(
            f"could not write {path}: {reason}. Choose an existing folder that you may write to."
        ) from error
    finally:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
    return path


def load(path: str | os.PathLike[str], kind: str, build: Callable[[dict[str, NDArray[Any]], dict[str, Any]], T]) -> T:
    """Open a file of this kind and `build` the object from its arrays and its header."""
    arrays, header = _read(Path(path))
    if header.get("format") != _MAGIC:
        raise InvalidArtifact(f"{path} was not written by attnflow (its header says {header.get('format')!r}).")
    version = header.get("version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise InvalidArtifact(
            f"{path} has format version {version!r}, this attnflow reads up to {FORMAT_VERSION}. Upgrade attnflow."
        )
    if header.get("kind") != kind:
        raise InvalidArtifact(
            f"{path} holds a {header.get('kind')}, expected a {kind}: open it with the type of that name."
        )
    try:
        return build(arrays, header)
    except (AttnflowError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidArtifact(f"{path} is damaged: {_reason(error)}. Make it again.") from error


def _read(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    if not path.is_file():
        raise InvalidArtifact(f"there is no file {path}." if not path.exists() else f"{path} is not a file.")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
            arrays = {name: content[name] for name in content.files}
            header = json.loads(arrays.pop("header").tobytes().decode())
            if not isinstance(header, dict):
                raise TypeError("its header is not a JSON object")
    except Exception as error:  # whatever zip, npy or JSON parsers throw at foreign bytes means the same to the caller
        raise InvalidArtifact(f"{path} is not a file of attnflow, or it is damaged: {_reason(error)}.") from error
    return arrays, header


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    return text if text and not isinstance(error, KeyError) else f"{type(error).__name__} {text}".strip()


def jsonable(value: Any) -> Any:
    """An option as JSON can hold it: arrays as lists, functions by name."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return getattr(value, "__name__", None) or repr(value)
