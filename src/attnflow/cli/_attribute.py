"""attnflow attribute: from a file of attention to attributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from attnflow.cli import _options as options
from attnflow.cli._apply import Methods, level_numbers
from attnflow.cli._attributions import FORMS, check_forms, save, show
from attnflow.cli._files import graph_in
from attnflow.cli._output import option, outputs

if TYPE_CHECKING:
    from attnflow.graph import AttentionGraph


@click.command(cls=options.Command, short_help="Apply methods to captured attention.")
@click.argument("file", metavar="FILE.npz")
@options.method
@options.query
@options.level
@options.mixing
@click.option("--words", is_flag=True, help="Join sub-words to words.")
@options.normalise
@options.threads
@option(*FORMS)
@options.as_json
@click.pass_context
def attribute(ctx: click.Context, /, file: str, **given: Any) -> None:
    """Apply methods to captured attention.

    What is written holds every query at every level, unless --query and --level say which. Without -o one query is shown
    at the top level. The options of mixing are for a file with every head (`attnflow capture --every-head`).

    \b
    attnflow attribute graph.npz -m rollout -o rollout.npz
    attnflow attribute graph.npz -m raw -m rollout -m flow -o compared.html
    attnflow attribute heads.npz -m rollout --heads max --json
    """
    methods = Methods(given["methods"] or ("rollout",), given["threads"], given["normalise"])
    chosen = outputs(given["paths"], given["form"], as_json=given["as_json"], forms=FORMS)
    check_forms(chosen, methods.names)
    graph = graph_in(file, options.given(ctx, *options.MIXING), methods.wanted)
    queries, levels = list(given["queries"]) or None, level_numbers(given["levels"] or ("all",))
    if not chosen:
        levels = level_numbers(given["levels"] or (-1,))
        queries = queries or _own_query(graph)
    found = methods.over(graph, queries, levels)
    found = [a.words() for a in found] if given["words"] else found
    opening = found[0].queries[0] if queries else None
    for one in chosen:
        with_paths = one.form == "html" and "flow" in methods.names and not given["words"]
        save(found, one, graphs=[graph] if with_paths else [], query=opening)
    if not chosen:
        show(found, found[0].queries if queries else [None], kind="levels" if len(found[0].levels) > 1 else "strip")


def _own_query(graph: AttentionGraph) -> list[int | str] | None:
    """The position that the model's output was read from, where the graph knows it."""
    return [graph.options["query"]] if "query" in graph.options else None
