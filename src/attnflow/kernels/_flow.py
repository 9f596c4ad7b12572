"""Maximum flow through a stack of dense layers: bit-parallel Dinic with aggregated pushes.

All kernels live in this one file, since numba's disk cache does not notice an edit to a callee in another file. Plain
arrays in, plain arrays out; nothing is checked and nothing raises.

The graph of one pair. A query at the top of `depth + 2` levels has the *supplies* a[u], its row of the top level; an
input has the *rooms* b[u], its column of level 0; between them lie `depth` dense levels. Position i of layer p sits
below dense level p and above dense level p − 1, so supplies enter layer `depth` and rooms are at layer 0. The end levels
are vectors and cost nothing, and only the support of the flow is ever written: a maximum flow uses a few edges per
position, whatever the number of edges there are.

`forth` and `back` hold one bit per residual edge: forth[p, i] the positions j that i can still send to, back[p, j] the
positions i that flow into j and could take it back. `forth_by_key` and `back_by_query` are the same by the other end.
Only a search after the first looks at those three, so they are brought up to date only when one is needed: at six
levels of real attention 82 (16 tokens) to 100 (256 tokens) of 100 pairs end after the first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core.caching import NullCache
from numba.extending import intrinsic

ONE = np.int64(1)
Kernel = TypeVar("Kernel", bound=Callable[..., Any])

# How many touched edges are remembered per position and level before undoing falls back to clearing everything.
# Chosen with room to spare, not measured.
REMEMBERED = 48


def _compiled(kernel: Kernel) -> Kernel:
    """An entry point: compiled at its first call and kept on disk.

    Beside the code, or in the user's cache folder where the install is read-only; numba refuses if neither can be
    written, and then every process compiles for itself.
    """
    try:
        entry = njit(cache=True, nogil=True)(kernel)
    except RuntimeError:
        entry = njit(nogil=True)(kernel)
    entries.append(entry)
    return cast(Kernel, entry)


entries: list[Any] = []  # all of them


def empty_the_cache() -> None:
    """Forget what is on disk, so that it is compiled and kept anew."""
    for kernel in entries:
        with contextlib.suppress(OSError):
            kernel._cache.flush()


def do_without_cache() -> None:
    """Neither read the disk nor write to it: compile for this process alone."""
    for kernel in entries:
        kernel._cache = NullCache()


# Parts count no references to the arrays in g: their caller holds them. Counting made the whole 4 to 8 times slower.
# They need no way in from Python either.
_PART: dict[str, Any] = {"nogil": True, "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _part(kernel: Kernel) -> Kernel:
    """A function that other kernels call."""
    return cast(Kernel, njit(**_PART)(kernel))


def _inlined(kernel: Kernel) -> Kernel:
    """One that is called so often that the call itself would cost: calls made the whole 2 to 8 times slower."""
    return cast(Kernel, njit(forceinline=True, **_PART)(kernel))


class Net(NamedTuple):
    """Everything that a search reads and writes; one for each thread. Sets are words of 64 bits."""

    n: Any
    words: Any  # of a set of positions
    depth: Any  # number of dense levels
    layer: Any  # words of the sets of all layers
    small: Any  # what counts as nothing
    caps: Any  # of dense levels [p, i, j], flat
    flows: Any
    own_caps: Any  # of the edges from a position to itself [i, p], together in memory since most flow takes them
    own_flows: Any
    own_touched: Any  # set of positions
    forth: Any
    forth_by_key: Any
    back: Any
    back_by_query: Any
    supplies: Any
    supplies_set: Any
    rooms: Any
    rooms_set: Any
    full: Any  # the set of all positions
    near: Any  # [distance, p]: sets
    reached: Any  # [p]: sets
    log: Any  # edges that carry or carried flow, as (p · n + i, j): divisions would cost as much as the rest of an undo
    logged: Any  # how many
    places: Any  # the stack of the depth-first search: layer, position, whether new
    amounts: Any  # asked and sent


def _count_trailing_zeros(typing_context: Any, word: Any) -> Any:
    """The number of the lowest set bit of a word that is not zero (one instruction)."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), emit


_lowest: Any = intrinsic(_count_trailing_zeros)


