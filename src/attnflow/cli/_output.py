"""-o: where an answer goes, and in which form. The ending of the name says it; "-" is stdout."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import click

from attnflow.cli._say import answer, console, voice
from attnflow.errors import SaveError

PICTURES = ("html", "png", "svg", "pdf")
BINARY = ("png", "pdf", "npz")


class Output(NamedTuple):
    """One form of the answer and its file; None is stdout."""

    form: str
    path: Path | None


def option(*forms: str) -> Callable[[Any], Any]:
    """-o and --format, for a command that writes these forms."""
    endings = ", ".join(f".{form}" for form in forms)

    def decorate(command: Any) -> Any:
        command = click.option(
            "--format", "form", type=click.Choice(forms), help="The form, where the answer goes to stdout (-o -)."
        )(command)
        return click.option(
            "-o", "--output", "paths", multiple=True, metavar="FILE",
            help=f"Write a file: {endings}. Several are allowed; - is stdout.",
        )(command)  # fmt: skip

    return decorate


def outputs(paths: Sequence[str], form: str | None, *, as_json: bool, forms: Sequence[str]) -> list[Output]:
    """What -o, --format and --json ask for, checked before any work is done."""
    found = [_output(path, form, forms) for path in paths]
    if as_json:
        found.append(Output("json", None))
    to_stdout = sum(one.path is None for one in found)
    if form and not any(path == "-" for path in paths):
        raise click.UsageError("--format says what goes to stdout: it needs -o -. A file's ending says its form.")
    if to_stdout > 1:
        raise click.UsageError("only one answer can go to stdout: choose between -o - and --json.")
    for one in found:
        _check_place(one)
    return found


def _output(path: str, form: str | None, forms: Sequence[str]) -> Output:
    if path == "-":
        if form is None:
            raise click.UsageError(f"-o - needs --format: one of {', '.join(forms)}.")
        return Output(form, None)
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending in forms:
        return Output(ending, Path(path))
    near = difflib.get_close_matches(ending, forms, n=1)
    guess = f" Did you mean .{near[0]}?" if near else ""
    what = f"the ending .{ending}" if ending else "no ending"
    known = ", ".join(f".{one}" for one in forms)
    raise click.BadParameter(
        f"{path!r} has {what}, which says no form that is written here.{guess} Known: {known}.", param_hint="-o"
    )


def _check_place(one: Output) -> None:
    """What can be known to fail is said before an hour of work, not after."""
    if one.path is None:
        if one.form in BINARY and sys.stdout.isatty():
            raise click.UsageError(
                f"{one.form} is not for reading: send stdout to a file or a program, or use -o FILE."
            )
    elif one.path.is_dir():
        raise SaveError(f"{one.path} is a folder: give the name of a file in it.")
    elif not one.path.parent.is_dir():
        raise SaveError(f"could not write {one.path}: there is no folder {one.path.parent}.")


def write(one: Output, save: Callable[[Path], Any]) -> None:
    """Let the library `save` a file; for stdout, a file that is passed on."""
    if one.path is not None:
        save(one.path)
        voice().note(f"wrote {one.path}")
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"answer.{one.form}"
        save(path)
        content = path.read_bytes()
    answer(content)


def write_text(one: Output, text: str) -> None:
    """Write text in UTF-8."""
    from attnflow.artifacts import write_atomically

    if one.path is None:
        answer(text)
    else:
        write(one, lambda path: write_atomically(path, lambda file: file.write(text.encode())))


def write_report(found: Any, chosen: Sequence[Output]) -> None:
    """A report of `study` in the forms that were asked for; without any, its tables are shown."""
    for one in chosen:
        write_text(one, found.forms[one.form]())
    if not chosen:
        console().print(found.to_text(), markup=False, soft_wrap=True)


def as_json(content: Any) -> str:
    """JSON for programs: one line, letters as they are."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n"
