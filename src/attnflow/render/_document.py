"""The document: everything that the viewer reads, as JSON. One text holds views (methods) and flows (pairs)."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attnflow import __version__
from attnflow.errors import InvalidArgument, suggest
from attnflow.graph import AttentionGraph
from attnflow.render._colour import KINDS, hexes
from attnflow.render._describe import difference as difference_of
from attnflow.render._describe import labels_of, pictured
from attnflow.render._flow_view import flow_view, main_flows
from attnflow.render._quantise import cube, size_of, steps_for
from attnflow.render._shown import Shown, as_view, listed
from attnflow.render._view import SPECIAL, FlowView, View, counted, limit
from attnflow.tokens import PatchGrid

FORMAT_VERSION = 1
MOST_VALUES = 12_000_000  # in one document; what is more drops queries
MOST_LETTERS = 7_000_000  # of values; what is more is divided into fewer steps
SCALES = (None, "shared", "separate")
THEMES = ("auto", "light", "dark")


def document(
    shown: Shown | Sequence[Shown],
    *,
    title: str | None = None,
    query: int | str | None = None,
    level: int = -1,
    special: str = "unscaled",
    scale: str | None = None,
    graphs: AttentionGraph | Sequence[AttentionGraph] = (),
    bottlenecks: Any = "auto",
    images: Any = None,
    difference: bool = False,
    queries: Iterable[int | str] | None = None,
    theme: str = "auto",
) -> dict[str, Any]:
    """Attributions and views as the JSON that the viewer draws: those of the same tokens become one text.

    `graphs` are what the attributions came from; of each, the flows of the opening query are added as pairs
    (`bottlenecks="auto"`: from the inputs that it draws most on). `bottlenecks` can be a list of them instead, or None.
    `scale` is "shared" by the methods of a text or "separate"; None shares it where their largest values are within a
    factor of three. `difference` adds, where a text has exactly two attributions, the first minus the second. `queries` limits the
    rows to these; without it all are kept up to twelve million values, and beyond that the opening one, special tokens
    and evenly spaced others, which the page says. `images` are the pictures under the patch grids, one for each text
    that has grids.
    """
    if special not in SPECIAL:
        raise InvalidArgument(f"unknown value for special {special!r}." + suggest(special, SPECIAL))
    if theme not in THEMES:
        raise InvalidArgument(f"unknown theme {theme!r}." + suggest(theme, THEMES))
    if scale not in SCALES:
        raise InvalidArgument(f"unknown scale {scale!r}." + suggest(scale, ("shared", "separate")))
    found = _opened(listed(shown), query)
    texts = _texts([one for one in found if isinstance(one, View)], images)
    flows = [one for one in found if isinstance(one, FlowView)]
    if isinstance(bottlenecks, str) and bottlenecks != "auto":
        raise InvalidArgument(f'bottlenecks is "auto", a list of them or None; got {bottlenecks!r}.')
    if not isinstance(bottlenecks, str):
        flows += [flow_view(b) for b in listed(bottlenecks)] if bottlenecks else []
    for graph in [graphs] if isinstance(graphs, AttentionGraph) else graphs:
        flows += _flows_of(graph, texts) if bottlenecks == "auto" else []
    if difference:
        texts = [[*views, difference_of(*views)] if len(views) == 2 else views for views in texts]
    texts = [[_with_queries(view, queries) for view in views] for views in texts]
    texts = _within(texts, MOST_VALUES)
    return {
        "format": "attnflow-view",
        "version": FORMAT_VERSION,
        "title": title or "attnflow",
        "made_by": f"attnflow {__version__}",
        "theme": theme,
        "special": special,
        "level": level,
        "scale": scale or _fitting_scale(texts),
        "ramps": {t: {k: hexes(t, k, 65) for k in KINDS} for t in ("light", "dark")},
        "texts": _described(texts, flows) or [_flows_alone(flows)],
    }


def _opened(shown: Sequence[Shown], query: int | str | None) -> list[View | FlowView]:
    """All as views at `query`; a text that has no such query opens at its own, as long as another one has it."""
    found, refused = [], []
    for one in shown:
        try:
            found.append(as_view(one, query=query))
        except InvalidArgument as error:
            if query is None:
                raise
            found.append(as_view(one))
            refused.append(error)
    if len(refused) == len(found):
        raise refused[0]
    return found


def _fitting_scale(texts: Sequence[Sequence[View]]) -> str:
    """One scale for all methods, unless some would go pale beside others, as rollout does beside flow."""
    for views in texts:
        ends = [
            limit(view.by_level(view.query), counted(view, view.query, "unscaled")) for view in views if not view.signed
        ]
        if ends and max(ends) > 3 * min(ends):
            return "separate"
    return "shared"


def _texts(views: Sequence[View], images: Any) -> list[list[View]]:
    """Views of the same tokens together, in the order in which they came; with their images."""
    texts: dict[tuple[Any, ...], list[View]] = {}
    for view in views:
        pictures = tuple(grid.picture for grid in view.grids)
        texts.setdefault((view.labels, view.special, view.words, view.grids, pictures), []).append(view)
    given = images if isinstance(images, list) else [] if images is None else [images]
    with_grids = [views for views in texts.values() if views[0].grids]
    if len(given) > len(with_grids):
        raise InvalidArgument(f"got images for {len(given)} texts, but {len(with_grids)} of them have patch grids.")
    for views_of_one, image in zip(with_grids, given, strict=False):
        views_of_one[:] = [replace(view, grids=pictured(view.grids, image)) for view in views_of_one]
    return list(texts.values())


def _flows_of(graph: AttentionGraph, texts: Sequence[Sequence[View]]) -> list[FlowView]:
    """The flows from the inputs that the opening query draws most on, in the text of this graph's tokens."""
    for views in texts:
        if len(views[0].labels) == len(graph.tokens) and views[0].labels == labels_of(graph):
            return main_flows(graph, views[0].query)
    raise InvalidArgument(
        "a graph was given whose tokens are those of no attribution; its flows have no text to belong to."
    )


