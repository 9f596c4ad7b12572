"""attnflow completion: the script that teaches a shell to complete attnflow."""

from __future__ import annotations

import os
from pathlib import PurePath

import click
from click.shell_completion import get_completion_class

from attnflow.cli._options import Command

SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Command, short_help="The script that makes a shell complete commands.")
@click.argument("shell", required=False, type=click.Choice(SHELLS), metavar="[bash|zsh|fish]")
@click.pass_context
def completion(ctx: click.Context, shell: str | None) -> None:
    """Print the script that makes a shell complete commands, options and names. Without a name: your shell's.

    \b
    bash   attnflow completion bash > ~/.local/share/bash-completion/completions/attnflow
    zsh    attnflow completion zsh > "${fpath[1]}/_attnflow"
    fish   attnflow completion fish > ~/.config/fish/completions/attnflow.fish
    """
    name = shell or PurePath(os.environ.get("SHELL", "")).name
    kind = get_completion_class(name) if name in SHELLS else None
    if kind is None:
        raise click.UsageError(f"which shell? Give one of {', '.join(SHELLS)}.")
    click.echo(kind(ctx.find_root().command, {}, "attnflow", "_ATTNFLOW_COMPLETE").source())
