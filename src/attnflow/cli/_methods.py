"""attnflow methods: what exists, what it needs, and when to use it."""

from __future__ import annotations

from typing import NamedTuple

import click

from attnflow.cli import _options as options
from attnflow.cli._output import as_json as to_json
from attnflow.cli._say import answer, console
from attnflow.cli._types import edge_names, method_names


class Entry(NamedTuple):
    """A row of the table."""

    gives: str
    needs: str
    use_when: str


METHOD_GUIDE = {
    "raw": Entry(
        "the weights of one level, as they are",
        "any graph; no time",
        "you look at the first level, or at what one layer does. Higher up its keys are mixtures of many inputs.",
    ),
    "rollout": Entry(
        "shares of the input: attention as proportions, multiplied through all levels",
        "rows that are proportions; milliseconds",
        "you want one answer for all levels. The place to begin, and what most of the literature reports.",
    ),
    "flow": Entry(
        "maximum flow: attention as capacities",
        "any graph; microseconds to milliseconds for each pair; compiles once",
        "rollout seems too diffuse, or you ask what a path could carry and what limits it (attnflow bottleneck). In deep "
        "models it saturates: look at lower levels.",
    ),
}
EDGE_GUIDE = {
    "attention": Entry("A, the weights", "one run of the model", "always, unless you have a reason not to."),
    "gradient": Entry(
        "(mean over heads of ∇A ⊙ A)⁺",
        "a run with gradients, all heads in memory, a target",
        "the answer should be about one class or token, not about the position as a whole.",
    ),
    "chefer": Entry(
        "mean over heads of (∇A ⊙ A)⁺",
        "as gradient",
        "as gradient, and heads that speak against the target should not cancel those that speak for it.",
    ),
}


@click.command(cls=options.Command)
@options.as_json
def methods(as_json: bool) -> None:
    """List the methods and edge rules, with what each needs and when to use it."""
    listed = {"methods": _rows(method_names(), METHOD_GUIDE), "edges": _rows(edge_names(), EDGE_GUIDE)}
    if as_json:
        answer(
            to_json({kind: [{"name": name, **row._asdict()} for name, row in rows] for kind, rows in listed.items()})
        )
        return
    _print("--method", listed["methods"])
    console().print()
    _print("--edges", listed["edges"])


def _rows(names: list[str], guide: dict[str, Entry]) -> list[tuple[str, Entry]]:
    """What exists is what the library says exists."""
    return [(name, guide.get(name, Entry("", "", ""))) for name in names]


def _print(head: str, rows: list[tuple[str, Entry]]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, leading=1)
    table.add_column(head, no_wrap=True, style="bold")
    for column in ("gives", "needs", "use it when"):
        table.add_column(column)
    for name, row in rows:
        table.add_row(name, *row)
    console().print(table)
