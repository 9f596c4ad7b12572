"""Gate: the outermost layer of the application. Every request is checked, answered, given its headers and logged here."""

from __future__ import annotations

import logging
import secrets
import time
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attnflow.errors import AttnflowError
from attnflow.web._guard import PAGES, Guard
from attnflow.web._log import frames, say
from attnflow.web._pages import sign_in_page
from attnflow.web._refused import Gone, Refused

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)


class Gate:
    """ASGI middleware. What goes wrong inside becomes an answer; the server goes on."""

    def __init__(self, app: ASGIApp, guard: Guard, paths: frozenset[str]) -> None:
        self.app, self.guard, self.paths = app, guard, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start = time.perf_counter()
        said: dict[str, Any] = {"id": secrets.token_hex(6), "method": scope["method"], "path": self._path(scope)}
        scope["attnflow.log"] = said

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                said["status"] = message["status"]
                kept = [*message.get("headers", ()), *HEADERS, (b"x-request-id", said["id"].encode())]
                if not any(name == b"cache-control" for name, _ in kept):
                    kept.append((b"cache-control", b"no-store"))
                message = {**message, "headers": kept}
            await send(message)

        try:
            await self._answered(scope, receive, send_with_headers, said)
        finally:
            said.setdefault("status", None)
            said["ms"] = round(1000 * (time.perf_counter() - start), 1)
            say("request", said, logging.ERROR if said["status"] == 500 else logging.INFO)

    async def _answered(self, scope: Scope, receive: Receive, send: Send, said: dict[str, Any]) -> None:
        try:
            self.guard.check(Request(scope))
            await self.app(scope, receive, send)
        except Gone:
            said["outcome"] = "the client left"
        except Exception as error:
            refused = as_refused(error)
            said["error"] = refused.code
            if refused.code == "failed":
                said["exception"] = frames(error)
            if "status" in said:  # the answer has begun: it ends here, which the client notices
                return
            page = refused.code == "unauthorised" and scope["path"] in PAGES
            await (sign_in_page() if page else refused.response())(scope, receive, send)

    def _path(self, scope: Scope) -> str:
        """The path, if it is one of this server; others are no business of the log, as they may hold a text."""
        path = scope["path"]
        return path if path in self.paths else "(other)"


def as_refused(error: Exception) -> Refused:
    """What is said about an exception. Of the unexpected ones nothing: they may name files."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, AttnflowError):
        return Refused("cannot_answer", str(error))
    if isinstance(error, HTTPException):
        code = {404: "not_found", 405: "not_allowed"}.get(error.status_code, "invalid")
        words = {
            "not_found": "there is nothing at this path; /docs lists what there is.",
            "not_allowed": "this path does not know this method; /docs lists what there is.",
        }
        return Refused(code, words.get(code, "this request cannot be read."), error.headers)
    return Refused(
        "failed", "something went wrong that should not, and was logged. Other questions are still answered."
    )
