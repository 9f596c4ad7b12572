"""One sentence: its attributions by every method, and the importances they are compared with.

Everything is read at the class token, where the model's answer is read. Levels are counted from the first layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from transformers.utils import logging

import attnflow as af
from attnflow import capture, evaluate
from experiments.verb_number.examples import Example

from .store import Record, digest, in_chunks

METHODS = ("raw", "rollout", "flow")
VERSION = 2  # of what a record holds
BATCH = 64
WHOLE_FLOWS = 200  # sentences for which the flow of every query is searched, for its diagonal

Floats = NDArray[np.float64]


def measured(folder: Path, examples: Sequence[Example], runs: Path, name: str, *, workers: int = 1) -> list[Record]:
    """A record for each example by the model in `folder`; those of an earlier run with the same weights are kept."""
    key = digest(VERSION, folder / "model.safetensors", [(example.words, example.plural) for example in examples])
    return in_chunks(
        examples, partial(_measure, folder), runs / f"{name}-{key}", "verb number",
        workers=workers, prepare=partial(_prepare, workers),
    )  # fmt: skip


def _prepare(workers: int) -> None:
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    if workers > 1:
        torch.set_num_threads(1)


@cache
def verb_number(folder: Path) -> tuple[Any, Any]:
    """The model in `folder` and its tokenizer."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return AutoModelForSequenceClassification.from_pretrained(folder).float().eval(), tokenizer


def _measure(folder: Path, examples: Sequence[Example], start: int) -> list[Record]:
    model, tokenizer = verb_number(folder)
    texts = [" ".join(example.words) for example in examples]
    labels = {str(label).lower(): number for label, number in model.config.label2id.items()}
    targets = [labels["plural" if example.plural else "singular"] for example in examples]
    asked: dict[str, Any] = {"tokenizer": tokenizer, "target": targets, "truncate": True, "batch_size": BATCH}
    stacks = capture.stack(model, texts, tokenizer, truncate=True, batch_size=BATCH)
    blanks = capture.blank_out(model, texts, **asked)
    sums = capture.input_gradient(model, texts, **asked, measure="sum")
    norms = capture.input_gradient(model, texts, **asked, measure="l2")
    class_drops = without_class_token(model, tokenizer, texts, targets, [blank.value for blank in blanks])
    records = []
    for number, stack in enumerate(stacks):
        record = attention(stack, whole_flow=start < WHOLE_FLOWS)
        record["labels"], record["special"] = np.array(stack.tokens.labels), stack.tokens.special
        record["blank"] = blanks[number].signed
        record["gradient"], record["gradient_l2"] = sums[number].signed, norms[number].signed
        record["class_drop"] = np.array(class_drops[number])
        record["probability"] = np.array(blanks[number].value)
        record["attractors"] = np.array(-1 if examples[number].attractors is None else examples[number].attractors)
        records.append(record)
    return records


def attention(stack: af.AttentionStack, *, whole_flow: bool) -> Record:
    """Rows of the class token by method [level, input], and each layer's shape: entropies, diagonals, saturation."""
    weights, graph = af.mix(stack, residual=None), af.mix(stack)
    raw, rollout = af.raw(weights), af.rollout(graph)
    flow = af.flow(graph, queries=0, threads=1)
    assert flow.saturation is not None
    record = {
        "raw": raw.scores[:, 0],
        "rollout": rollout.scores[:, 0],
        "flow": flow.scores[:, 0],
        "entropy_all": _entropy_of_all(raw),
        "diagonal_raw": evaluate.diagonal_mass([raw])[0],
        "diagonal_rollout": evaluate.diagonal_mass([rollout])[0],
        "saturation": np.array(flow.saturation.either),
        "saturation_query": np.array(flow.saturation.query),
    }
    if whole_flow:
        record["diagonal_flow"] = evaluate.diagonal_mass([af.flow(graph, threads=1)])[0]
    return record


def _entropy_of_all(raw: af.Attribution) -> Floats:
    """The mean over all queries of a level's normalised entropy."""
    rows = np.stack([evaluate.entropy([raw], query=query)[0] for query in range(len(raw.tokens))])
    return np.asarray(rows.mean(axis=0))


@torch.inference_mode()
def without_class_token(
    model: Any, tokenizer: Any, texts: Sequence[str], targets: Sequence[int], before: Sequence[float]
) -> list[float]:
    """By how much the target's probability falls when the class token itself is replaced by UNK.

    The reference importances leave special tokens alone. Whether the class token is one of the inputs is a choice that
    the paper does not state, so it is measured both ways.
    """
    drops: list[float] = []
    for start in range(0, len(texts), BATCH):
        inputs = tokenizer(list(texts[start : start + BATCH]), padding=True, truncation=True, return_tensors="pt")
        inputs["input_ids"][:, 0] = tokenizer.unk_token_id
        chances = model(**inputs).logits.float().softmax(-1)
        for row, target in zip(chances, targets[start : start + BATCH], strict=True):
            drops.append(before[len(drops)] - float(row[target]))
    return drops


def attributions(records: Sequence[Record], levels: Sequence[int] | None = None) -> dict[str, list[af.Attribution]]:
    """The stored rows as what `evaluate` reads."""
    found: dict[str, list[af.Attribution]] = {}
    for method in METHODS:
        found[method] = []
        for record in records:
            scores = record[method][:, None]
            numbers = tuple(levels or range(len(scores)))
            tokens = af.Tokens(record["labels"].tolist(), record["special"])
            names = [f"L{number + 1}" for number in numbers]
            found[method].append(
                af.Attribution(scores, tokens, method, numbers, (0,), tuple(range(len(tokens))), tuple(names))
            )
    return found


def from_one(attribution: af.Attribution) -> af.Attribution:
    """The same with its levels named as the paper counts them: L1 is the first."""
    return replace(attribution, level_names=tuple(f"L{level + 1}" for level in attribution.levels))
