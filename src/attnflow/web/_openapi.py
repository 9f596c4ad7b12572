"""The OpenAPI document: made of the schemas that requests are checked by."""

from __future__ import annotations

from typing import Any

from attnflow import __version__
from attnflow.web._api import Api
from attnflow.web._refused import CODES

Plain = dict[str, Any]

ABOUT = """How much of what a transformer says at one position came from each input token: raw attention, attention rollout and
attention flow (Abnar & Zuidema 2020) over the models that this server was started with. A **query** is the position asked about,
an **input** the token credited; **level** 0 is the first block."""


def openapi(api: Api) -> Plain:
    """The description of this server: its models, methods and limits are in it."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "attnflow", "version": __version__, "description": ABOUT},
        "servers": [{"url": "/"}],
        "paths": {
            "/api/explain": {"post": _explain(api)},
            "/api/bottleneck": {"post": _bottleneck(api)},
            "/api/choices": {"get": _get("choices", "What a question may choose from, and the limits.", CHOICES)},
            "/health": {"get": {**_get("health", "Whether the server answers, and how much it has to do.", HEALTH), "security": []}},
        },
        "components": {
            "schemas": {
                "Question": api.explain_schema, "PairQuestion": api.bottleneck_schema, "Answer": ANSWER, "Flow": FLOW, "Error": ERROR,
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}] if api.guard.asks_token else [],
    }  # fmt: skip


def _explain(api: Api) -> Plain:
    example = {"text": "The key to the cabinets", "methods": ["rollout", "flow"]}
    return {
        "operationId": "explain",
        "summary": "How much of what each position says came from each input token.",
        "description": "With `Accept: text/event-stream` the answer comes as server-sent events: `waiting` {before_you}, `progress` "
        "{what, done, total}, and at last `answer`, whose data is the JSON below, or `error`. Closing the connection stops the run.",
        "requestBody": _body("Question", example),
        "responses": {
            "200": {
                "description": "The answer; `document` is what the viewer draws.",
                "content": {**_json("Answer"), "text/event-stream": {"schema": {"type": "string"}}},
            },
            **_errors(api),
        },
    }


def _bottleneck(api: Api) -> Plain:
    return {
        "operationId": "bottleneck",
        "summary": "The maximum flow of one pair: edges, paths, and the minimum cut that limits it.",
        "requestBody": _body("PairQuestion", {"text": "The key to the cabinets", "query": -1, "input": "key"}),
        "responses": {"200": {"description": "The flow.", "content": _json("Flow")}, **_errors(api)},
    }


def _get(name: str, summary: str, schema: Plain) -> Plain:
    content = {"application/json": {"schema": schema}}
    return {"operationId": name, "summary": summary, "responses": {"200": {"description": summary, "content": content}}}


def _body(schema: str, example: Plain) -> Plain:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}, "example": example}}
    return {"required": True, "content": content}


def _json(schema: str) -> Plain:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


def _errors(api: Api) -> Plain:
    """Every status that a question may be refused with, and the codes behind it."""
    found: dict[str, list[str]] = {}
    for code, (status, words) in CODES.items():
        elsewhere = code in ("not_found", "not_allowed") or (code == "unauthorised" and not api.guard.asks_token)
        if not elsewhere:
            found.setdefault(str(status), []).append(f"`{code}`: {words}")
    return {status: {"description": " ".join(words), "content": _json("Error")} for status, words in found.items()}


def _object(**properties: Plain) -> Plain:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(items: Plain) -> Plain:
    return {"type": "array", "items": items}


TEXT: Plain = {"type": "string"}
WHOLE: Plain = {"type": "integer"}
NUMBER: Plain = {"type": "number"}

ERROR = _object(error={"enum": list(CODES)}, message={**TEXT, "description": "What came, what is allowed, what to do."})
FLOW = _object(
    query=WHOLE, input=WHOLE, value=NUMBER, limit={**TEXT, "description": "In words, where the minimum cut lies."}, caption=TEXT,
    levels=_list(TEXT),
    edges={**_list({"type": "array"}), "description": "[level, query, key, flow, capacity or null (no limit), 1 if in the minimum cut]"},
    paths={**_list({"type": "array"}), "description": "[amount, positions from the query down to the input]"},
)  # fmt: skip
VIEW = _object(
    method=TEXT, caption=TEXT, levels=_list(TEXT), queries={"type": ["array", "null"]}, inputs={"type": ["array", "null"]},
    signed={"type": "boolean"}, notes=_list(TEXT), cube={"type": "object"},
)  # fmt: skip
DOCUMENT = _object(
    format={"const": "attnflow-view"}, version=WHOLE, title=TEXT, made_by=TEXT, level=WHOLE, ramps={"type": "object"},
    texts=_list(_object(labels=_list(TEXT), special=_list(WHOLE), words=_list({"type": "array"}), grids=_list({"type": "object"}),
                        query=WHOLE, views=_list(VIEW), flows=_list(FLOW))),
)  # fmt: skip
ANSWER = _object(
    model=TEXT, query={**WHOLE, "description": "The position that the answer opens at."}, query_is=TEXT, levels=_list(TEXT), tokens=WHOLE,
    notes=_list(TEXT), seconds={"type": "object"}, document=DOCUMENT,
)  # fmt: skip
CHOICES = _object(
    models=_list(_object(name=TEXT, kind=TEXT, layers={"type": ["integer", "null"]}, heads={"type": ["integer", "null"]}, reads={"enum": ["text", "image", "both"]})),
    methods=_list(TEXT), edges=_list(_object(name=TEXT, needs_gradients={"type": "boolean"})), residuals=_list(TEXT), limits={"type": "object"}, version=TEXT,
)  # fmt: skip
HEALTH = _object(status={"enum": ["ok", "stopping"]}, running=WHOLE, waiting=WHOLE, version=TEXT)
