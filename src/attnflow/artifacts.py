"""The file format of stacks, graphs and attributions: npz without pickle, with a JSON header.

The header says what the file is, by which version it was written and how its content was made, so a file opens
without torch, tokenizer or network. Nothing in it is ever executed.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
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
_FULL = [getattr(errno, name, None) for name in ("ENOSPC", "EDQUOT", "EFBIG")]  # not every system has them all


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
    encoded = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    present = {name: array for name, array in arrays.items() if array is not None}
    return write_atomically(path, lambda file: np.savez(file, header=encoded, **present))  # type: ignore[arg-type]


def write_atomically(path: str | os.PathLike[str], write: Callable[[Any], None]) -> Path:
    """Let `write` fill a temporary file beside `path`, then rename it: the old file or the new one, never half of one."""
    path = Path(path)
    if "\0" in str(path):
        raise SaveError(f"could not write {str(path)!r}: no file name holds a zero byte.")
    goal = Path(os.path.realpath(path))  # a link stays a link
    temporary = goal.parent / f".{secrets.token_hex(8)}.part"
    try:
        mode = goal.stat().st_mode & 0o777 if goal.exists() else None
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            write(file)
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, goal)
    except OSError as error:
        advice = (
            "Free some space first." if error.errno in _FULL else "Choose an existing folder that you may write to."
        )
        failure = SaveError(f"could not write {path}: {error.strerror or error}. {advice}")
        failure.errno = error.errno
        raise failure from error
    finally:
        with contextlib.suppress(OSError):  # gone already, by the rename
            temporary.unlink()
    return path


def load(path: str | os.PathLike[str], kind: str, build: Callable[[dict[str, NDArray[Any]], dict[str, Any]], T]) -> T:
    """Open a file of this kind and `build` the object from its arrays and its header."""
    arrays, header = _read(Path(path))
    if header.get("format") != _MAGIC:
        raise InvalidArtifact(f"{path} was not written by attnflow (its header says {header.get('format')!r}).")
    version = header.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
        raise InvalidArtifact(
            f"{path} has format version {version!r}, this attnflow reads 1 to {FORMAT_VERSION}. A newer attnflow may open it."
        )
    if header.get("kind") != kind:
        raise InvalidArtifact(
            f"{path} is of kind {header.get('kind')!r}, expected {kind!r}: open it with the type of that name."
        )
    try:
        return build(arrays, header)
    except AttnflowError as error:
        raise InvalidArtifact(f"{path} is damaged: {_reason(error)}. Make it again.") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidArtifact(f"{path} is damaged: its header is incomplete or wrong. Make it again.") from error


def _read(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    try:
        if not path.is_file():
            raise InvalidArtifact(f"there is no file {path}." if not path.exists() else f"{path} is not a file.")
        with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
            arrays = {name: content[name] for name in content.files}
            header = json.loads(arrays.pop("header").tobytes().decode())
            if not isinstance(header, dict):
                raise TypeError("its header is not a JSON object")
    except InvalidArtifact:
        raise
    except Exception as error:  # whatever zip, npy or JSON parsers throw at foreign bytes means the same to the caller
        advice = "" if "pickle" in str(error) else f": {_reason(error)}"  # numpy would advise to load it unsafely
        raise InvalidArtifact(f"{path} is not a file of attnflow, or it is damaged{advice}.") from error
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
