"""From a question to its answer: capture, methods, document. Runs in a thread, and asks its watch all along."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from attnflow import capture, render
from attnflow.attribution import Attribution
from attnflow.graph import AttentionGraph
from attnflow.methods import METHODS, attribute, bottleneck
from attnflow.tokens import checked_index
from attnflow.web._graphs import Graphs
from attnflow.web._image import opened
from attnflow.web._limits import Limits
from attnflow.web._models import Served
from attnflow.web._question import Question
from attnflow.web._refused import Refused
from attnflow.web._watch import Watch


class Answers:
    """Answers questions about the served models."""

    def __init__(self, models: Mapping[str, Served], limits: Limits) -> None:
        self.models, self.limits = models, limits
        self._graphs = Graphs(limits.graphs)

    def explain(self, question: Question, watch: Watch) -> bytes:
        """The document of every method asked for, and what a reader of it wants to know."""
        start = time.perf_counter()
        graphs = {name: self.graph(question, name, watch) for name in question.methods}
        captured = time.perf_counter()
        graph = graphs[question.methods[0]]
        query = _opening(graph, question.query)
        level = checked_index(question.level, len(graph), "level")
        found, notes = [], []
        for name in question.methods:
            watch.check()
            made, note = self._attributed(graphs[name], name, query, question.rows, watch)
            found.append(made)
            notes += [note] if note else []
        watch.check()
        if question.difference and len(found) != 2:
            raise Refused("cannot_answer", f"a difference needs exactly two methods, got {len(found)}.")
        document = render.document(found, query=query, level=level, difference=question.difference, title=_title(graph))
        return encoded(
            {
                "model": question.model,
                "query": query,
                "query_is": graph.options.get("query_is", "") if question.query is None else "the position asked about",
                "levels": list(graph.names),
                "tokens": len(graph.tokens),
                "notes": notes,
                "seconds": {"capture": round(captured - start, 4), "all": round(time.perf_counter() - start, 4)},
                "document": document,
            }
        )

    def bottleneck(self, question: Question, watch: Watch) -> bytes:
        """The flow of one pair, as the document's `flows` hold it."""
        graph = self.graph(question, None, watch)
        assert question.pair is not None
        found = bottleneck(graph, *question.pair, level=question.level)
        watch.check()
        [text] = render.document(found, bottlenecks=None)["texts"]
        return encoded(text["flows"][0])

    def graph(self, question: Question, method: str | None, watch: Watch) -> AttentionGraph:
        """The attention of the model on the input, mixed for a method; from memory if it was asked for a moment ago."""
        key = question.captured(method)
        kept = self._graphs.get(key)
        if kept is not None:
            return kept
        served = self.models[question.model]
        inputs = self._inputs(served, question)
        watch.tell("progress", {"what": "capture", "done": 0, "total": 1})
        with capture.watched(watch.check):
            found: AttentionGraph = capture.graph(
                served.model, inputs, served.tokenizer, served.processor, **question.mixing(method)
            )
        graph = replace(found, options={**found.options, "model": served.name})  # instead of the folder it came from
        self._graphs.put(key, graph)
        return graph

    def _inputs(self, served: Served, question: Question) -> Any:
        """What the model is given: an image, a text, two texts, or an image and a text."""
        image = opened(question.image, self.limits) if question.image is not None and served.reads != "text" else None
        text = question.text if served.reads != "image" else None
        if image is None and text is None:
            raise Refused(
                "cannot_answer", f"the model {served.name} is asked about {_KINDS[served.reads]}, and there is none."
            )
        if text is None:
            return image
        self._check_length(served, question)
        if served.reads == "both":
            # To such a model a text may also be the path of an image. One that begins with a blank is none, and what
            # stands alone goes in as tokens.
            return served.ids(text) if image is None else (image, f" {text}")
        return text if question.second is None else (text, question.second)

    def _check_length(self, served: Served, question: Question) -> None:
        count = served.count(*question.texts)
        if count > self.limits.tokens:
            raise Refused(
                "too_many_tokens",
                f"the input has {count} tokens, and this server takes at most {self.limits.tokens}. Shorten it, or have the server "
                "started with a larger --max-tokens.",
            )

    def _attributed(
        self, graph: AttentionGraph, name: str, query: int, rows: str, watch: Watch
    ) -> tuple[Attribution, str]:
        """One method over all levels; where that would take long and was not asked for, the row of the query alone."""
        known = inspect.signature(METHODS[name]).parameters
        own = {"progress": watch.report, "threads": self.limits.threads}
        options = {option: value for option, value in own.items() if option in known}
        pairs = len(graph) * len(graph.tokens) ** 2
        dear = "progress" in known and pairs > self.limits.pairs
        if rows == "all" or (rows == "auto" and not dear):
            return attribute(graph, name, **options), ""
        note = (
            f"{name}: only the row of position {query}, since all rows are {pairs:,} pairs." if rows == "auto" else ""
        )
        return attribute(graph, name, queries=[query], **options), note


_KINDS = {"image": "an image", "text": "a text", "both": "an image and a text"}


def encoded(content: Any) -> bytes:
    """As JSON in UTF-8."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _opening(graph: AttentionGraph, query: int | str | None) -> int:
    if query is not None:
        return graph.tokens.position(query)
    predicted = graph.options.get("predicted") or ()
    return int(predicted[0]["row"] if predicted else graph.options["query"])


def _title(graph: AttentionGraph) -> str:
    """What the page is called: the model."""
    return str(graph.options["model"])
