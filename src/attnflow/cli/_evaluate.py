"""attnflow evaluate: which maps tell the truth about a model, on data of one's own."""

from __future__ import annotations

from typing import Any

import click

from attnflow.cli import _options as options
from attnflow.cli._data import read_data
from attnflow.cli._model import folder_of, loading
from attnflow.cli._output import option, outputs, write_report
from attnflow.cli._say import voice
from attnflow.cli._types import Heads, Name, Residual, edge_names

FORMS = ("html", "md", "csv", "json", "txt")


def baseline_names() -> list[str]:
    """The baselines there are."""
    from attnflow.study import BASELINES

    return list(BASELINES)


@click.command(cls=options.Command)
@click.argument("data", metavar="DATA")
@options.model
@options.method
@click.option(
    "--edges",
    multiple=True,
    type=Name("edge rule", edge_names),
    metavar="RULE",
    help="Edge rules; attention by default.",
)
@click.option(
    "--residual",
    multiple=True,
    type=Residual(),
    metavar="SHARE|RULE",
    help="Residual shares or rules; the edge rule's own by default.",
)
@click.option(
    "--heads", multiple=True, type=Heads(), metavar="mean|max|min|N|W,W,…", help="How heads are mixed; mean by default."
)
@click.option(
    "--level", multiple=True, type=int, metavar="N", help="Levels: 0 is the first, -1 the top one, the default."
)
@click.option(
    "--special",
    multiple=True,
    type=click.Choice(["keep", "drop"]),
    help="Special tokens stay in the graph (keep, the default), or leave it.",
)
@click.option("--receptive-field", is_flag=True, help="For decoders: the same maps with it as well as without.")
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    type=Name("baseline", baseline_names),
    metavar="NAME",
    help="What to compare with: random, last layer, occlusion, gradient, gradient x input, integrated gradients, shap, grad-cam. Most of them by default.",
)
@click.option(
    "--replace",
    multiple=True,
    type=click.Choice(["unk", "mask", "pad", "remove", "mean"]),
    help="What stands in a token's place; several are measured apart. By default two that the tokenizer has.",
)
@click.option("--unit", type=click.Choice(["token", "word"]), help="What is taken away: tokens (the default) or words.")
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help="Cuts of the curves; 10 by default.")
@click.option("--target", metavar="CLASS|TOKEN", help="Whose probability is watched; by default the predicted one.")
@click.option(
    "--labels", is_flag=True, help="Watch each text's own label, from the file, instead of the predicted class."
)
@click.option("--column", metavar="NAME", help="The column of the texts, where the file has columns.")
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Draw at most so many texts; 100 by default.", default=100
)
@click.option("--seed", type=int, default=0, metavar="N", help="Of everything drawn; 0.")
@click.option("--tokenizer", metavar="FOLDER|NAME", help="The tokenizer, where it does not lie with the model.")
@click.option("--truncate", is_flag=True, help="Cut texts that are longer than the model allows.")
@option(*FORMS)
@options.as_json
@click.pass_context
def evaluate(ctx: click.Context, /, data: str, **given: Any) -> None:
    """Measure which maps tell the truth about a model.

    DATA is a file of texts: one a line, or .csv, .tsv, .jsonl with a column “text” or “sentence”. What each map ranks highest
    is taken away, or is all that is kept, and the model's answer is watched. Every combination of the choices is a map. Without
    -o the answers and tables are shown.

    \b
    attnflow evaluate reviews.txt --model my-classifier -o report.html
    attnflow evaluate reviews.tsv --model my-classifier --edges attention --edges norm -m rollout -m flow
    """
    chosen = outputs(given["paths"], given["form"], as_json=given["as_json"], forms=FORMS)
    if given["labels"] and given["target"] is not None:
        raise click.UsageError("--labels and --target both say what is watched: give one.")
    read = read_data(data, given["column"], limit=given["limit"], seed=given["seed"])
    if given["labels"] and read.labels is None:
        raise click.UsageError(f"--labels: {data} has no column “label” or “target”.")
    target: Any = read.labels if given["labels"] else given["target"]
    if isinstance(target, str) and target.isdigit():
        target = int(target)
    with loading(given["model"]), folder_of(given["model"]) as model:
        found = _measured(model, read.texts, target, given)
    write_report(found, chosen)


def _measured(model: str, texts: list[str], target: Any, given: dict[str, Any]) -> Any:
    from attnflow import capture, study

    loaded: Any = capture.load(model)
    tokenizer = capture.tokenizer_for(loaded, given["tokenizer"], model)
    axes = {name: list(given[name]) for name in ("edges", "residual", "heads", "level", "special") if given[name]}
    ways = study.ways(list(given["methods"]) or ["raw", "rollout", "flow"], **axes)
    if given["receptive_field"]:
        ways += study.ways(list(given["methods"]) or ["raw", "rollout", "flow"], **axes, receptive_field=True)
    chosen = {name: given[name] for name in ("baselines", "unit", "steps") if given[name]}
    shown = voice().progress is not False
    return study.faithfulness(
        loaded, texts, ways, tokenizer=tokenizer, replace=list(given["replace"]) or _two(tokenizer), target=target,
        truncate=given["truncate"], seed=given["seed"], progress=shown, **chosen,
    )  # fmt: skip


def _two(tokenizer: Any) -> list[str]:
    """Two replacements that need nothing the tokenizer lacks."""
    return ["unk" if getattr(tokenizer, "unk_token_id", None) is not None else "mean", "remove"]