@_inlined
def _put(bits: Any, base: Any, i: Any, on: Any) -> None:
    """Bit i of the set that starts at word `base`."""
    if on:
        bits[base + (i >> 6)] |= ONE << (i & 63)
    else:
        bits[base + (i >> 6)] &= ~(ONE << (i & 63))


@_inlined
def _missing(g: Any, base: Any) -> Any:
    """Not zero if a layer (from word `base`) has a position that is not reached yet."""
    lack = np.int64(0)
    for w in range(g.words):
        lack |= g.full[w] & ~g.reached[base + w]
    return lack


@_inlined
def _mark(g: Any, p: Any, i: Any, j: Any, cap: Any, flow: Any) -> None:
    """All four bits of an edge, from its capacity and flow."""
    _put(g.forth, (p * g.n + i) * g.words, j, cap - flow > g.small)
    _put(g.forth_by_key, (p * g.n + j) * g.words, i, cap - flow > g.small)
    _put(g.back, (p * g.n + j) * g.words, i, flow > g.small)
    _put(g.back_by_query, (p * g.n + i) * g.words, j, flow > g.small)


@_part
def _mark_touched(g: Any) -> None:
    """Bring all bits of the touched edges up to date; of all edges, if too many were touched to remember."""
    if g.logged[0] > len(g.log):
        for e in range(g.depth * g.n * g.n):
            p, i, j = e // (g.n * g.n), e // g.n % g.n, e % g.n
            if i != j:
                _mark(g, p, i, j, g.caps[e], g.flows[e])
    else:
        for k in range(g.logged[0]):
            row, j = g.log[k, 0], g.log[k, 1]
            e, p = row * g.n + j, row // g.n
            _mark(g, p, row - p * g.n, j, g.caps[e], g.flows[e])
    for w in range(g.words):
        left = g.own_touched[w]
        while left != 0:
            i = w * 64 + _lowest(left)
            left &= left - 1
            for p in range(g.depth):
                _mark(g, p, i, i, g.own_caps[i * g.depth + p], g.own_flows[i * g.depth + p])


@_part
def _undo(g: Any, marked: Any) -> None:
    """Back to the empty flow, at the price of what was touched."""
    if g.logged[0] > len(g.log):
        for e in range(len(g.flows)):
            g.flows[e] = 0.0
        marked = True
    else:
        for k in range(g.logged[0]):
            g.flows[g.log[k, 0] * g.n + g.log[k, 1]] = 0.0
    for w in range(g.words):
        left = g.own_touched[w]
        while left != 0:
            i = w * 64 + _lowest(left)
            left &= left - 1
            for p in range(g.depth):
                g.own_flows[i * g.depth + p] = 0.0
                _put(g.forth, (p * g.n + i) * g.words, i, g.own_caps[i * g.depth + p] > g.small)
    if marked:
        _mark_touched(g)
    else:
        for k in range(g.logged[0]):
            _put(g.forth, g.log[k, 0] * g.words, g.log[k, 1], True)
    for w in range(g.words):
        g.own_touched[w] = 0


@_inlined
def _first_distances(g: Any) -> Any:
    """Without flow nothing can be taken back, so layer p is p + 1 steps from the input: no search needed.

    A position from which the input cannot be reached finds that out when it is tried, and is struck off.
    """
    for k in range(g.layer, (g.depth + 2) * g.layer):
        g.near[k] = 0
    for p in range(g.depth + 1):
        for w in range(g.words):
            g.near[(p + 1) * g.layer + p * g.words + w] = g.full[w] if p else g.rooms_set[w]
            g.reached[p * g.words + w] = g.full[w] if p else g.rooms_set[w]
    return g.depth + 1


@_part
def _spread(g: Any, edges: Any, base: Any, frontier: Any, target: Any, row: Any) -> Any:
    """Add to `target` all positions with an edge to a position of `frontier` that are not reached yet."""
    new = np.int64(0)
    for w in range(g.words):
        left = g.near[frontier + w]
        while left != 0:
            # In a dense graph the first position mostly reaches all of the next layer.
            if _missing(g, row) == 0:
                return new
            edge = base + (w * 64 + _lowest(left)) * g.words
            left &= left - 1
            for v in range(g.words):
                found = edges[edge + v] & ~g.reached[row + v]
                g.near[target + v] |= found
                g.reached[row + v] |= found
                new |= found
    return new


