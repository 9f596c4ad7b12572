"""attnflow batch: many inputs to Parquet."""

from __future__ import annotations

from typing import Any

import click

from attnflow.cli import _options as options
from attnflow.cli._apply import Methods, level_numbers
from attnflow.cli._model import loading
from attnflow.cli._output import as_json
from attnflow.cli._say import answer, voice


@click.group()
def batch() -> None:
    """Explain many inputs: files of rows, folders of texts or images, to Parquet.

    `attnflow batch run INPUT -o FOLDER` works on all cores of this machine, or on a Ray cluster with --engine ray.
    """


@batch.command(cls=options.Command)
@click.argument("source", metavar="INPUT")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FOLDER",
    help="Where the Parquet files go; a run that was stopped goes on there.",
)
@options.model
@options.method
@options.query
@options.level
@click.option(
    "--column", metavar="NAME", help="The column that is explained; usual names (text, sentence, image …) are found."
)
@click.option("--second", metavar="NAME", help="The column of the second text of a pair.")
@click.option("--id", metavar="NAME", help="A column that names each row.")
@click.option(
    "--keep", multiple=True, metavar="NAME", help="A column that goes along into the answer. Several are allowed."
)
@options.mixing
@click.option("--tokenizer", metavar="FOLDER|NAME", help="The tokenizer, where it does not lie with the model.")
@click.option(
    "--target",
    metavar="CLASS|TOKEN",
    help="For edges with gradients: the output they are of; the predicted one by default.",
)
@click.option(
    "--generate",
    type=click.IntRange(min=1),
    metavar="N",
    help="Let the model write N more tokens; they are asked about.",
)
@click.option("--truncate", is_flag=True, help="Cut a text that is longer than the model allows.")
@click.option("--words", "join_words", is_flag=True, help="Join sub-words to words.")
@options.normalise
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    help="Processes on this machine (the default), or a Ray cluster.",
)
@click.option(
    "--address",
    metavar="HOST:PORT",
    help="Of the Ray cluster; without it the one that this machine belongs to, or a new one on it.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many models run at once; one for each core, or GPU, by default.",
)
@click.option(
    "--batch-size", type=click.IntRange(min=1), metavar="N", help="How many rows a model runs on together, at most; 32."
)
@click.option("--part-rows", type=click.IntRange(min=1), metavar="N", help="How many rows make a file.")
@click.option("--device", metavar="NAME", help="Where the models run, for example cuda:1; the GPUs if there are some.")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "bfloat16", "float16"]),
    help="What the model computes in; as it was saved by default.",
)
@click.option("--json", "as_json", is_flag=True, help="What was done as JSON on stdout, for programs.")
@click.pass_context
def run(ctx: click.Context, /, source: str, **given: Any) -> None:
    """Explain every row of INPUT.

    INPUT is a file of rows (JSONL, CSV, TSV, Parquet), or a folder of texts, of images or of such files. FOLDER becomes a
    Parquet data set: one row for each input, method and level. A row that fails is a row with its error. The same command started
    again goes on where it was stopped.

    \b
    attnflow batch run reviews.jsonl -o answers -M distilbert-sst2 -m rollout -m flow --keep label
    attnflow batch run reviews.parquet -o answers --engine ray --address head:6379
    """
    methods = Methods(given["methods"] or ("rollout",), None, given["normalise"])
    options.check_target(given)
    from attnflow import batch as engines

    names = (
        "column",
        "second",
        "id",
        "keep",
        "engine",
        "address",
        "workers",
        "batch_size",
        "part_rows",
        "device",
        "dtype",
    )
    chosen = {**options.capturing(ctx), **options.given(ctx, *names, *options.MIXING)}
    if methods.normalise:
        chosen["normalise"] = True
    with loading(given["model"]):
        done = engines.run(
            source, given["output"], given["model"], methods.names, query=list(given["queries"]) or None,
            level=level_numbers(given["levels"] or (-1,)), join_words=given["join_words"],
            progress=not voice().quiet, **chosen,
        )  # fmt: skip
    if given["as_json"]:
        answer(as_json({**vars(done), "folder": str(done.folder)}))
    else:
        voice().note(str(done))
