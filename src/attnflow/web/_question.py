"""Question: what a request asks, and the schema that describes and checks it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from attnflow.methods import METHODS, wanted_mixing
from attnflow.mixing import EDGES
from attnflow.web._limits import Limits
from attnflow.web._schema import Schema, check

ROWS = ("auto", "all", "query")
HEADS = ("mean", "max", "min")
# A letter that is neither blank nor a control character; \S means different letters in JSON Schema and in Python.
SEEN = r"[^\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"
POSITION: list[Schema] = [{"type": "integer"}, {"type": "string", "minLength": 1, "maxLength": 200}]


@dataclass(frozen=True)
class Question:
    """A checked question. `mixing` are the options of capture and mix; `pair` is (query, input) of a flow."""

    model: str
    text: str
    second: str | None
    mixing: Mapping[str, Any]
    methods: tuple[str, ...]
    query: int | str | None
    level: int
    rows: str
    difference: bool
    pair: tuple[int | str, int | str] | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """What the model reads."""
        return (self.text,) if self.second is None else (self.text, self.second)

    @property
    def captured(self) -> str:
        """The same for two questions that the same capture answers; nothing can be read from it."""
        content = json.dumps([self.model, self.texts, sorted(self.mixing.items())])
        return hashlib.sha256(content.encode()).hexdigest()


def capture_properties(models: Iterable[str], limits: Limits) -> dict[str, Schema]:
    """What decides about the graph."""
    names = list(models)
    text: Schema = {"type": "string", "minLength": 1, "maxLength": limits.letters, "pattern": SEEN}
    share: Schema = {"type": "number", "minimum": 0, "exclusiveMaximum": 1}
    count: Schema = {"type": "integer", "minimum": 1, "maximum": limits.tokens}
    return {
        "model": _said({"enum": names, "default": names[0]}, "One of the models that this server was started with."),
        "text": _said(text, "What the model reads."),
        "second": _said(_or_null(text), "A second text: of a sentence pair, or what an encoder-decoder model writes."),
        "edges": _said({"enum": list(EDGES), "default": "attention"}, "What counts as an edge."),
        "heads": _said(
            {"anyOf": [{"enum": list(HEADS)}, {"type": "integer", "minimum": 0, "maximum": 10_000}], "default": "mean"},
            "How heads are mixed, or the number of one.",
        ),
        "residual": _said(
            _or_null({"type": "number", "minimum": 0, "maximum": 1}, default=0.5), "Share of the residual connection."
        ),
        "target": _said(
            _or_null(*POSITION),
            "The class or token that gradients are of, for edges that need them; else the predicted.",
        ),
        "top_k": _said(_or_null(count), "Keep this many of the largest entries of each row."),
        "threshold": _said(_or_null(share), "Keep only entries above this."),
        "discard": _said(_or_null(share), "Drop this share of each level's entries, the smallest."),
        "drop_special": _said({"type": "boolean", "default": False}, "Leave special tokens out of the graph."),
    }


def explain_schema(models: Iterable[str], limits: Limits) -> Schema:
    """The body of /api/explain."""
    own: dict[str, Schema] = {
        "methods": _said(
            {"type": "array", "items": {"enum": list(METHODS)}, "minItems": 1, "maxItems": len(METHODS), "uniqueItems": True,
             "default": ["rollout"]},
            "What is computed, to compare.",
        ),
        "query": _said(
            _or_null(*POSITION), "The position or token that the answer opens at; else the one the output is read from."
        ),
        "level": _said({"type": "integer", "default": -1}, "The level that the answer opens at; negative from the top."),
        "rows": _said(
            {"enum": list(ROWS), "default": "auto"},
            f"Rows of a flow: all, that of the query alone, or all up to {limits.pairs:,} pairs (auto).",
        ),
        "difference": _said({"type": "boolean", "default": False}, "Of exactly two methods, also the first minus the second."),
    }  # fmt: skip
    return _object({**capture_properties(models, limits), **own}, ["text"])


def bottleneck_schema(models: Iterable[str], limits: Limits) -> Schema:
    """The body of /api/bottleneck."""
    own: dict[str, Schema] = {
        "query": _said({"anyOf": POSITION}, "The position or token that the flow leaves."),
        "input": _said({"anyOf": POSITION}, "The input token that it reaches."),
        "level": _said({"type": "integer", "default": -1}, "The level of the query; negative from the top."),
    }
    return _object({**capture_properties(models, limits), **own}, ["text", "query", "input"])


def question(asked: Any, schema: Schema) -> Question:
    """A body as a Question, checked by the schema that the API's description shows."""
    check(asked, schema)
    given = {name: one["default"] for name, one in schema["properties"].items() if "default" in one} | dict(asked)
    usual = {name: given[name] for name in ("edges", "heads", "residual")}
    # What the methods stand on (relevance adds its own residual) takes the place of a default, not of a choice.
    mixing = usual | wanted_mixing(*given.get("methods", ())) | {name: asked[name] for name in usual if name in asked}
    mixing |= {name: given[name] for name in ("target", "top_k", "threshold", "discard") if given.get(name) is not None}
    mixing |= {"drop_special": True} if given["drop_special"] else {}
    return Question(
        model=given["model"],
        text=given["text"],
        second=given.get("second"),
        mixing={name: _whole(value) for name, value in mixing.items()},
        methods=tuple(given.get("methods", ())),
        query=_whole(given.get("query")),
        level=int(given["level"]),
        rows=given.get("rows", "auto"),
        difference=given.get("difference", False),
        pair=(_whole(given["query"]), _whole(given["input"])) if "input" in given else None,
    )


def _whole(value: Any) -> Any:
    """A position, a head or a count that came as 2.0; shares are left alone, since 1.0 and 1 mean the same there."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _or_null(*schemas: Schema, **more: Any) -> Schema:
    return {"anyOf": [*schemas, {"type": "null"}], **more}


def _said(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


def _object(properties: dict[str, Schema], required: list[str]) -> Schema:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
