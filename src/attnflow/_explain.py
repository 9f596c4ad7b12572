"""explain: one call from a sentence to an attribution."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from typing import Any

from attnflow.attribution import Attribution
from attnflow.errors import CaptureError
from attnflow.methods import attribute, wanted_mixing
from attnflow.mixing import mix

BUNDLED = "verb_number"  # which verb follows, singular or plural


def explain(
    input: Any,  # as in the contract: what is explained
    model: Any = None,
    method: str | Callable[..., Attribution] = "rollout",
    *,
    tokenizer: Any = None,
    processor: Any = None,
    query: int | str | Iterable[int | str] | None = None,
    level: int | Iterable[int] | None = -1,
    **options: Any,
) -> Any:
    """How much of what the model says about `input` came from each of its tokens: an Attribution (a list for a list).

    `model` is a loaded model, a folder or a hub name; None is the small model that comes with attnflow. `query` is a position or
    a token; None is the position that the output is read from (the class token of a classifier, the last token of a
    decoder, the masked position of a masked language model; the rows that wrote the answer, with `generate=n`), and the
    result's `options["query_is"]` says which. `level` is the top one unless others are asked for; None is all of them.
    Other options go to the capture (`heads`, `residual`, `edges`, `target`, `generate` …) and to the method, each to the one that knows it.
    """
    from attnflow import capture

    ours, theirs = sorted_options(options)
    ours = wanted_mixing(method) | ours
    if model is None:
        with resources.as_file(resources.files("attnflow") / "assets" / BUNDLED) as folder:
            if not (folder / "config.json").is_file():
                raise CaptureError(
                    "the bundled model is not part of this installation. Pass model=…: a loaded model, a folder or a hub name."
                )
            found = capture.graph(str(folder), input, tokenizer, processor, **ours)
    else:
        found = capture.graph(model, input, tokenizer, processor, **ours)
    graphs = found if isinstance(found, list) else [found]
    made = [attributed(graph, method, query, level, theirs) for graph in graphs]
    return made if isinstance(found, list) else made[0]


def attributed(graph: Any, method: Any, query: Any, level: Any, options: Mapping[str, Any]) -> Attribution:
    """A method over a captured graph, about the position that its output is read from if no query is given."""
    if query is None:
        predicted = graph.options.get("predicted") or ()
        queries: Any = list(dict.fromkeys(one["row"] for one in predicted)) or list(
            graph.options.get("queries") or [graph.options["query"]]
        )
    else:
        queries = _listed(query)
    levels = None if level is None else _listed(level)
    return attribute(graph, method, queries=queries, levels=levels, **options)


def _listed(chosen: Any) -> list[Any]:
    """One position, token or level as a list of one."""
    return [chosen] if isinstance(chosen, str) or not isinstance(chosen, Iterable) else list(chosen)


def sorted_options(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the capture, and those of the method."""
    from attnflow import capture

    known = {*inspect.signature(capture.graph).parameters, *inspect.signature(mix).parameters}
    ours = {name: value for name, value in options.items() if name in known}
    return ours, {name: value for name, value in options.items() if name not in known}
