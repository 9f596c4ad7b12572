"""capture.graph and capture.stack: from a model and an input to the types that everything else reads."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

import torch

from attnflow.capture._edges import chosen
from attnflow.capture._jobs import Job, Setting, each
from attnflow.capture._levels import Level
from attnflow.capture._results import as_graph, as_stack
from attnflow.capture._run import Reader
from attnflow.capture._stream import Record
from attnflow.errors import InvalidArgument, suggest
from attnflow.graph import AttentionGraph
from attnflow.mixing import mix

RECORDS = ("attention", "gradients")
MIXING = tuple(signature(mix).parameters)[1:]
STORAGE = {"float32": torch.float32, "float16": torch.float16}


def graph(
    model: Any,
    inputs: Any,
    tokenizer: Any = None,
    processor: Any = None,
    heads: Any = "mean",
    residual: Any = "own",
    edges: Any = "attention",
    *,
    with_layernorm: str | None = None,
    distance: str | None = None,
    target: Any = None,
    generate: int | None = None,
    words: bool = False,
    truncate: bool = False,
    batch_size: int = 8,
    tokens: Any = None,
    cross: Any = None,
    dtype: str = "float32",
    **mixing: Any,
) -> Any:
    """The attention of a model on an input, its heads mixed as `attnflow.mix` mixes them: an AttentionGraph.

    The model runs once, as it was loaded; each layer's heads are mixed while they are computed, in blocks of queries, so
    memory grows with layers · n² and never with heads · n². The edge rules that need gradients keep all heads.

    `inputs`: an image, for a model that sees (a path, a PIL image, an array, a tensor of pixel values); text; a pair of texts (for an encoder-decoder model: what it reads and what it writes); token ids; with
    `words=True` a list of words; chat messages; the model's own arguments as a dict; or a list of these, which gives a
    list of graphs. `generate=n` lets the model write n more tokens and captures prompt and answer in one run;
    `options["predicted"]` says which row predicted which. `target` (for edges with gradients): a class or token, by number or
    name, a pair (their difference), a function of the output, or None, the predicted one. `dtype="float16"` halves the storage.

    `edges`: "attention", "gradient", "chefer" (as `mix` has them); a rule that reads the layer, "norm" (`with_layernorm`
    "none", "first" or "both"), "alti" (`distance` "l1" or "l2"), "value_zeroing", "routes", "effective", each also as
    "norm:both"; or a function from a `capture.rules.LayerRecord` to a matrix (queries, keys). See `capture.rules`.
    `residual`: a number, one per layer, one per layer and query, None; "measured" (‖x‖ / (‖x‖ + ‖attention output‖) per layer
    and token); "w_res" (Kobayashi et al. 2021); or "own", the rule's: 0.5 for attention weights, and for rules that count the residual
    connection themselves (norm, alti, routes, value_zeroing) what they count. Any other choice makes norm, alti and routes look at
    what attention writes alone, rows divided by their sums, before that residual is mixed in.
    `model` may be any PyTorch module that calls torch's attention functions, and `inputs` an example input: a tensor, a tuple of
    arguments, a dict of keyword arguments, or an image with `processor=` a function from it to a tensor. `tokens` name its
    positions, `cross` the modules (a part of their names) that attend from one sequence to another.
    Other options (`top_k`, `threshold`, `discard`, `drop_special`, `renormalise`) go to `mix`.
    """
    for name in mixing:
        if name not in MIXING:
            raise InvalidArgument(
                f"unknown option {name!r}." + suggest(name, {*MIXING, *signature(graph).parameters} - {"mixing"})
            )
    if not isinstance(dtype, str) or dtype not in STORAGE:
        raise InvalidArgument(f"unknown storage {dtype!r}." + suggest(dtype, STORAGE))
    choice = chosen(edges, residual, heads, with_layernorm=with_layernorm, distance=distance)

    def reader() -> Reader:
        return choice.reader(STORAGE[dtype] if dtype != "float32" else None)

    def finish(job: Job, found: list[Level], item: int) -> AttentionGraph:
        return as_graph(job, found, item, choice, mixing, dtype)

    setting = Setting(tokenizer, processor, target, generate, words, truncate, batch_size, tokens, cross)
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
    tokens: Any = None,
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

    setting = Setting(tokenizer, processor, target, generate, words, truncate, batch_size, tokens)
    return each(model, inputs, setting, reader, as_stack)