def _with_queries(view: View, queries: Iterable[int | str] | None) -> View:
    if queries is None:
        return view
    positions = [view.opened(q).query for q in queries]
    kept = [q for q in view.queries if q in positions or q == view.query]
    return _only_queries(view, kept)


def _only_queries(view: View, kept: Sequence[int]) -> View:
    rows = [view.queries.index(q) for q in kept]
    return replace(view, values=view.values[:, rows], queries=tuple(kept))


def _within(texts: list[list[View]], most: int) -> list[list[View]]:
    """Fewer queries, where all of them would make the document too large to open."""
    total = sum(view.values.size for views in texts for view in views)
    if total <= most:
        return texts
    return [[_thinned(view, most / total) for view in views] for views in texts]


def _thinned(view: View, share: float) -> View:
    """The opening query, the special ones, and evenly spaced others: this share of all."""
    room = max(1, int(len(view.queries) * share))
    first = [view.query, *(q for q in view.queries if q in view.special and q != view.query)][:room]
    others = [q for q in view.queries if q not in first]
    picked = np.linspace(0, len(others) - 1, room - len(first)).round().astype(int).tolist()
    return _only_queries(view, sorted({*first, *(others[i] for i in picked)}))


def _described(texts: Sequence[Sequence[View]], flows: Sequence[FlowView]) -> list[dict[str, Any]]:
    """The texts as JSON, as fine as their size allows."""
    found: list[dict[str, Any]] = []
    for steps in steps_for(sum(view.values.size for views in texts for view in views)):
        found = [_text(views, flows, steps) for views in texts]
        if sum(size_of(view["cube"]) for text in found for view in text["views"]) <= MOST_LETTERS:
            break
    return found


def _text(views: Sequence[View], flows: Sequence[FlowView], steps: int) -> dict[str, Any]:
    first = views[0]
    return {
        "labels": list(first.labels),
        "special": list(first.special),
        "joined": list(first.joined),
        "words": [list(word) for word in first.words],
        "grids": [_grid(grid) for grid in first.grids],
        "query": first.query,
        "views": [_view(view, steps) for view in views],
        "flows": _flows(flows, first.labels),
    }


def _flows(flows: Sequence[FlowView], labels: tuple[str, ...]) -> list[dict[str, Any]]:
    """The flows of one text; a pair that came twice is there once, as it came first."""
    own: dict[tuple[Any, ...], FlowView] = {}
    for flow in flows:
        if flow.labels == labels:
            own.setdefault((flow.query, flow.input, flow.levels), flow)
    return [_flow(flow) for flow in own.values()]


def _view(view: View, steps: int) -> dict[str, Any]:
    every = tuple(range(len(view.labels)))
    return {
        "method": view.method,
        "caption": view.caption,
        "levels": list(view.levels),
        "queries": None if view.queries == every else list(view.queries),
        "inputs": None if view.inputs == every else list(view.inputs),
        "signed": view.signed,
        "notes": list(view.notes),
        "cube": cube(view, steps),
    }


def _flow(flow: FlowView) -> dict[str, Any]:
    return {
        "query": flow.query,
        "input": flow.input,
        "value": flow.value,
        "limit": flow.limit,
        "caption": flow.caption,
        "levels": list(flow.levels),
        "edges": [
            [
                e.level,
                e.query,
                e.key,
                _rounded(e.flow),
                None if e.capacity is None else _rounded(e.capacity),
                int(e.cut),
            ]
            for e in flow.edges
        ],
        "paths": [[_rounded(path.amount), list(path.positions)] for path in flow.paths],
    }


def _flows_alone(flows: Sequence[FlowView]) -> dict[str, Any]:
    first = flows[0]
    return {
        "labels": list(first.labels), "special": list(first.special), "joined": [], "words": [], "grids": [], "query": first.query,
        "views": [], "flows": _flows(flows, first.labels),
    }  # fmt: skip


def _grid(grid: PatchGrid) -> dict[str, Any]:
    plain: dict[str, Any] = {"rows": grid.rows, "columns": grid.columns, "offset": grid.offset, "image": None}
    if grid.picture is not None:
        content, kind = grid.picture.encoded()
        plain |= {
            "image": f"data:{kind};base64,{base64.b64encode(content).decode()}",
            "size": [grid.picture.width, grid.picture.height],
            "box": list(grid.picture.box),
        }
    return plain


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")
