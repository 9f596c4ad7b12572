"""What can go wrong, as a tree of exceptions.

AttnflowError
├── InvalidAttention   arrays that are not attention (also ValueError)
├── InvalidArgument    an option, index or name that does not fit (also ValueError)
├── InvalidArtifact    a file that is damaged, foreign, newer or not there
├── SaveError          a file that could not be written; the old one is untouched (also OSError)
├── UnknownMethod      a method of a name that does not exist (also LookupError)
├── CaptureError       a model or input that attention cannot be read from
└── MissingExtra       an optional package is not installed (also ImportError)

Every message says what arrived, what was expected and what to do about it.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Collection, Iterable, Iterator


class AttnflowError(Exception):
    """Base of everything that attnflow raises on purpose."""


class InvalidAttention(AttnflowError, ValueError):
    """The arrays given are not attention weights, or not a graph made of them."""


class InvalidArgument(AttnflowError, ValueError):
    """An option, an index or a name that does not fit the data."""


class InvalidArtifact(AttnflowError):
    """A file that attnflow cannot open: missing, damaged, truncated, foreign or written by a newer version."""


class SaveError(AttnflowError, OSError):
    """A file could not be written. What was there before is still there."""


class UnknownMethod(AttnflowError, LookupError):
    """No method has this name."""


class CaptureError(AttnflowError):
    """Attention cannot be read from this model or this input."""


class MissingExtra(AttnflowError, ImportError):
    """An optional package is not installed; the message holds the command that installs it."""

    def __init__(self, what: str, *, extra: str | None = None, package: str | None = None) -> None:
        target = f'"attnflow[{extra}]"' if extra else str(package)
        super().__init__(f"{what} is not installed. Install it with: pip install {target}")


@contextlib.contextmanager
def needing(room: str, extra: str, packages: Collection[str]) -> Iterator[None]:
    """Inside, a package of an extra that is not installed is a MissingExtra that says which room needs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in packages:
            raise MissingExtra(f"{error.name}, which {room} needs,", extra=extra) from None
        raise


def suggest(name: object, known: Iterable[str]) -> str:
    """The end of an unknown-name message: the nearest name, then all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(str(name), names, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    return f"{guess} Known: {', '.join(names)}."
