"""JSON Schema, as much of it as the API's description uses: one text is both what is promised and what is checked."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

from attnflow.errors import suggest
from attnflow.web._refused import Refused

Schema = dict[str, Any]


def check(value: Any, schema: Schema, where: str = "") -> None:
    """Refuse a value that is not of this form, with a sentence."""
    if "anyOf" in schema:
        if not any(_fits(value, one) for one in schema["anyOf"]):
            raise _unfit(value, schema, where)
        return
    if "enum" in schema:
        if not isinstance(value, str) or value not in schema["enum"]:
            guess = suggest(value, schema["enum"]) if isinstance(value, str) and len(value) < 100 else ""
            raise _unfit(value, schema, where, guess)
        return
    if not _TYPES[schema["type"]](value) or not _within(value, schema):
        raise _unfit(value, schema, where)
    if schema["type"] == "array":
        for number, item in enumerate(value):
            check(item, schema["items"], f"{where}[{number}]")
    if schema["type"] == "object":
        _check_object(value, schema, where)


def _check_object(value: dict[str, Any], schema: Schema, where: str) -> None:
    known = schema["properties"]
    for name in schema.get("required", ()):
        if name not in value:
            raise Refused("invalid", f"{name!r} is missing: {describe(known[name])}.")
    for name, item in value.items():
        if name not in known:
            raise Refused("invalid", f"there is no {name[:40]!r} in a question." + suggest(name[:100], known))
        check(item, known[name], f"{where}.{name}" if where else name)


def _fits(value: Any, schema: Schema) -> bool:
    try:
        check(value, schema)
    except Refused:
        return False
    return True


def _within(value: Any, schema: Schema) -> bool:
    if schema["type"] in ("integer", "number"):
        return bool(schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf)) and (
            "exclusiveMaximum" not in schema or value < schema["exclusiveMaximum"]
        )
    if schema["type"] == "string":
        long = schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", math.inf)
        return long and ("pattern" not in schema or re.search(schema["pattern"], value) is not None)
    if schema["type"] == "array":
        count = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf)
        return count and (not schema.get("uniqueItems") or all(one not in value[:i] for i, one in enumerate(value)))
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": _is_number,
    "integer": lambda value: _is_number(value) and value == int(value),  # 2.0 is one, says JSON Schema
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def describe(schema: Schema) -> str:
    """What is expected, in words."""
    if "anyOf" in schema:
        return ", or ".join(describe(one) for one in schema["anyOf"])
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    kind = schema["type"]
    if kind in ("integer", "number"):
        below = f" to below {schema['exclusiveMaximum']}" if "exclusiveMaximum" in schema else ""
        most = f" to {schema['maximum']}" if "maximum" in schema else below
        least = f" from {schema['minimum']}" if "minimum" in schema else ""
        return f"a {'whole ' if kind == 'integer' else ''}number{least}{most}"
    if kind == "string":
        most = f" of at most {schema['maxLength']:,} letters" if "maxLength" in schema else ""
        return f"a text{most}{', not blank' if 'pattern' in schema else ''}"
    if kind == "array":
        return f"a list of {describe(schema['items'])}{', each once' if schema.get('uniqueItems') else ''}"
    return {"boolean": "true or false", "null": "null", "object": "an object"}[kind]


def _unfit(value: Any, schema: Schema, where: str, guess: str = "") -> Refused:
    came = json.dumps(value, ensure_ascii=True)
    came = f"{came[:60]}…" if len(came) > 60 else came
    return Refused("invalid", f"{where or 'the question'} must be {describe(schema)}; got {came}.{guess}")
