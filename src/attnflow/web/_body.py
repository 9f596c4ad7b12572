"""Reading a body: as JSON, no larger and no slower than allowed."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NoReturn

from starlette.requests import ClientDisconnect, Request

from attnflow.web._limits import Limits
from attnflow.web._refused import Gone, Refused

CLOSE = {"Connection": "close"}  # what was not read would be taken for the next request


async def read_json(request: Request, limits: Limits) -> Any:
    """The body of a request. Other media types are refused, which also keeps forms of other sites out."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(
            "not_json_type", f"the body must be sent as application/json, got {kind[:60] or 'no type'!r}.", CLOSE
        )
    content = await _read(request, limits)
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        where = f" at letter {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise Refused("not_json", f"the body is not JSON in UTF-8{where}.") from None


async def _read(request: Request, limits: Limits) -> bytes:
    promised = request.headers.get("content-length", "0")
    if promised.isdigit() and int(promised) > limits.body:
        raise _too_large(limits)
    content = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                content += chunk
                if len(content) > limits.body:
                    raise _too_large(limits)
    except TimeoutError:
        raise Refused(
            "too_slow", f"the body did not arrive within {limits.body_seconds:g} seconds. Send it at once.", CLOSE
        ) from None
    except ClientDisconnect:
        raise Gone from None
    return bytes(content)


def _too_large(limits: Limits) -> Refused:
    return Refused("too_large", f"a body may have at most {limits.body:,} bytes. Send a shorter input.", CLOSE)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
