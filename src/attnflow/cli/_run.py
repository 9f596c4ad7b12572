"""The one `try` of the command line: whatever goes wrong becomes one line and an exit code.

0: answered. 1: one line of error. 2: used wrongly. 130: stopped by Ctrl-C. 141: whoever read the answer went away.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn, TextIO

INTERRUPTED, CLOSED = 130, 141  # as a shell reports SIGINT and SIGPIPE


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    try:
        code = _answered(arguments)
        if not code:
            sys.stdout.flush()
    except KeyboardInterrupt:  # also while the imports run
        code = _interrupted()
    except BrokenPipeError:
        code = CLOSED
    except OSError as error:  # the last of the answer did not fit
        code = _failed(f"could not write the answer: {error.strerror or error}.")
    _let_go(sys.stdout)
    sys.exit(code)


def _answered(arguments: Sequence[str] | None) -> int:
    import click

    from attnflow.cli._group import attnflow
    from attnflow.cli._say import Closed, Voice
    from attnflow.errors import AttnflowError

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that lacks a letter shows a mark in its place
    voice = Voice()
    try:
        found = attnflow.main(arguments, "attnflow", standalone_mode=False, obj=voice)
        return found if isinstance(found, int) else 0
    except SystemExit as exit:  # click leaves a closed pipe with 1, and a shell that asks for completions
        return CLOSED if exit.code == 1 else int(exit.code or 0)
    except (click.Abort, KeyboardInterrupt):
        return _interrupted()
    except Closed:
        return CLOSED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except AttnflowError as error:
        voice.trace()
        return _failed(str(error))
    except OSError as error:
        voice.trace()
        place = f"{error.filename}: " if error.filename else ""
        return _failed(f"{place}{error.strerror or error}.")
    except Exception as error:
        voice.trace()
        hint = "" if voice.verbose else " --verbose shows where."
        return _failed(f"this should not have happened ({type(error).__name__}: {error}).{hint} Please report it.")


# The library speaks of its arguments (truncate=True); here they are options (--truncate).
_ARGUMENT = re.compile(r"\b(model|tokenizer|truncate|target|query|edges|column)=(?:True|…)")


def _failed(message: str) -> int:
    line = _ARGUMENT.sub(r"--\1", " ".join(message.splitlines()))
    print(f"Error: {line}", file=sys.stderr)
    return 1


def _interrupted() -> int:
    print("Stopped.", file=sys.stderr)
    return INTERRUPTED


def _let_go(stream: TextIO) -> None:
    """Nothing more is written to a stream that nobody reads or that is full: Python would complain when it exits."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
