"""attnflow bottleneck: through where the flow of one pair passes, and what limits it."""

from __future__ import annotations

from typing import Any

import click

from attnflow.cli import _options as options
from attnflow.cli._files import graph_in
from attnflow.cli._output import as_json, option, outputs, write, write_text
from attnflow.cli._say import console, voice
from attnflow.cli._types import Query

FORMS = ("html", "png", "svg", "pdf", "json")


@click.command(cls=options.Command, short_help="The paths of one pair, and what limits them.")
@click.argument("file", metavar="FILE.npz")
@click.option("-i", "--input", required=True, type=Query(), metavar="TOKEN|INDEX", help="The input token that flows.")
@click.option(
    "--query",
    type=Query(),
    metavar="TOKEN|INDEX",
    help="The position that it flows to; by default where the model's output is read.",
)
@click.option(
    "-l", "--level", type=int, default=-1, metavar="N", help="The level of the query; -1, the top one, by default."
)
@click.option(
    "--top", type=click.IntRange(min=0), default=10, metavar="K", help="How many paths and edges are listed; 10."
)
@options.mixing
@option(*FORMS)
@options.as_json
@click.pass_context
def bottleneck(ctx: click.Context, /, file: str, **given: Any) -> None:
    """Show the maximum flow between two tokens: its paths, and the edges that limit it.

    FILE is what `attnflow capture` wrote.

    \b
    attnflow bottleneck graph.npz --input key
    attnflow bottleneck graph.npz --input key --query 4 --level 2 -o paths.svg
    """
    chosen = outputs(given["paths"], given["form"], as_json=given["as_json"], forms=FORMS)
    graph = graph_in(file, options.given(ctx, *options.MIXING))
    query = given["query"] if given["query"] is not None else graph.options.get("query")
    if query is None:
        raise click.UsageError(f"{file} does not say where its model's output is read: give --query.")
    from attnflow import render
    from attnflow.methods import bottleneck as found_in

    found = found_in(graph, query, given["input"], given["level"])
    for one in chosen:
        if one.form == "json":
            write_text(one, as_json(found.to_json()))
        elif one.form == "html":
            write(one, lambda path: render.page(found, path))
        else:
            write(one, lambda path: render.figure(found, path=path))
    if not chosen or not (voice().quiet or any(one.path is None for one in chosen)):
        render.terminal(found, top=given["top"], console=console())
