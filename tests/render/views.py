"""The table of views that every back end must draw, made of plain numbers: nothing here knows an attribution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnflow.render import FlowView, Picture, View
from attnflow.render._view import Edge, Path
from attnflow.tokens import PatchGrid, Word


def view(
    levels: int = 3, n: int = 5, *, labels: list[str] | None = None, values: np.ndarray | None = None, **more: object
) -> View:
    rng = np.random.default_rng(3)
    made = rng.dirichlet(np.full(n, 0.5), size=(levels, n)) if values is None else values
    every = tuple(range(n))
    given: dict[str, object] = {
        "queries": every,
        "inputs": every,
        "query": 0,
        "caption": "made up",
        "special": (0,),
    } | more
    names = (
        tuple(labels or ("[CLS]", "the", "key", "##s", "are")[:n] or ())
        if n <= 5 or labels
        else tuple(f"w{i}" for i in every)
    )
    return View(method="rollout", values=made, labels=names, levels=tuple(f"layer {i}" for i in range(levels)), **given)  # type: ignore[arg-type]


def signed() -> View:
    values = np.random.default_rng(4).normal(size=(3, 5, 5))
    return view(values=values)


def image() -> View:
    pixels = np.random.default_rng(5).integers(0, 255, size=(40, 60, 3)).astype(np.uint8)
    grid = PatchGrid(2, 3, 1, Picture(pixels, (0.0, 0.0, 60.0, 40.0)))
    return view(2, 8, labels=["[CLS]", *(f"patch {i}" for i in range(6)), "[SEP]"], grids=(grid,), special=(0, 7))


def encoder_decoder() -> View:
    """Three source and two target positions on one axis; a target row at decoder levels only."""
    values = np.zeros((4, 5, 5))
    values[:2, :3, :3] = 1 / 3
    values[2:, 3:, :] = 0.2
    values[:, range(5), range(5)] += 0.1
    labels = ["ein", "Satz", "</s>", "<s>", "a"]
    return view(4, 5, labels=labels, values=values, query=4, special=(2, 3))


def some_rows() -> View:
    """Two queries, three inputs of five, words, and advice."""
    values = np.random.default_rng(6).random((2, 2, 3))
    words = (Word(2, 4, "keys"),)
    return view(
        2,
        5,
        values=values,
        queries=(1, 4),
        inputs=(0, 2, 3),
        query=4,
        words=words,
        joined=(3,),
        notes=("", "Raw attention misleads here."),
    )


VIEWS: dict[str, Callable[[], View]] = {
    "one token": lambda: view(2, 1, labels=["alone"], special=()),
    "2,048 tokens": lambda: view(
        2,
        2048,
        labels=[f"w{i % 83}" for i in range(2048)],
        queries=(0, 2047),
        query=2047,
        values=np.random.default_rng(7).random((2, 2, 2048)),
    ),
    "one level": lambda: view(1, 5),
    "all zero": lambda: view(values=np.zeros((3, 5, 5))),
    "all special": lambda: view(special=(0, 1, 2, 3, 4)),
    "signed": signed,
    "image": image,
    "encoder–decoder": encoder_decoder,
    "some rows": some_rows,
    "scripts": lambda: view(2, 5, labels=["漢字", "שלום", "مرحبا", "ไทย", "$x_1$"]),
}


def flow() -> FlowView:
    """Two paths from position 2 to position 0 over two levels; the cut lies at the query."""
    edges = (
        Edge(1, 2, 2, 0.5, 0.5, True),
        Edge(1, 2, 1, 0.25, 0.25, True),
        Edge(0, 2, 0, 0.5, 0.6, False),
        Edge(0, 1, 0, 0.25, None, False),
    )
    paths = (Path(0.5, (2, 2, 0)), Path(0.25, (2, 1, 0)))
    return FlowView(
        2, 0, 0.75, "It is limited at the query.", ("the", "key", "is"), ("layer 0", "layer 1"), edges, paths
    )
