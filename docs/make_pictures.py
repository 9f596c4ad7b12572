"""Make docs/pictures: what the pages about concepts and methods show, from the bundled model.

python docs/make_pictures.py
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import attnflow as af
from attnflow import render

HERE = Path(__file__).parent / "pictures"
SENTENCE = "the authors of the book"


def three_layers() -> None:
    """The worked example of the page on mixing."""
    first = [[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]]
    second = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
    graph = af.AttentionGraph([first, second], tokens=["keys", "cabinet", "[answer]"])
    render.figure(af.raw(graph), "graph", HERE / "three-layers.svg", query="[answer]", width=5)


def bundled(**options: Any) -> af.AttentionGraph:
    with resources.as_file(resources.files("attnflow") / "assets" / "verb_number") as folder:
        found = af.capture.graph(str(folder), SENTENCE, **options)
    assert isinstance(found, af.AttentionGraph)
    return found


METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "raw": ("raw", {}),
    "rollout": ("rollout", {}),
    "flow": ("flow", {}),
    "chefer": ("rollout", {"edges": "chefer", "target": "plural"}),
    "alti": ("rollout", {"edges": "alti"}),
    "value-zeroing": ("rollout", {"edges": "value_zeroing"}),
    "routes": ("rollout", {"edges": "routes"}),
    "effective": ("rollout", {"edges": "effective"}),
    "relevance": (
        "relevance",
        {"edges": "chefer", "target": "plural", "residual": None, "renormalise": False},
    ),
}


def methods() -> None:
    """One sentence, one picture a method: what the class token draws on, level by level."""
    for name, (method, options) in METHODS.items():
        found = af.attribute(bundled(**options), method, queries=["[CLS]"])
        render.figure(found, "levels", HERE / f"method-{name}.svg", query="[CLS]", width=5.5)


def main() -> None:
    HERE.mkdir(exist_ok=True)
    three_layers()
    methods()
    graph = bundled()
    render.figure([af.rollout(graph), af.flow(graph)], "graph", HERE / "rollout-and-flow.svg", query="[CLS]")
    render.figure(af.bottleneck(graph, "[CLS]", "authors", level=2), path=HERE / "bottleneck.svg", width=6)


if __name__ == "__main__":
    main()
