"""Options that several commands share. What is not given is left to the library's own default."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, redirect_stderr
from io import StringIO
from typing import Any, TypeVar

import click

from attnflow.cli._say import Voice
from attnflow.cli._types import Aside, Heads, Level, Name, Query, Residual, edge_names, method_names

F = TypeVar("F", bound=Callable[..., Any])

method = click.option(
    "-m",
    "--method",
    "methods",
    multiple=True,
    type=Name("method", method_names),
    metavar="NAME",
    help="rollout (the default), flow, raw or relevance; several to compare them. `attnflow methods` says which is for what.",
)
query = click.option(
    "--query",
    "queries",
    multiple=True,
    type=Query(),
    metavar="TOKEN|INDEX",
    help="The position asked about: a token, or a number from 0 (negative: from the end). Several are allowed.",
)
level = click.option(
    "-l",
    "--level",
    "levels",
    multiple=True,
    type=Level(),
    metavar="N|all",
    help="The level asked about: 0 is the first, -1 the top one. Several are allowed, or all.",
)
model = click.option(
    "-M",
    "--model",
    metavar="FOLDER|NAME",
    help="A folder with a transformers model, or its name on the hub. Without it: the small model that comes along, which reads "
    "a sentence up to its verb and says whether that will be singular or plural.",
)
threads = click.option(
    "--threads", type=click.IntRange(min=1), metavar="N", help="Threads for flow; all cores by default."
)
normalise = click.option("--normalise", is_flag=True, help="Flow as rows that sum to 1, as the paper's code has it.")
as_json = click.option("--json", "as_json", is_flag=True, help="The answer as JSON on stdout, for programs.")

_MIXING = (
    click.option(
        "--heads",
        type=Heads(),
        metavar="mean|max|min|N|W,W,…",
        help="How heads are mixed: averaged (the default), the largest, the smallest, one head, or weights.",
    ),
    click.option(
        "--residual",
        type=Residual(),
        metavar="SHARE|none|S,S,…|RULE",
        help="Share of the residual connection: one for all, one per layer, or measured in the model (measured, w_res). By "
        "default what belongs to the edge rule (own): 0.5 for attention.",
    ),
    click.option(
        "--edges",
        type=Name("edge rule", edge_names),
        metavar="RULE",
        help="What counts as an edge: attention (the default), gradient or chefer, which weight it by gradients, or a rule that reads "
        "the layers: norm, alti, value_zeroing, routes, effective. `attnflow methods` says which is for what.",
    ),
    click.option("--top-k", type=click.IntRange(min=1), metavar="K", help="Keep the K largest entries of each row."),
    click.option("--threshold", type=float, metavar="W", help="Keep only entries above W."),
    click.option(
        "--discard", type=float, metavar="SHARE", help="Drop this share of each layer's entries, the smallest."
    ),
    click.option("--drop-special", is_flag=True, help="Leave special tokens out of the graph."),
    click.option(
        "--no-renormalise",
        "renormalise",
        is_flag=True,
        flag_value=False,
        default=True,
        help="Leave rows as the edge rule made them, instead of dividing each by its sum.",
    ),
    click.option(
        "--receptive-field", is_flag=True, help="For decoders: divide each key by the number of queries that see it."
    ),
    click.option(
        "--distance-discount", is_flag=True, help="For decoders: divide each entry by its distance, plus one."
    ),
    click.option(
        "--set-aside",
        type=Aside(),
        metavar="sinks|TOKEN|INDEX,…",
        help="Let nobody take from these positions, or from the attention sinks of each level, but themselves.",
    ),
)

_CAPTURE = (
    click.option("--tokenizer", metavar="FOLDER|NAME", help="The tokenizer, where it does not lie with the model."),
    click.option(
        "--target",
        metavar="CLASS|TOKEN",
        help="For edges with gradients: the output they are of; the predicted one by default.",
    ),
    click.option(
        "--second",
        metavar="TEXT",
        help="A second text: of a sentence pair, what an encoder-decoder model writes, or the text beside an image.",
    ),
    click.option(
        "--generate",
        type=click.IntRange(min=1),
        metavar="N",
        help="Let the model write N more tokens; they are asked about.",
    ),
    click.option("--truncate", is_flag=True, help="Cut a text that is longer than the model allows."),
)


def mixing(command: F) -> F:
    """The options of `mix`."""
    return _all(_MIXING, command)


def capture(command: F) -> F:
    """What a text is captured with."""
    return _all(_CAPTURE, command)


def _all(options: tuple[Callable[[F], F], ...], command: F) -> F:
    for option in reversed(options):
        command = option(command)
    return command


def given(ctx: click.Context, *names: str) -> dict[str, Any]:
    """Those of these parameters that stand on the command line, so that the library's defaults stay its own."""
    chosen = {name: ctx.params[name] for name in names if name in ctx.params}
    return {name: value for name, value in chosen.items() if ctx.get_parameter_source(name) is not _DEFAULT}


_DEFAULT = click.core.ParameterSource.DEFAULT
MIXING = (
    "heads", "residual", "edges", "top_k", "threshold", "discard", "drop_special", "renormalise", "receptive_field",
    "distance_discount", "set_aside",
)  # fmt: skip


def capturing(ctx: click.Context) -> dict[str, Any]:
    """What a capture is told besides the text and the mixing."""
    chosen = given(ctx, "tokenizer", "generate", "truncate", "target")
    if str(chosen.get("target", "")).isdigit():
        chosen["target"] = int(chosen["target"])
    return chosen


def check_target(given: dict[str, Any], wanted: dict[str, Any] | None = None) -> None:
    """A target that nothing would use is a mistake. `wanted`: what the method stands on where nothing was given."""
    if given["target"] is None:
        return
    from attnflow.mixing import EDGES

    rule = EDGES.get(given["edges"] or (wanted or {}).get("edges", "attention"))
    if rule is None or not rule.needs_gradients:
        names = " or ".join(name for name, rule in EDGES.items() if rule.needs_gradients)
        raise click.UsageError(f"--target is what gradients are of: it needs --edges {names}.")


class Command(click.Command):
    """A command that can be quiet or verbose."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.params += voice_options()

    def invoke(self, ctx: click.Context) -> Any:
        """Run; where it shall be quiet, what libraries say beside the answer is not heard. Errors come as exceptions."""
        quiet = ctx.find_root().ensure_object(Voice).quiet
        with redirect_stderr(StringIO()) if quiet else nullcontext():
            return super().invoke(ctx)


def voice_options() -> list[click.Parameter]:
    """--quiet and --verbose: understood before and after the command's name."""
    return [
        click.Option(
            ["-q", "--quiet"], is_flag=True, expose_value=False, callback=_set, help="Say nothing on stderr but errors."
        ),
        click.Option(
            ["-v", "--verbose"],
            is_flag=True,
            expose_value=False,
            callback=_set,
            help="Say more; errors with their traceback.",
        ),
    ]


def _set(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    spoken = ctx.find_root().ensure_object(Voice)
    if value and param.name:
        setattr(spoken, param.name, True)
    if spoken.quiet and spoken.verbose:
        raise click.UsageError("--quiet and --verbose contradict each other.", ctx)
