"""From the levels of a run to an AttentionGraph or AttentionStack of one input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attnflow.capture._blocks import Axis, Mask, axis_of, place
from attnflow.capture._edges import OWN, Choice
from attnflow.capture._generate import rows_written
from attnflow.capture._image_text import TOWERS, family_of
from attnflow.capture._jobs import Job
from attnflow.capture._levels import Level
from attnflow.capture._patches import Patches
from attnflow.capture._pooling import with_mean
from attnflow.capture._query import default_query
from attnflow.capture._residual import add_own, before_residual, is_signed, placed_shares, said_about, signed_options
from attnflow.capture._stream import Stream
from attnflow.errors import CaptureError, InvalidArgument
from attnflow.graph import AttentionGraph
from attnflow.mixing import Recipe
from attnflow.stack import AttentionStack
from attnflow.tokens import Tokens


def as_graph(
    job: Job, found: Sequence[Level], item: int, choice: Choice, mixing: dict[str, Any], dtype: str
) -> AttentionGraph:
    """One input's levels, cropped, on one axis, with residual and whatever else `mix` does."""
    axis = _axis(job, found, item)
    residual = placed_shares(found, item, axis) if choice.measured else 0 if choice.residual == OWN else choice.residual
    signed = is_signed(choice, found, item)
    options = signed_options(choice, mixing) if signed else mixing
    # heads were mixed level by level
    made = Recipe(axis.tokens, len(found), 1, edges=choice.edges, residual=residual, **options)
    if made.discard and (axis.target is not None or axis.sink):
        raise InvalidArgument(
            "discard is a share of one square matrix, and the levels of this model are blocks of a larger one. Use top_k or threshold."
        )
    kept = ~axis.tokens.special if made.drop_special else np.ones(len(axis.tokens), dtype=np.bool_)
    count = int(kept.sum())
    stored = _storage(job, found, count, dtype)
    passive = np.zeros((len(found), count), dtype=np.bool_)
    mixed = _mixed(found, item, choice)
    for number, level in enumerate(found):
        matrix, idle = place(level, next(mixed) if level.seen else None, axis)
        add_own(matrix, level, item, axis)
        if matrix.dtype == stored.dtype != np.float16:
            made.finish(number, matrix, out=stored[number], distances=not level.cross)
        else:
            wide = matrix.astype(np.promote_types(matrix.dtype, np.float32))
            stored[number] = made.finish(number, wide, distances=not level.cross)
        passive[number] = idle[kept]
        if idle.any():
            stored[number, passive[number]] = np.eye(count, dtype=dtype)[passive[number]]
        if level.seen is not None and item == job.batch.size - 1:
            level.seen.weights = level.seen.gradients = None  # freed while the next level is written
    if isinstance(job.reader, Stream):
        job.reader.shelf.close()
    stored.flags.writeable = False
    names, kinds = [level.name for level in found], [level.kind for level in found]
    said = {**made.options, **said_about(choice, made), **_said(job, item, axis, kept)}
    graph = AttentionGraph(stored, made.kept_tokens, names, kinds, passive, said, signed=signed)
    return with_mean(graph) if isinstance(job.batch.source, Patches) and job.batch.source.pooled else graph


def _storage(job: Job, found: Sequence[Level], count: int, dtype: str) -> NDArray[Any]:
    """Where the finished levels go: the places where they lie already, if they may stay, or one new array."""
    matrices = [level.seen.weights for level in found if level.seen is not None]
    if isinstance(job.reader, Stream) and len(matrices) == len(found):
        places = job.reader.shelf.taken(matrices)
        if places is not None and places.shape == (len(found), count, count) and places.dtype == dtype:
            return places
    # Made before the levels: untouched pages cost nothing.
    return np.empty((len(found), count, count), dtype=dtype)


def as_stack(job: Job, found: Sequence[Level], item: int) -> AttentionStack:
    """One input's heads, cropped. A layer without attention is an identity in every head; so is a sink's own row."""
    axis = _axis(job, found, item)
    if axis.target is not None:
        raise CaptureError(
            f"{type(job.model).__name__} has an encoder and a decoder: their attention is no stack of square layers. Use capture.graph, "
            "which puts both on one axis."
        )
    heads = max(level.seen.weights.shape[1] for level in found if level.seen is not None)
    weights, gradients = [], []
    for level in found:
        if level.seen is None:
            eye = np.broadcast_to(
                np.eye(len(axis.tokens), dtype=np.float32), (heads, len(axis.tokens), len(axis.tokens))
            )
            weights.append(eye)
            gradients.append(np.zeros_like(eye))
            continue
        weights.append(np.stack([place(level, head, axis)[0] for head in _array(level.seen.weights[item])]))
        if level.seen.gradients is not None:
            gradients.append(
                np.stack([place(level, head, axis, passive=0)[0] for head in _array(level.seen.gradients[item])])
            )
    recorded = any(level.seen is not None and level.seen.gradients is not None for level in found)
    return AttentionStack(weights, axis.tokens, gradients if recorded else None)


