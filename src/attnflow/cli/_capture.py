"""attnflow capture: from a text to a file of attention."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from attnflow.cli import _options as options
from attnflow.cli._model import folder_of, loading
from attnflow.cli._output import as_json, option, outputs, write
from attnflow.cli._say import answer, voice
from attnflow.cli._text import read_source, read_text

if TYPE_CHECKING:
    from attnflow.graph import AttentionGraph
    from attnflow.stack import AttentionStack


@click.command(cls=options.Command, short_help="Keep the attention of a model in a file.")
@click.argument("source", metavar="TEXT|IMAGE|FILE|-")
@options.model
@click.option(
    "--every-head", is_flag=True, help="Keep every head of every layer: a stack, mixed later, instead of a graph."
)
@click.option("--gradients", is_flag=True, help="With --every-head: keep the gradients too, for edges that need them.")
@options.mixing
@options.capture
@option("npz")
@click.option("--json", "summary", is_flag=True, help="Say what was captured as JSON on stdout, for programs.")
@click.pass_context
def capture(ctx: click.Context, /, source: str, **given: Any) -> None:
    """Run a model on a text or an image and keep its attention in a file.

    The file holds a graph: the heads of each layer mixed into one level. With --every-head it holds a stack of all heads,
    which is larger, and mixing is left to `attnflow attribute`.

    \b
    attnflow capture "The key to the cabinets" -o graph.npz
    attnflow attribute graph.npz -m flow -o flow.npz
    attnflow render flow.npz -o flow.html
    """
    mixing = options.given(ctx, *options.MIXING)
    _check(given, mixing)
    chosen = outputs(given["paths"], given["form"], as_json=False, forms=("npz",))
    if not chosen:
        raise click.UsageError("where to? Give -o FILE.npz.")
    if given["summary"] and any(one.path is None for one in chosen):
        raise click.UsageError("only one answer can go to stdout: choose between -o - and --json.")
    found = _captured(ctx, read_source(source), given, mixing)
    for one in chosen:
        write(one, found.save)
    if given["summary"]:
        answer(as_json(_summary(found, [str(one.path) for one in chosen])))
    else:
        voice().note(repr(found))


def _check(given: dict[str, Any], mixing: dict[str, Any]) -> None:
    if given["gradients"] and not given["every_head"]:
        raise click.UsageError(
            "--gradients belongs to --every-head. A graph with gradients in it is --edges gradient or chefer."
        )
    if given["every_head"] and mixing:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in mixing)
        raise click.UsageError(
            f"--every-head keeps the heads unmixed, so {names} cannot apply: give it to `attnflow attribute`."
        )
    if given["every_head"] and given["target"] is not None and not given["gradients"]:
        raise click.UsageError("--target is what gradients are of: it needs --gradients.")
    if not given["every_head"]:
        options.check_target(given)


def _captured(
    ctx: click.Context, source: str | Path, given: dict[str, Any], mixing: dict[str, Any]
) -> AttentionGraph | AttentionStack:
    import attnflow as af

    settings = options.capturing(ctx)
    inputs = source if given["second"] is None else (source, read_text(given["second"]))
    with loading(given["model"]), folder_of(given["model"]) as model:
        found: AttentionGraph | AttentionStack
        if given["every_head"]:
            record = ("attention", "gradients") if given["gradients"] else ("attention",)
            found = af.capture.stack(model, inputs, record=record, **settings)
        else:
            found = af.capture.graph(model, inputs, **settings, **mixing)
    return found


def _summary(found: AttentionGraph | AttentionStack, files: list[str]) -> dict[str, Any]:
    from attnflow.artifacts import jsonable
    from attnflow.stack import AttentionStack

    if isinstance(found, AttentionStack):
        said: dict[str, Any] = {"kind": "stack", "layers": found.layers, "heads": found.heads}
    else:
        options = jsonable(found.options)
        said = {"kind": "graph", "levels": list(found.names), "kinds": list(found.kinds), "options": options}
    return {"files": files, **said, "tokens": found.tokens.to_json()}
