"""attnflow methods: what exists, what it needs, and when to use it."""

from __future__ import annotations

from typing import NamedTuple

import click

from attnflow.cli import _options as options
from attnflow.cli._output import as_json as to_json
from attnflow.cli._say import answer, console
from attnflow.cli._types import edge_names, method_names, residual_names


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
        "no negative entries; microseconds to milliseconds for each pair; compiles once",
        "rollout seems too diffuse, or you ask what a path could carry and what limits it (attnflow bottleneck). In deep "
        "models it saturates: look at lower levels.",
    ),
    "relevance": Entry(
        "what attention adds, accumulated: R += Ā R, with rules of its own for attention between two sequences",
        "edges without signs, no residual in the graph (it adds its own); chefer edges, a target, unless others are given",
        "you compare with Chefer et al. 2021, or explain a class of an encoder-decoder or image-text model.",
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
    "norm": Entry(
        "‖what a key contributed‖, residual and LayerNorms included (norm:none, norm:first, norm:both)",
        "one run, a known model family; a few times a forward pass",
        "weights mislead since values differ in length: Kobayashi et al. 2020, 2021; norm:both is GlobEnc's.",
    ),
    "alti": Entry(
        "how much nearer the output lies to what a key contributed (alti:l1, alti:l2)",
        "as norm; alti:l1 costs more on long inputs",
        "contributions may cancel each other, which lengths do not show: Ferrando et al. 2022.",
    ),
    "value_zeroing": Entry(
        "how far a layer's output turns without a key's value",
        "a known model family; as many forward passes as there are tokens",
        "the feed-forward part should count too: Mohebbi et al. 2023. Short texts.",
    ),
    "routes": Entry(
        "the share of each head and key in what a block writes",
        "as norm; the dearest of the rules that need one run",
        "you look for sparse routes, with --threshold: Ferrando & Voita 2024.",
    ),
    "effective": Entry(
        "A without what the values cannot show; entries may be negative",
        "the attention call alone, any family; raw and rollout, not flow",
        "texts are longer than a head is wide, and you ask whether the weights could be others: Brunner et al. 2020.",
    ),
}
RESIDUAL_GUIDE = {
    "own": Entry(
        "what belongs to the edge rule",
        "nothing",
        "always, unless you have a reason: 0.5 for attention, as in the paper.",
    ),
    "measured": Entry(
        "‖x‖ / (‖x‖ + ‖attention output‖), per layer and token",
        "a known model family",
        "a fixed 0.5 is not what the model does: deep layers often change little.",
    ),
    "w_res": Entry(
        "1 − mixing ratio, per layer and token; the rest of the row goes to others only",
        "a known model family",
        "you compare with Kobayashi et al. 2021 and GlobEnc's W-Res.",
    ),
}


@click.command(cls=options.Command, short_help="What exists, what it needs, when to use it.")
@options.as_json
def methods(as_json: bool) -> None:
    """List the methods, edge rules and residual rules, with what each needs and when to use it."""
    edges = [name for name in edge_names() if ":" not in name]
    listed = {
        "methods": _rows(method_names(), METHOD_GUIDE),
        "edges": _rows(edges, EDGE_GUIDE),
        "residuals": _rows(residual_names(), RESIDUAL_GUIDE),
    }
    if as_json:
        answer(
            to_json({kind: [{"name": name, **row._asdict()} for name, row in rows] for kind, rows in listed.items()})
        )
        return
    _print("--method", listed["methods"])
    console().print()
    _print("--edges", listed["edges"])
    console().print()
    _print("--residual", listed["residuals"])


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
