"""softmax attention in blocks of queries: the layer's output, and every weight seen once on the way.

The weights of all heads for all queries would be heads · n² numbers. A block of queries has heads · block · n, which fits
the processor's cache; its weights give both the output of these queries and their row of the mixed matrix, so the
work of attention is done once, not once for the output and again for the weights. (sdpa hands out no weights; on the CPU
it also takes about as long as this does: `benchmarks/capture.py`.)
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from attnflow.capture._call import Call

# Takes weights (batch, heads, block, keys [+ 1 sink]) of the queries from `start` to `stop`. The tensor is used again
# for the next block: whoever wants to keep it copies it.
Take = Callable[[int, int, torch.Tensor], None]

# Blocks of this size stay in the cache. Measured on two cores at 512 to 4096 tokens; half and double are as fast.
_BLOCK_BYTES = 6 << 20
_SMALLEST_BLOCK = 32  # matrix products over fewer rows are several times slower


def attend(call: Call, take: Take | None = None) -> torch.Tensor:
    """The output (batch, queries, heads, width) of the call, `take` having seen all of its weights."""
    if own := call.own_function:
        output, weights = own(call.module, call.query, call.key, call.value, call.additive_mask(), **call.options)
        if take is not None:
            take(0, call.query.shape[2], weights)
        return output
    if take is None and call.softcap is None and call.sinks is None and call.bias is None:
        return _sdpa(call)
    return _by_blocks(call, take)


def weigh(call: Call) -> tuple[torch.Tensor, torch.Tensor]:
    """Output and all weights at once, (batch, heads, queries, keys [+ 1 sink]), for gradients to flow through."""
    if own := call.own_function:
        return own(call.module, call.query, call.key, call.value, call.additive_mask(), **call.options)
    key, value = repeated(call.key, call.query), repeated(call.value, call.query)
    scores = torch.matmul(call.query * call.scale, key.transpose(-1, -2))
    if call.softcap is not None:
        scores = torch.tanh(scores / call.softcap) * call.softcap
    _bias(scores, call, 0, call.query.shape[2])
    if call.sinks is not None:
        scores = torch.cat([scores, call.sinks.view(1, -1, 1, 1).expand(*scores.shape[:3], 1).to(scores.dtype)], -1)
    weights = torch.softmax(scores, -1, dtype=_wide(scores.dtype))
    used = weights[..., : key.shape[2]] if call.sinks is not None else weights
    return torch.matmul(used.to(value.dtype), value).transpose(1, 2).contiguous(), weights


def _by_blocks(call: Call, take: Take | None) -> torch.Tensor:
    batch, heads, queries, width = call.query.shape
    keys, sink = call.key.shape[2], call.sinks is not None
    # One input at a time is only looked at from another side; nothing is copied.
    query = call.query.reshape(batch * heads, queries, width)
    key = repeated(call.key, call.query).reshape(batch * heads, keys, width).transpose(1, 2)
    value = repeated(call.value, call.query).reshape(batch * heads, keys, -1)
    output = value.new_empty(batch, queries, heads, value.shape[-1])
    block = max(_SMALLEST_BLOCK, _BLOCK_BYTES // (batch * heads * keys * query.element_size()))
    block = min(block, queries)
    buffer = query.new_empty(batch * heads * block * (keys + sink))
    for start in range(0, queries, block):
        stop = min(start + block, queries)
        # A causal block sees no key after its last query; the weights there are zero without being computed.
        seen = min(stop, keys) if call.causal else keys
        scores = buffer[: batch * heads * (stop - start) * (seen + sink)].view(batch * heads, stop - start, seen + sink)
        _scores(scores[..., :seen], query[:, start:stop], key[..., :seen], call.scale)
        by_head = scores.view(batch, heads, stop - start, seen + sink)
        if call.softcap is not None:
            by_head[..., :seen].div_(call.softcap).tanh_().mul_(call.softcap)
        _bias(by_head[..., :seen], call, start, stop)
        if call.sinks is not None:
            by_head[..., seen] = call.sinks.view(1, -1, 1)
        weights = _softmax(scores)
        used = weights[..., :seen].to(value.dtype)
        output[:, start:stop] = torch.bmm(used, value[:, :seen]).view(batch, heads, stop - start, -1).transpose(1, 2)
        if take is not None:
            take(start, stop, weights.view(by_head.shape))
    return output


def _sdpa(call: Call) -> torch.Tensor:
    key, value = repeated(call.key, call.query), repeated(call.value, call.query)
    causal = call.causal
    output = torch.nn.functional.scaled_dot_product_attention(
        call.query, key, value, attn_mask=call.mask, scale=call.scale, is_causal=causal
    )
    return output.transpose(1, 2).contiguous()


def _scores(out: torch.Tensor, query: torch.Tensor, key: torch.Tensor, scale: float) -> None:
    if out.is_contiguous():
        torch.baddbmm(out, query, key, beta=0, alpha=scale, out=out)  # β = 0: what was in `out` is not read
    else:
        out.copy_(torch.bmm(query, key).mul_(scale))


def _softmax(scores: torch.Tensor) -> torch.Tensor:
    """Over the last axis; half precision is widened, as models do themselves. On the CPU each row is replaced in place."""
    if scores.dtype != _wide(scores.dtype) or scores.device.type != "cpu":
        return torch.softmax(scores, -1, dtype=_wide(scores.dtype))
    return torch.softmax(scores, -1, out=scores)


def _bias(scores: torch.Tensor, call: Call, start: int, stop: int) -> None:
    """Add bias and mask to the scores of the queries from `start` to `stop`."""
    seen = scores.shape[-1]
    if call.bias is not None:
        scores.add_(_rows(call.bias, start, stop, seen))
    # Not -inf: a row that may attend to nothing (a padded position) would be NaN, and spread.
    lowest = torch.finfo(scores.dtype).min
    if call.causal:
        future = torch.ones(stop - start, seen, dtype=torch.bool, device=scores.device).triu_(start + 1)
        scores.masked_fill_(future, lowest)
    elif call.mask is not None:
        rows = _rows(call.mask, start, stop, seen)
        if rows.dtype == torch.bool:
            scores.masked_fill_(~rows, lowest)
        else:
            scores.add_(rows)


def _rows(matrix: torch.Tensor, start: int, stop: int, seen: int) -> torch.Tensor:
    """These queries' rows of a mask or bias (batch or 1, heads or 1, queries or 1, keys or 1)."""
    rows = matrix[..., start:stop, :] if matrix.shape[-2] > 1 else matrix
    return rows[..., :seen] if matrix.shape[-1] > 1 else rows


def repeated(key: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """Grouped queries: each key head serves several query heads."""
    groups = query.shape[1] // key.shape[1]
    return key if groups == 1 else key.repeat_interleave(groups, dim=1)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype in (torch.float32, torch.float64) else torch.float32
