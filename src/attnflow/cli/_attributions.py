"""Attributions in every form that they are written in, and in the terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from attnflow.cli._output import Output, as_json, write, write_text
from attnflow.cli._say import console

if TYPE_CHECKING:
    from attnflow.attribution import Attribution
    from attnflow.graph import AttentionGraph

FORMS = ("html", "png", "svg", "pdf", "npz", "csv", "json")


def check_forms(chosen: Sequence[Output], methods: Sequence[str]) -> None:
    """An npz holds one attribution."""
    if len(methods) > 1 and any(one.form == "npz" for one in chosen):
        raise click.UsageError(
            f"an .npz holds one method, and {len(methods)} were asked for. Give one --method, or write .json or .csv."
        )


def save(
    found: Sequence[Attribution], one: Output, *, graphs: Sequence[AttentionGraph] = (), query: int | str | None = None
) -> None:
    """Write attributions in one form. A picture opens at `query`; the page of a flow shows the paths in its graph."""
    if one.form == "csv":
        write_text(one, to_csv(found))
    elif one.form == "json":
        write_text(one, as_json(to_json(found)))
    elif one.form == "npz":
        write(one, found[0].save)
    else:
        from attnflow import render

        if one.form == "html":
            write(one, lambda path: render.page(list(found), path, graphs=list(graphs), query=query))
        else:
            write(one, lambda path: render.figure(list(found), path=path, query=query))


def to_json(found: Sequence[Attribution]) -> dict[str, Any]:
    """Every number, and how it was made. All are of the same text, or each result would need tokens of its own."""
    from attnflow import __version__
    from attnflow.artifacts import jsonable

    return {
        "format": "attnflow-attributions",
        "version": 1,
        "made_by": f"attnflow {__version__}",
        "tokens": found[0].tokens.to_json(),
        "results": [
            {
                "method": a.method,
                "levels": list(a.levels),
                "level_names": list(a.level_names),
                "queries": list(a.queries),
                "inputs": list(a.inputs),
                "scores": a.scores.tolist(),
                "saturation": None if a.saturation is None else vars(a.saturation),
                "options": jsonable(a.options),
            }
            for a in found
        ],
    }


def to_csv(found: Sequence[Attribution]) -> str:
    """One row for each score."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    for number, a in enumerate(found):
        columns = a.columns()
        if not number:
            table.writerow(["method", *columns])
        table.writerows([a.method, *row] for row in zip(*columns.values(), strict=True))
    return text.getvalue()


def show(found: Sequence[Attribution], queries: Sequence[int | None], *, kind: str) -> None:
    """Print each attribution, one query after the other."""
    from attnflow import render

    out = console()
    for number, (a, query) in enumerate((a, query) for a in found for query in queries):
        if number:
            out.print()
        render.terminal(a, kind=kind, query=query, console=out)
