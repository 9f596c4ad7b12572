"""The forms of the API's bodies, as JSON Schema: what the description shows is what is checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnflow.methods import METHODS
from attnflow.web._choices import HEADS, RESIDUALS, ROWS, edges
from attnflow.web._limits import Limits
from attnflow.web._models import Served
from attnflow.web._schema import Schema

# A letter that is neither blank nor a control character; \S means different letters in JSON Schema and in Python.
SEEN = r"[^\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"
POSITION: list[Schema] = [{"type": "integer"}, {"type": "string", "minLength": 1, "maxLength": 200}]
Models = Mapping[str, Served]


def capture_properties(models: Models, limits: Limits) -> dict[str, Schema]:
    """What decides about the graph."""
    names = list(models)
    text: Schema = {"type": "string", "minLength": 1, "maxLength": limits.letters, "pattern": SEEN}
    share: Schema = {"type": "number", "minimum": 0, "exclusiveMaximum": 1}
    count: Schema = {"type": "integer", "minimum": 1, "maximum": limits.tokens}
    seen = {
        "image": _said(
            {"type": "string", "minLength": 1, "maxLength": limits.body},
            "What a model that sees is asked about: the base64 of a PNG, JPEG, WEBP, GIF or BMP file.",
        )
    }
    read = {
        "text": _said(text, "What the model reads."),
        "second": _said(_or_null(text), "A second text: of a sentence pair, or what an encoder-decoder model writes."),
    }
    wanted = reads(models)
    return {
        "model": _said({"enum": names, "default": names[0]}, "One of the models that this server was started with."),
        **(read if "text" in wanted else {}),
        **(seen if "image" in wanted else {}),
        "edges": _said({"enum": list(edges()), "default": "attention"}, "What counts as an edge."),
        "heads": _said(
            {"anyOf": [{"enum": list(HEADS)}, {"type": "integer", "minimum": 0, "maximum": 10_000}], "default": "mean"},
            "How heads are mixed, or the number of one.",
        ),
        "residual": _said(
            _or_null({"type": "number", "minimum": 0, "maximum": 1}, {"enum": list(RESIDUALS)}, default="own"),
            "Share of the residual connection, or how it is measured; own: what the edge rule says, 0.5 for attention.",
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


def reads(models: Models) -> set[str]:
    """What the models are asked about: texts, images or both."""
    named = {one.reads for one in models.values()}
    return {"text", "image"} if "both" in named else named


def required(models: Models) -> list[str]:
    """What every question needs, if all models read the same."""
    wanted = reads(models)
    return list(wanted) if len(wanted) == 1 else []


def explain_schema(models: Models, limits: Limits) -> Schema:
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
    return _object({**capture_properties(models, limits), **own}, required(models))


def bottleneck_schema(models: Models, limits: Limits) -> Schema:
    """The body of /api/bottleneck."""
    own: dict[str, Schema] = {
        "query": _said({"anyOf": POSITION}, "The position or token that the flow leaves."),
        "input": _said({"anyOf": POSITION}, "The input token that it reaches."),
        "level": _said({"type": "integer", "default": -1}, "The level of the query; negative from the top."),
    }
    return _object({**capture_properties(models, limits), **own}, [*required(models), "query", "input"])


def _or_null(*schemas: Schema, **more: Any) -> Schema:
    return {"anyOf": [*schemas, {"type": "null"}], **more}


def _said(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


def _object(properties: dict[str, Schema], required: list[str]) -> Schema:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