@_part
def _distances(g: Any) -> Any:
    """Breadth-first from the input upwards: near[d] holds the positions d steps from it, d from 1; returns the last d.

    It goes on until every supply left is reached, not only the nearest: supplies that are further away are pushed in the
    same phase, which saves phases and harms nothing, as every push goes from a distance to the one below.
    """
    for k in range(g.layer):
        g.reached[k] = g.rooms_set[k] if k < g.words else 0
        g.near[g.layer + k] = g.reached[k]
    distance = 1
    while True:
        waiting = np.int64(0)
        for w in range(g.words):
            waiting |= g.supplies_set[w] & ~g.reached[g.depth * g.words + w]
        if waiting == 0:
            return distance
        here, there = distance * g.layer, (distance + 1) * g.layer
        for k in range(g.layer):
            g.near[there + k] = 0
        new = np.int64(0)
        for p in range(g.depth + 1):
            at = here + p * g.words
            if p < g.depth:  # from above, along an edge with capacity left
                row = (p + 1) * g.words
                new |= _spread(g, g.forth_by_key, p * g.n * g.words, at, there + row, row)
            if p > 0:  # from below, by taking back flow that came from here
                row = (p - 1) * g.words
                new |= _spread(g, g.back_by_query, (p - 1) * g.n * g.words, at, there + row, row)
        if new == 0:
            return distance
        distance += 1


@_inlined
def _take(g: Any, i: Any, amount: Any) -> None:
    """Fill a room."""
    g.rooms[i] -= amount
    if g.rooms[i] <= g.small:
        _put(g.rooms_set, 0, i, False)
        _put(g.near, g.layer, i, False)


@_inlined
def _down_own_column(g: Any, p: Any, i: Any, amount: Any) -> None:
    """Push an amount that fits from layer p down the position's own column to layer 0."""
    for q in range(p):
        flow = g.own_flows[i * g.depth + q] + amount
        g.own_flows[i * g.depth + q] = flow
        if g.own_caps[i * g.depth + q] - flow <= g.small:
            _put(g.forth, (q * g.n + i) * g.words, i, False)
    if p > 0:
        g.own_touched[i >> 6] |= ONE << (i & 63)


@_inlined
def _column_room(g: Any, p: Any, i: Any, most: Any) -> Any:
    """How much of `most` fits down the position's own column from layer p."""
    most = min(most, g.rooms[i])
    for q in range(p):
        most = min(most, g.own_caps[i * g.depth + q] - g.own_flows[i * g.depth + q])
    return most


@_inlined
def _add_flow(g: Any, row: Any, j: Any, amount: Any) -> None:
    """Flow on an edge that is not its position's own, `row` being p · n + i; a first touch is logged."""
    e = row * g.n + j
    if g.flows[e] == 0.0:
        if g.logged[0] < len(g.log):
            g.log[g.logged[0], 0] = row
            g.log[g.logged[0], 1] = j
        g.logged[0] = min(g.logged[0], len(g.log)) + 1  # one more than fits: too many to remember
    g.flows[e] += amount


@_inlined
def _first_near(g: Any, edges: Any, at: Any, near: Any) -> Any:
    """The first position that an edge leads to and that is near enough (both sets from a word on), or -1."""
    for w in range(g.words):
        both = edges[at + w] & g.near[near + w]
        if both != 0:
            return w * 64 + _lowest(both)
    return np.int64(-1)


@_inlined
def _next_below(g: Any, p: Any, i: Any, query: Any, layer_below: Any) -> Any:
    """Where to go from position i of layer p, one layer down; -1 if nowhere. The order decides the speed.

    The own column comes first: the residual edge holds at least half. The query leaves its column first, or all it has
    would come out at the bottom of it. Then a column that still has room at its foot; then any.
    """
    base = ((p - 1) * g.n + i) * g.words
    w, bit = i >> 6, ONE << (i & 63)
    if i != query and (g.forth[base + w] & g.near[layer_below + w] & bit) != 0:
        return i
    for w in range(g.words):
        both = g.forth[base + w] & g.near[layer_below + w] & g.rooms_set[w]
        if both != 0:
            return w * 64 + _lowest(both)
    return _first_near(g, g.forth, base, layer_below)


