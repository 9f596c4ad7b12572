"""capture.graph and capture.stack: from a model and an input to the types that everything else reads."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

import torch

from attnflow.capture._jobs import Job, Setting, each
from attnflow.capture._levels import Level
from attnflow.capture._results import as_graph, as_stack
from attnflow.capture._stream import Record, Stream
from attnflow.errors import InvalidArgument, suggest
from attnflow.graph import AttentionGraph
from attnflow.mixing import EDGES, mix

RECORDS = ("attention", "gradients")
MIXING = tuple(signature(mix).parameters)[1:]
STORAGE = {"float32": torch.float32, "float16": torch.float16}


def graph(
    model: Any,
    inputs: Any,
    tokenizer: Any = None,
    processor: Any = None,
    heads: Any = "mean",
    residual: Any = 0.5,
    edges: str = "attention",
    *,
    target: Any = None,
    generate: int | None = None,
    words: bool = False,
    truncate: bool = False,
    batch_size: int = 8,
    dtype: str = "float32",
    **mixing: Any,
) -> Any:
    """The attention of a model on an input, its heads mixed as `attnflow.mix` mixes them: an AttentionGraph.

    The model runs once, as it was loaded; each layer's heads are mixed while they are computed, in blocks of queries, so
    memory grows with layers · n² and never with heads · n². The edge rules that need gradients keep all heads.

    `inputs`: text; a pair of texts (for an encoder-decoder model: what it reads and what it writes); token ids; with
    `words=True` a list of words; chat messages; the model's own arguments as a dict; or a list of these, which gives a
    list of graphs. `generate=n` lets the model write n more tokens and captures prompt and answer in one run;
    `options["predicted"]` says which row predicted which. `target` (for edges with gradients): a class or token, by number or
    name, a pair (their difference), a function of the output, or None, the predicted one. `dtype="float16"` halves the storage.
    Other options (`top_k`, `threshold`, `discard`, `drop_special`, `renormalise`) go to `mix`.
    """
    for name in mixing:
        if name not in MIXING:
            raise InvalidArgument(
                f"unknown option {name!r}." + suggest(name, {*MIXING, *signature(graph).parameters} - {"mixing"})
            )
    if not isinstance(edges, str) or edges not in EDGES:
        raise InvalidArgument(f"unknown edge rule {edges!r}." + suggest(edges, EDGES))
    if not isinstance(dtype, str) or dtype not in STORAGE:
        raise InvalidArgument(f"unknown storage {dtype!r}." + suggest(dtype, STORAGE))
    gradients = EDGES[edges].needs_gradients
    options = {"heads": heads, "residual": residual, "edges": edges, **mixing}

    def reader() -> Stream | Record:
        return Record(gradients=True) if gradients else Stream(heads, STORAGE[dtype] if dtype != "float32" else None)

    def finish(job: Job, found: list[Level], item: int) -> AttentionGraph:
        return as_graph(job, found, item, options, dtype)

    setting = Setting(tokenizer, processor, target, generate, words, truncate, batch_size)
    return each(model, inputs, setting, reader, finish)


def stack(
    model: Any,
    inputs: Any,
    tokenizer: Any = None,
    processor: Any = None,
    record: Sequence[str] = ("attention",),
    target: Any = None,
    *,
    generate: int | None = None,
    words: bool = False,
    truncate: bool = False,
    batch_size: int = 1,
) -> Any:
    """Every head of every layer: an AttentionStack. Memory grows with layers · heads · n².

    `record=("attention", "gradients")` adds the gradients of the target by the weights; `inputs`, `target` and the other options
    are those of `graph`. Encoder-decoder models have no square stack: use `graph`.
    """
    wanted = (record,) if isinstance(record, str) else tuple(record)
    for name in wanted:
        if name not in RECORDS:
            raise InvalidArgument(f"cannot record {name!r}." + suggest(name, RECORDS))

    def reader() -> Record:
        return Record(gradients="gradients" in wanted)

    setting = Setting(tokenizer, processor, target, generate, words, truncate, batch_size)
    return each(model, inputs, setting, reader, as_stack)
