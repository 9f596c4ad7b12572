"""attnflow audit: what the answers of two models come from, and what moved between them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import click

from attnflow.cli import _options as options
from attnflow.cli._data import read_data
from attnflow.cli._evaluate import FORMS, baseline_names
from attnflow.cli._model import folder_of, loading
from attnflow.cli._output import option, outputs, write_report
from attnflow.cli._types import Name, Residual, edge_names, method_names


def way_names() -> list[str]:
    """Methods and baselines."""
    return [*method_names(), *baseline_names()]


@click.command(cls=options.Command)
@click.argument("data", metavar="DATA")
@options.model
@click.option("--other", metavar="FOLDER|NAME", help="The other model; without it the same one reads --other-data.")
@click.option(
    "--other-data", metavar="DATA", help="Other texts for the other side: two domains instead of two checkpoints."
)
@click.option(
    "--by",
    default="occlusion",
    type=Name("map", way_names),
    metavar="NAME",
    help="What reliance is read from: occlusion (the default), another baseline, or a method.",
)
@click.option("--edges", type=Name("edge rule", edge_names), metavar="RULE", help="For a method: its edge rule.")
@click.option("--residual", type=Residual(), metavar="SHARE|RULE", help="For a method: its residual.")
@click.option(
    "--words",
    "lists",
    multiple=True,
    metavar="NAME=WORD,…|NAME=FILE",
    help="A list of words to look at; several are allowed.",
)
@click.option(
    "--replace",
    type=click.Choice(["unk", "mask", "pad", "remove", "mean"]),
    help="What stands in for a word that is taken away; removed by default.",
)
@click.option(
    "--target", metavar="CLASS|TOKEN", help="Whose probability is watched; by default what each model predicts."
)
@click.option(
    "--least",
    type=click.IntRange(min=2),
    metavar="N",
    help="Single words are looked at that at least so many texts hold; 5.",
)
@click.option("--column", metavar="NAME", help="The column of the texts, where the file has columns.")
@click.option(
    "--limit", type=click.IntRange(min=2), default=200, metavar="N", help="Draw at most so many texts; 200 by default."
)
@click.option("--seed", type=int, default=0, metavar="N", help="Of everything drawn; 0.")
@click.option("--truncate", is_flag=True, help="Cut texts that are longer than the model allows.")
@option(*FORMS)
@options.as_json
@click.pass_context
def audit(ctx: click.Context, /, data: str, **given: Any) -> None:
    """Find what moved between two models, or between two kinds of text.

    Both models read DATA, a file of texts (one a line, or .csv, .tsv, .jsonl); how much the answers of each come from word classes,
    places, special tokens, lists of words and single words is compared text by text, with intervals and tests. Without -o the
    tables are shown.

    \b
    attnflow audit reviews.txt --model before/ --other after/ -o audit.html
    attnflow audit reviews.txt --model mine/ --other-data tweets.txt --words "slang=lol,omg,tbh"
    """
    chosen = outputs(given["paths"], given["form"], as_json=given["as_json"], forms=FORMS)
    if given["other"] is None and given["other_data"] is None:
        raise click.UsageError(
            "two sides are compared: give --other (a second model), --other-data (other texts), or both."
        )
    if given["by"] in baseline_names() and (given["edges"] or given["residual"] is not None):
        raise click.UsageError(f"--edges and --residual are for a method, and --by is {given['by']}.")
    found = _audited(data, given)
    write_report(found, chosen)


def _audited(data: str, given: dict[str, Any]) -> Any:
    from attnflow import study

    drawn = {"limit": given["limit"], "seed": given["seed"]}
    texts = read_data(data, given["column"], **drawn).texts
    others = None if given["other_data"] is None else read_data(given["other_data"], given["column"], **drawn).texts
    way: Any = given["by"]
    if way in method_names():
        mixing: dict[str, Any] = {name: given[name] for name in ("edges", "residual") if given[name] is not None}
        way = study.Way(way, **{**({"residual": None} if way == "raw" else {}), **mixing})
    asked = {name: given[name] for name in ("replace", "least") if given[name] is not None}
    target = int(given["target"]) if str(given["target"]).isdigit() else given["target"]
    with ExitStack() as held:
        held.enter_context(loading(given["model"]))
        one = held.enter_context(folder_of(given["model"]))
        held.enter_context(loading(given["other"]))
        other = one if given["other"] is None else given["other"]
        names = (data, given["other_data"]) if given["other"] is None else (given["model"] or "bundled", given["other"])
        return study.audit(
            one, other, texts, others, way=way, words=_lists(given["lists"]), target=target, names=names, truncate=given["truncate"],
            seed=given["seed"], **asked,
        )  # fmt: skip


def _lists(given: tuple[str, ...]) -> dict[str, list[str]]:
    """NAME=WORD,WORD or NAME=FILE with a word a line."""
    import os

    found = {}
    for one in given:
        name, equals, words = one.partition("=")
        if not equals or not name or not words:
            raise click.UsageError(f"--words is NAME=WORD,… or NAME=FILE, got {one!r}.")
        if os.path.isfile(words):
            found[name] = read_data(words).texts
        else:
            found[name] = [word.strip() for word in words.split(",") if word.strip()]
    return found
