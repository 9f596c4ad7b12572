"""attnflow explain: from a text to an answer in one step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from attnflow.cli import _options as options
from attnflow.cli._apply import Methods, level_numbers
from attnflow.cli._attributions import FORMS, check_forms, save, show
from attnflow.cli._model import loading
from attnflow.cli._output import Output, option, outputs
from attnflow.cli._say import voice
from attnflow.cli._text import read_source, read_text

if TYPE_CHECKING:
    from attnflow.attribution import Attribution
    from attnflow.graph import AttentionGraph


class Asked:
    """What the library calls in a method's place: every method over the one capture, and the graph is kept."""

    graph: AttentionGraph

    def __init__(self, methods: Methods) -> None:
        self.methods = methods
        self.found: list[Attribution] = []

    def __call__(
        self, graph: AttentionGraph, queries: Iterable[int | str] | None = None, levels: Iterable[int] | None = None
    ) -> Attribution:
        """As a method is called."""
        self.graph = graph
        chosen = None if levels is None else list(levels)
        self.found = self.methods.over(graph, None if queries is None else list(queries), chosen)
        return self.found[0]


@click.command(cls=options.Command, short_help="From a text or an image to an answer, in one step.")
@click.argument("source", metavar="TEXT|IMAGE|FILE|-")
@options.model
@options.method
@options.query
@options.level
@options.mixing
@options.capture
@click.option("--words", is_flag=True, help="Join sub-words to words.")
@options.normalise
@options.threads
@option(*FORMS)
@options.as_json
@click.pass_context
def explain(ctx: click.Context, /, source: str, **given: Any) -> None:
    """Say how much of what a model makes of a text or an image came from each of its tokens or patches.

    It is shown coloured by the answer, at the top level. Without --query it is about the position that the model's
    output is read from. What is written by -o holds all levels unless --level is given; a page also holds every query.

    \b
    attnflow explain "The key to the cabinets"
    attnflow explain "The key to the cabinets" -m rollout -m flow -o answer.html
    attnflow explain photo.jpg --model FOLDER -o map.png
    echo "The key to the cabinets" | attnflow explain - --json
    """
    methods = Methods(given["methods"] or ("rollout",), given["threads"], given["normalise"])
    chosen = outputs(given["paths"], given["form"], as_json=given["as_json"], forms=FORMS)
    check_forms(chosen, methods.names)
    options.check_target(given, methods.wanted)
    asked = _ask(ctx, read_source(source), methods, given, every_level=bool(chosen))
    found = _joined(asked.found, words=given["words"])
    if not given["queries"]:
        _say_query(asked.graph)
    for one in chosen:
        _save(one, asked, found, given)
    if any(one.path is None for one in chosen) or (chosen and voice().quiet):
        return
    several = len(found[0].levels) > 1 and bool(given["levels"])
    show(found, found[0].queries, kind="levels" if several else "strip")


def _ask(
    ctx: click.Context, source: str | Path, methods: Methods, given: dict[str, Any], *, every_level: bool
) -> Asked:
    import attnflow as af

    asked = Asked(methods)
    levels = level_numbers(given["levels"] or (("all",) if every_level else (-1,)))
    with loading(given["model"]):
        af.explain(
            source if given["second"] is None else (source, read_text(given["second"])),
            given["model"],
            asked,
            query=list(given["queries"]) or None,
            level=levels,
            **options.capturing(ctx),
            **{**methods.wanted, **options.given(ctx, *options.MIXING)},
        )
    return asked


def _joined(found: Sequence[Attribution], *, words: bool) -> list[Attribution]:
    return [a.words() for a in found] if words else list(found)


def _say_query(graph: AttentionGraph) -> None:
    """Which position was asked about, since nobody named it."""
    said = graph.options
    if said.get("predicted"):
        written = " ".join(f"“{one['token']}”" for one in said["predicted"])
        voice().note(f"asked about what the model wrote: {written}")
    else:
        voice().note(f"asked about position {said['query']}, {said['query_is']} (--query asks about another)")


def _save(one: Output, asked: Asked, found: Sequence[Attribution], given: dict[str, Any]) -> None:
    opening = found[0].queries[0]
    graphs: list[AttentionGraph] = []
    if one.form == "html":
        # The paths of a flow are positions, so a page of words goes without.
        graphs = [asked.graph] if "flow" in asked.methods.names and not given["words"] else []
        if not given["queries"]:
            found = _joined(asked.methods.page(asked.graph, asked.found), words=given["words"])
    save(found, one, graphs=graphs, query=opening)