@_inlined
def _fill_rooms(g: Any, i: Any, left: Any) -> Any:
    """From layer 1 straight into all the rooms that i can reach, without a visit each. Returns what is left."""
    for w in range(g.words):
        open_rooms = g.forth[i * g.words + w] & g.near[g.layer + w]
        while open_rooms != 0:
            j = w * 64 + _lowest(open_rooms)
            open_rooms &= open_rooms - 1
            own = i == j
            amount = (
                g.own_caps[i * g.depth] - g.own_flows[i * g.depth]
                if own
                else g.caps[i * g.n + j] - g.flows[i * g.n + j]
            )
            most = min(left, g.rooms[j])
            if amount - most <= g.small:
                _put(g.forth, i * g.words, j, False)
            amount = min(amount, most)
            if own:
                g.own_flows[i * g.depth] += amount
                g.own_touched[i >> 6] |= ONE << (i & 63)
            else:
                _add_flow(g, i, j, amount)
            _take(g, j, amount)
            left -= amount
            if left <= g.small:
                return 0.0
    return left


@_inlined
def _express(g: Any, p: Any, i: Any, query: Any, key: Any, fresh: Any, left: Any, below: Any) -> Any:
    """What most flow does, without a visit for each step: over into the input's column and down it, or down one's own.

    Only edges into the input's column are scarce, so they are filled before anything else. Returns what is left.
    """
    if fresh and i != key and p > 0:
        w, bit = key >> 6, ONE << (key & 63)
        if (g.forth[((p - 1) * g.n + i) * g.words + w] & g.near[below + (p - 1) * g.words + w] & bit) != 0:
            e = ((p - 1) * g.n + i) * g.n + key
            spare = g.caps[e] - g.flows[e]
            amount = _column_room(g, p - 1, key, min(left, spare))
            if amount > g.small:
                _add_flow(g, (p - 1) * g.n + i, key, amount)
                if spare - amount <= g.small:
                    _put(g.forth, ((p - 1) * g.n + i) * g.words, key, False)
                _down_own_column(g, p - 1, key, amount)
                _take(g, key, amount)
                left -= amount
    if left > g.small and not (fresh and i == query) and (g.rooms_set[i >> 6] >> (i & 63)) & 1 != 0:
        amount = _column_room(g, p, i, left)
        if amount > g.small:
            _down_own_column(g, p, i, amount)
            _take(g, i, amount)
            left -= amount
    return left


@_inlined
def _settle(g: Any, p: Any, i: Any, q: Any, j: Any, amount: Any) -> None:
    """Write what went from position i of layer p to position j of layer q: new flow if down, flow taken back if up.

    Within a phase only the bits that this phase may look at again are cleared; the rest waits for the next one.
    """
    if q < p:
        e = (q * g.n + i) * g.n + j
        if i == j:
            g.own_flows[i * g.depth + q] += amount
            g.own_touched[i >> 6] |= ONE << (i & 63)
            spare = g.own_caps[i * g.depth + q] - g.own_flows[i * g.depth + q]
        else:
            _add_flow(g, q * g.n + i, j, amount)
            spare = g.caps[e] - g.flows[e]
        if spare <= g.small:
            _put(g.forth, (q * g.n + i) * g.words, j, False)
    else:
        e = (p * g.n + j) * g.n + i
        if i == j:
            g.own_flows[i * g.depth + p] = max(g.own_flows[i * g.depth + p] - amount, 0.0)
            flow = g.own_flows[i * g.depth + p]
        else:
            g.flows[e] = max(g.flows[e] - amount, 0.0)
            flow = g.flows[e]
        if flow <= g.small:
            _put(g.back, (p * g.n + i) * g.words, j, False)


