"""Refusals: every status but 200, by a code that programs read and a sentence that people read."""

from __future__ import annotations

import json
from collections.abc import Mapping

from starlette.responses import Response

# What each code means, and the status that it comes with.
CODES: dict[str, tuple[int, str]] = {
    "not_json": (400, "The body is not JSON in UTF-8."),
    "invalid": (400, "The body is not of the form that the description asks for."),
    "unauthorised": (401, "This server asks for its token."),
    "cross_site": (403, "The request was sent by a page of another site."),
    "not_found": (404, "There is nothing at this path."),
    "not_allowed": (405, "This path does not know this method."),
    "too_slow": (408, "The body did not arrive in time."),
    "too_large": (413, "The body is larger than the server takes."),
    "not_json_type": (415, "The body must be sent as application/json."),
    "wrong_host": (421, "The Host header is not a name of this server."),
    "cannot_answer": (422, "The question is well formed, and has no answer with this model and this input."),
    "too_many_tokens": (422, "The input has more tokens than the server takes."),
    "too_long": (422, "The run took longer than the server gives to one, and was stopped."),
    "busy": (429, "As many runs wait already as the server lets wait."),
    "failed": (500, "Something went wrong that should not."),
    "stopping": (503, "The server is being stopped."),
}


class Refused(Exception):
    """Ends a request with this code; the message says what came, what is allowed and what to do."""

    def __init__(self, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.headers = code, message, dict(headers or {})
        self.status = CODES[code][0]

    @property
    def body(self) -> dict[str, str]:
        """As every error of the API looks."""
        return {"error": self.code, "message": self.message}

    def response(self) -> Response:
        """As an answer."""
        return Response(json.dumps(self.body), self.status, self.headers, "application/json")


class Gone(Exception):
    """The client has left; nobody waits for an answer."""
