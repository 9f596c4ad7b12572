"""attnflow serve: the viewer as a live tool."""

from __future__ import annotations

from typing import Any

import click

from attnflow.cli import _options as options
from attnflow.cli._model import loading
from attnflow.cli._say import answer, voice


@click.command(cls=options.Command)
@click.option(
    "-M",
    "--model",
    "models",
    multiple=True,
    metavar="[NAME=]FOLDER|NAME",
    help="A model that may be asked: a folder, or its name on the hub; several are allowed. Without it: the small model that "
    "comes along. No other is ever loaded, whatever a request says.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Where to listen. Anywhere but on this machine needs a token.",
)
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=8321, show_default=True, help="The port; 0 takes any free one."
)
@click.option(
    "--token",
    envvar="ATTNFLOW_TOKEN",
    metavar="SECRET",
    help="What clients must present, at least 16 letters. Better given as ATTNFLOW_TOKEN, which no list of processes shows.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Another name of this server, as a proxy's clients use it.",
)
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Tokens of one input; 512 by default.")
@click.option("--max-body", type=click.IntRange(1), metavar="BYTES", help="Bytes of one request; 8,000,000 by default.")
@click.option(
    "--max-seconds", type=click.FloatRange(0.1), metavar="S", help="Seconds that one run may take; 60 by default."
)
@click.option(
    "--runs", type=click.IntRange(1), metavar="N", help="Runs at the same time; as many as there are cores by default."
)
@click.option(
    "--waiting", type=click.IntRange(0), metavar="N", help="Requests that may wait their turn; 100 by default."
)
def serve(
    models: tuple[str, ...], host: str, port: int, token: str | None, hosts: tuple[str, ...], **given: Any
) -> None:
    """Serve the viewer as a live page, and the same over JSON.

    Type a text, choose a model, methods, edges and residual, and see the answer; a link keeps the question. Only this machine can
    reach the server, unless --host and a token are given. The log on stderr is JSON, one object a line, and holds no texts.

    \b
    attnflow serve
    attnflow serve -M ./my-model -M bert-base-uncased --port 9000
    ATTNFLOW_TOKEN=$(openssl rand -hex 16) attnflow serve --host 0.0.0.0
    """
    from attnflow.web import Limits, serve

    names = {"max_tokens": "tokens", "max_body": "body", "max_seconds": "seconds", "runs": "runs", "waiting": "waiting"}
    limits = Limits(**{names[name]: value for name, value in given.items() if value is not None})
    with loading(models[0].partition("=")[2] or models[0] if models else None):
        serve(
            models or None, host=host, port=port, token=token, hosts=hosts, limits=limits, quiet=voice().quiet,
            ready=lambda address: answer(f"{address}\n"),
        )  # fmt: skip
