"""The commands, together."""

from __future__ import annotations

import click

from attnflow import __version__
from attnflow.cli._attribute import attribute
from attnflow.cli._audit import audit
from attnflow.cli._batch import batch
from attnflow.cli._bottleneck import bottleneck
from attnflow.cli._capture import capture
from attnflow.cli._completion import completion
from attnflow.cli._evaluate import evaluate
from attnflow.cli._explain import explain
from attnflow.cli._methods import methods
from attnflow.cli._options import voice_options
from attnflow.cli._render import render
from attnflow.cli._serve import serve


class Group(click.Group):
    """Lists its commands in the order of use, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """As they were added."""
        return list(self.commands)


@click.group(
    cls=Group,
    params=voice_options(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", prog_name="attnflow", message="%(prog)s %(version)s")
def attnflow() -> None:
    """How much of what a transformer says at one position came from each input token?

    `attnflow explain TEXT` answers for a text, and shows it in the terminal. The other commands take the same way step by
    step, from file to file: capture (text to graph), attribute (graph to attribution), render (attribution to picture).
    """


for command in (explain, capture, attribute, render, bottleneck, evaluate, audit, batch, serve, methods, completion):
    attnflow.add_command(command)