@_inlined
def _push(g: Any, query: Any, key: Any, start: Any, distance: Any, supply: Any) -> Any:
    """Depth-first from a position of the top layer, as much of its supply as can go. Returns what went.

    A stack entry holds an amount asked and an amount sent, so an edge is written once per visit and not once per path.
    Every step goes to a distance one smaller; who cannot pass on all that was asked is struck off for this phase.
    """
    k = 0
    g.places[0, 0], g.places[0, 1], g.places[0, 2] = g.depth, start, 1
    g.amounts[0, 0], g.amounts[0, 1] = supply, 0.0
    while True:
        p, i, fresh = g.places[k, 0], g.places[k, 1], g.places[k, 2] == 1
        far = distance - k
        below = (far - 1) * g.layer
        left = g.amounts[k, 0] - g.amounts[k, 1]
        if far == p + 1:  # as near as the layers allow: straight down
            left = _express(g, p, i, query, key, fresh, left, below)
            if left > g.small and p == 1:
                left = _fill_rooms(g, i, left)
            g.amounts[k, 1] = g.amounts[k, 0] - left
        g.places[k, 2] = 0
        if left > g.small:
            q, j, most = p - 1, np.int64(-1), 0.0
            if p > 0 and far > 2:
                j = _next_below(g, p, i, query, below + q * g.words)
                if j == i:
                    most = g.own_caps[i * g.depth + q] - g.own_flows[i * g.depth + q]
                elif j >= 0:
                    most = g.caps[(q * g.n + i) * g.n + j] - g.flows[(q * g.n + i) * g.n + j]
            if j < 0 and p < g.depth:
                q = p + 1
                j = _first_near(g, g.back, (p * g.n + i) * g.words, below + q * g.words)
                if j == i:
                    most = g.own_flows[i * g.depth + p]
                elif j >= 0:
                    most = g.flows[(p * g.n + j) * g.n + i]
            if j >= 0:
                k += 1
                g.places[k, 0], g.places[k, 1], g.places[k, 2] = q, j, 1
                g.amounts[k, 0], g.amounts[k, 1] = min(left, most), 0.0
                continue
            _put(g.near, far * g.layer + p * g.words, i, False)
        while True:  # back to the last place that still has something to send
            sent = g.amounts[k, 1]
            k -= 1
            if k < 0:
                return sent
            if sent > 0.0:
                _settle(g, g.places[k, 0], g.places[k, 1], g.places[k + 1, 0], g.places[k + 1, 1], sent)
                g.amounts[k, 1] += sent
            if g.amounts[k, 0] - g.amounts[k, 1] > g.small:
                break


@_part
def _solve(g: Any, query: Any, key: Any, goal: Any) -> Any:
    """Dinic's phases, until nothing more can be sent or `goal`, a proven upper bound, is reached.

    Returns the value and whether all bits were brought up to date.
    """
    value, marked, phase = 0.0, False, 0
    g.logged[0] = 0
    while True:
        if phase == 0:
            last = _first_distances(g)
        else:
            _mark_touched(g)
            marked = True
            last = _distances(g)
        progress = False
        for distance in range(2, last + 1):
            for w in range(g.words):
                ready = g.supplies_set[w] & g.near[distance * g.layer + g.depth * g.words + w]
                while ready != 0:
                    i = w * 64 + _lowest(ready)
                    ready &= ready - 1
                    sent = _push(g, query, key, i, distance, g.supplies[i])
                    if sent > 0.0:
                        progress = True
                        value += sent
                        g.supplies[i] -= sent
                        _put(g.supplies_set, 0, i, g.supplies[i] > g.small)
                    if value >= goal:
                        return value, marked
        if not progress and phase > 0:
            return value, marked
        phase += 1


@_part
def _start(g: Any, supply: Any, room: Any) -> None:
    """The vectors of a pair and their sets."""
    for i in range(g.n):
        g.supplies[i] = supply[i]
        g.rooms[i] = room[i]
        _put(g.supplies_set, 0, i, supply[i] > g.small)
        _put(g.rooms_set, 0, i, room[i] > g.small)


@_part
def _fill_in(g: Any) -> None:
    """What never changes: the sets of edges, the capacities of own columns, the set of everybody."""
    for p in range(g.depth):
        for i in range(g.n):
            g.own_caps[i * g.depth + p] = g.caps[(p * g.n + i) * g.n + i]
            for j in range(g.n):
                if g.caps[(p * g.n + i) * g.n + j] > g.small:
                    _put(g.forth, (p * g.n + i) * g.words, j, True)
                    _put(g.forth_by_key, (p * g.n + j) * g.words, i, True)
    for i in range(g.n):
        _put(g.full, 0, i, True)


