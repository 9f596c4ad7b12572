"""attnflow render: from files of attributions to a picture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from attnflow.cli import _options as options
from attnflow.cli._files import load
from attnflow.cli._output import Output, option, outputs, write, write_text
from attnflow.cli._say import console
from attnflow.cli._types import Name, Query
from attnflow.errors import InvalidArtifact

if TYPE_CHECKING:
    from attnflow.attribution import Attribution
    from attnflow.graph import AttentionGraph

FORMS = ("html", "png", "svg", "pdf", "json")
KINDS = ("strip", "levels", "matrix", "graph", "patches", "bars")
SPECIAL = ("shown", "unscaled", "hidden")


@click.command(cls=options.Command, short_help="Draw attributions: terminal, figure or page.")
@click.argument("files", metavar="FILE.npz…", nargs=-1, required=True)
@click.option(
    "-k",
    "--kind",
    type=Name("kind of picture", lambda: KINDS),
    metavar="KIND",
    help=f"{', '.join(KINDS)}. In the terminal: strip (the default) or levels.",
)
@click.option("--query", type=Query(), metavar="TOKEN|INDEX", help="The position or token that the picture opens at.")
@click.option(
    "-l", "--level", type=int, metavar="N", help="The level shown, among those in the file; -1 is the top one."
)
@click.option("--words", is_flag=True, help="Join sub-words to words.")
@click.option(
    "--special",
    type=Name("value for special", lambda: SPECIAL),
    metavar="HOW",
    help="Special tokens: shown, unscaled (the default: shown, but the scale is made for the others) or hidden.",
)
@click.option("--top", type=click.IntRange(min=0), metavar="K", help="How many inputs are listed, or drawn as bars.")
@click.option(
    "--theme", type=Name("theme", lambda: ("light", "dark")), metavar="light|dark", help="The ground of the picture."
)
@click.option("--image", metavar="FILE", help="The image under a map of patches.")
@click.option("--difference", is_flag=True, help="On a page with two methods: also the first minus the second.")
@click.option("--title", help="The title of a page.")
@option(*FORMS)
@options.as_json
@click.pass_context
def render(ctx: click.Context, /, files: tuple[str, ...], **given: Any) -> None:
    """Draw attributions from files: in the terminal, or as a page or a figure by the ending of -o.

    Several files are drawn side by side, on one scale. A graph among the files adds the paths of its flows to a page.

    \b
    attnflow render rollout.npz
    attnflow render raw.npz rollout.npz flow.npz -o compared.pdf --kind levels
    attnflow render flow.npz graph.npz -o flow.html
    """
    chosen = outputs(given["paths"], given["form"], as_json=given["as_json"], forms=FORMS)
    _check(chosen, given)
    shown, graphs = _opened(files)
    for one in chosen:
        _draw(one, shown, graphs, _settings(ctx, one.form))
    if not chosen:
        _print(shown, _settings(ctx, "terminal"))


# What each form of picture can be told.
_KNOWS = {
    "terminal": ("kind", "query", "level", "words", "special", "top", "theme"),
    "figure": ("kind", "query", "level", "words", "special", "top", "theme", "image"),
    "page": ("query", "level", "special", "theme", "image", "difference", "title"),
}


def _settings(ctx: click.Context, form: str) -> dict[str, Any]:
    return options.given(ctx, *_KNOWS[_picture(form)])


def _picture(form: str) -> str:
    return {"terminal": "terminal", "html": "page", "json": "page"}.get(form, "figure")


def _check(chosen: Sequence[Output], given: dict[str, Any]) -> None:
    """An option that no picture asked for understands is a mistake."""
    pictures = {_picture(one.form) for one in chosen} or {"terminal"}
    known = {name for picture in pictures for name in _KNOWS[picture]}
    for name in ("kind", "words", "top", "image", "difference", "title"):
        if given[name] not in (None, False) and name not in known:
            where = " or ".join(f"a {picture}" for picture, names in _KNOWS.items() if name in names)
            raise click.UsageError(f"--{name} is for {where}, and none is asked for.")
    if not chosen and given["kind"] not in (None, "strip", "levels"):
        raise click.UsageError(
            f"a terminal shows strip or levels; --kind {given['kind']} is a figure: add -o FILE.png, .svg or .pdf."
        )


def _opened(files: Sequence[str]) -> tuple[list[Attribution], list[AttentionGraph]]:
    from attnflow.attribution import Attribution
    from attnflow.graph import AttentionGraph

    found = [load(file, "attribution", "graph") for file in files]
    shown = [one for one in found if isinstance(one, Attribution)]
    if not shown:
        raise InvalidArtifact(f"{files[0]} holds a graph: `attnflow attribute` makes of it what can be drawn.")
    return shown, [one for one in found if isinstance(one, AttentionGraph)]


def _draw(one: Output, shown: list[Attribution], graphs: list[AttentionGraph], settings: dict[str, Any]) -> None:
    from attnflow import render as pictures

    if _picture(one.form) == "figure":
        write(one, lambda path: pictures.figure(shown, path=path, **settings))
        return
    image = settings.pop("image", None)
    settings["images"] = None if image is None else [Path(image)]
    if one.form == "html":
        write(one, lambda path: pictures.page(shown, path, graphs=graphs, **settings))
    else:
        write_text(one, json.dumps(pictures.document(shown, graphs=graphs, **settings), ensure_ascii=False) + "\n")


def _print(shown: list[Attribution], settings: dict[str, Any]) -> None:
    from attnflow import render as pictures

    out = console()
    for number, one in enumerate(shown):
        if number:
            out.print()
        pictures.terminal(one, console=out, **settings)
