"""What goes where: answers on stdout, everything said beside them on stderr, as loud as was asked for."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console


class Closed(Exception):
    """Whoever read stdout has gone. Its own type, since click takes a BrokenPipeError for a failure."""


@dataclass
class Voice:
    """How much is said on stderr."""

    quiet: bool = False
    verbose: bool = False

    def note(self, text: str) -> None:
        """Something worth knowing that is not the answer."""
        if not self.quiet:
            click.echo(text, err=True)

    def trace(self) -> None:
        """The traceback of the exception being handled, for whoever asked for it."""
        if self.verbose:
            import traceback

            traceback.print_exc()

    @property
    def progress(self) -> bool | None:
        """For functions that show their progress: None lets them ask whether somebody looks."""
        return False if self.quiet else None


def voice() -> Voice:
    """The voice of the command that runs."""
    return click.get_current_context().find_root().ensure_object(Voice)


def answer(content: str | bytes) -> None:
    """Write data to stdout, text as UTF-8 whatever the terminal prefers."""
    try:
        sys.stdout.flush()
        left = memoryview(content.encode() if isinstance(content, str) else content)
        while left:  # under PYTHONUNBUFFERED one call may write a part, and hide that the reader went away
            left = left[sys.stdout.buffer.write(left) :]
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise Closed from None


def console() -> Console:
    """A console on stdout; it respects NO_COLOR, FORCE_COLOR and COLUMNS."""
    from rich.console import Console

    class Pipe(Console):
        """Leaves a closed pipe to the one place that handles it."""

        def on_broken_pipe(self) -> None:
            raise Closed

    return Pipe(highlight=False)