@_compiled
def search_pairs(
    caps: Any,
    depth: Any,
    top: Any,
    foot: Any,
    queries: Any,
    inputs: Any,
    bounds: Any,
    small: Any,
    slack: Any,
    scores: Any,
    first: Any,
    step: Any,
    done: Any,
    cancelled: Any,
    flows: Any,
    left: Any,
) -> None:
    """Maximum flows of the pairs first, first + step, … into `scores`; `top[q]` are supplies, `foot[i]` rooms.

    `bounds` are proven upper bounds: a flow within `slack` of its bound needs no search to show that it is maximal.
    `done[0]` counts the pairs and `cancelled[0]` is looked at between them, both shared with the waiting thread.
    `flows` must come empty. With only one pair its flow stays there and what it did not use of its ends in `left`.
    """
    n = top.shape[1]
    words = (n + 63) >> 6
    layer, size = (depth + 1) * words, depth * n * words
    nodes = (depth + 1) * n + 2  # no shortest way is longer
    # Large parts stay untouched, so they cost address space and not memory.
    g = Net(n, words, depth, layer, small, caps, flows, np.zeros(n * depth), np.zeros(n * depth), np.zeros(words, np.int64),
            np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64),
            left[0], np.zeros(words, np.int64), left[1], np.zeros(words, np.int64), np.zeros(words, np.int64),
            np.empty((nodes + 1) * layer, np.int64), np.zeros(layer, np.int64),
            np.empty((min(depth * n * n, REMEMBERED * (depth + 1) * n), 2), np.int64), np.zeros(1, np.int64),
            np.empty((nodes, 3), np.int64), np.empty((nodes, 2)))  # fmt: skip
    _fill_in(g)
    for k in range(first, len(queries), step):
        if cancelled[0] != 0:
            return
        _start(g, top[queries[k]], foot[inputs[k]])
        scores[k], marked = _solve(g, queries[k], inputs[k], bounds[k] - slack)
        done[0] += 1
        if len(queries) > 1:
            _undo(g, marked)
    for i in range(n):
        for p in range(depth):
            flows[(p * n + i) * n + i] = g.own_flows[i * depth + p]


@_compiled
def min_products(
    left: Any, right: Any, left_joint: Any, right_joint: Any, first: Any, last: Any, out: Any, out_joint: Any
) -> None:
    """Rows first to last of two products with min in place of times: out[s, t] = Σ_u min(left[s, u], right[u, t]).

    Two at a time, since every bound needs two that share an operand.
    """
    for s in range(first, last):
        out[s] = 0.0
        out_joint[s] = 0.0
        for u in range(left.shape[1]):
            a, b = left[s, u], left_joint[s, u]
            if b > 0.0 or a > 0.0:
                for t in range(right.shape[1]):
                    out[s, t] += min(a, right[u, t])
                    out_joint[s, t] += min(b, right_joint[u, t])


@_compiled
def widest_paths(starts: Any, flows: Any, depth: Any, query: Any, key: Any, small: Any, paths: Any, widths: Any) -> Any:
    """Split a flow into paths, each the widest that is left. Edges e go from starts[e, 1] of layer starts[e, 0] to starts[e, 2]
    one layer below, sorted from the top. Writes positions into `paths` and amounts into `widths`; returns how many."""
    n = 1 + max(starts[:, 1].max(), starts[:, 2].max())
    width = np.empty((depth + 2, n))
    via = np.empty((depth + 2, n), np.int64)
    found = 0
    while found < len(widths):
        width[:] = 0.0
        width[depth + 1, query] = np.inf
        for e in range(len(flows)):
            p, i, j = starts[e, 0], starts[e, 1], starts[e, 2]
            most = min(width[p, i], flows[e])
            if most > width[p - 1, j]:
                width[p - 1, j] = most
                via[p - 1, j] = e
        amount = width[0, key]
        if amount <= small:
            break
        paths[found, depth + 1] = key
        at = key
        for p in range(depth + 1):
            e = via[p, at]
            flows[e] -= amount
            at = starts[e, 1]
            paths[found, depth - p] = at
        widths[found] = amount
        found += 1
    return found