def _axis(job: Job, found: Sequence[Level], item: int) -> Axis:
    """The input's positions. Where the model makes them itself (audio), the first level says how many there are."""
    seen = [(level, level.seen) for level in found if level.seen is not None]
    sink = any(one.sink for _, one in seen)
    own = [(level.side, one.queries) for level, one in seen if not one.cross]
    first = next((queries for side, queries in own if side != "decoder"), own[0][1])
    batch, name = job.batch, type(job.model).__name__
    source = batch.source.real(item, next((one.keys for level, one in seen if level.cross), first))
    source_tokens = batch.source.labels(item, int(source.sum()), "frame " if batch.source.kept is None else "")
    if batch.target is None:
        return axis_of(source, source_tokens, None, None, sink=sink, model=name)
    target = batch.target.real(item, next(one.queries for level, one in seen if level.side == "decoder"))
    return axis_of(source, source_tokens, target, batch.target.labels(item, int(target.sum())), sink=sink, model=name)


def _mixed(found: Sequence[Level], item: int, choice: Choice) -> Iterator[NDArray[Any]]:
    """Each attention call of one input as one matrix: mixed while it ran, or from all heads and their gradients now."""
    seen = [level.seen for level in found if level.seen is not None]
    for number, one in enumerate(seen):
        weights = _array(one.weights[item])
        if weights.ndim == 2:
            yield before_residual(weights, choice, cross=one.cross)
            continue
        made = Recipe(Tokens.of(None, 1), len(seen), len(weights), edges=choice.edges, heads=choice.heads)
        fused = made.fused(number, weights, None if one.gradients is None else _array(one.gradients[item]))
        yield before_residual(fused, choice, cross=one.cross)


def _array(tensor: torch.Tensor) -> NDArray[Any]:
    tensor = tensor.detach()
    wide = tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()
    array: NDArray[Any] = wide.cpu().numpy()
    return array


def _read_at(job: Job, item: int, axis: Axis) -> tuple[list[int], str]:
    """The positions that the output is read from (usually one), and what they are called."""
    batch, real = job.batch, np.flatnonzero(axis.source)
    first = batch.source.read_at
    if axis.target is None or batch.target is None:
        if first is not None:
            return [first[0]], first[1]
        rows = batch.keywords.get("input_ids")
        ids = None if rows is None or batch.source.kept is None else [int(rows[item][i]) for i in real]
        query, why = default_query(job.model, ids, job.tokenizer, causal=job.causal, count=len(real))
        return [query], why
    block = axis.target_start, int(axis.target.sum())
    if first is not None and family_of(job.model) == TOWERS:
        return [first[0], sum(block) - 1], f"{first[1]} and the last token of the text, which make the score"
    if batch.target.read_at is not None:
        return [block[0] + batch.target.read_at[0]], batch.target.read_at[1]
    query, why = default_query(job.model, None, job.tokenizer, causal=True, second=block)
    return [query], why


def _said(job: Job, item: int, axis: Axis, kept: Mask) -> dict[str, Any]:
    """What a reader of the result wants to know: which model, where its output is read, which row wrote which token."""
    batch, said = job.batch, {"model": getattr(job.model, "name_or_path", "") or type(job.model).__name__}
    queries, why = _read_at(job, item, axis)
    # Where special tokens were dropped, positions move up; one that was dropped itself leaves the last one before it.
    moved = np.maximum(np.cumsum(kept) - 1, 0)
    said |= {
        "query": int(moved[queries[0]]),
        "query_is": why if kept[queries].all() else f"the last token before {why}, which was dropped",
    }
    if len(queries) > 1:
        said["queries"] = moved[queries].tolist()
    second = None if axis.target is None else axis.target_start
    if batch.samples and batch.samples[item].predicted:
        written = rows_written(batch.samples[item], job.tokenizer, second or 0)
        said["predicted"] = [{**one, "row": int(moved[one["row"]])} for one in written if kept[one["row"]]]
    return said
