"""The JSON API."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from attnflow import __version__
from attnflow.web._answer import Answers
from attnflow.web._body import read_json
from attnflow.web._choices import choices
from attnflow.web._events import Events, wants_events, while_connected
from attnflow.web._forms import bottleneck_schema, explain_schema
from attnflow.web._guard import COOKIE, Guard
from attnflow.web._question import question
from attnflow.web._refused import Refused
from attnflow.web._runs import Runs
from attnflow.web._watch import Tell, Watch

JSON = "application/json"


class Api:
    """The endpoints, over answers and the runs in which they are made."""

    def __init__(self, answers: Answers, runs: Runs, guard: Guard) -> None:
        self.answers, self.runs, self.guard = answers, runs, guard
        self.limits = answers.limits
        self.explain_schema = explain_schema(answers.models, self.limits)
        self.bottleneck_schema = bottleneck_schema(answers.models, self.limits)

    def routes(self) -> list[Route]:
        """Where they are found."""
        return [
            Route("/api/explain", self.explain, methods=["POST"]),
            Route("/api/bottleneck", self.bottleneck, methods=["POST"]),
            Route("/api/choices", self.choices, methods=["GET"]),
            Route("/health", self.health, methods=["GET"]),
            Route("/sign-in", self.sign_in, methods=["POST"]),
        ]

    async def explain(self, request: Request) -> Any:
        """POST /api/explain: the document, or events that end with it."""
        asked = question(await read_json(request, self.limits), self.explain_schema)
        said = request.scope["attnflow.log"]
        said |= {"model": asked.model, "methods": asked.methods, "letters": asked.letters}

        async def run(tell: Tell | None = None) -> bytes:
            return await self.runs.run(
                lambda watch: self.answers.explain(asked, watch), Watch(self.limits.seconds, tell)
            )

        if wants_events(request):
            return Events(run, said)
        return Response(await while_connected(request.receive, run()), media_type=JSON)

    async def bottleneck(self, request: Request) -> Response:
        """POST /api/bottleneck: the flow of one pair."""
        asked = question(await read_json(request, self.limits), self.bottleneck_schema)
        request.scope["attnflow.log"] |= {"model": asked.model, "letters": asked.letters}
        run = self.runs.run(lambda watch: self.answers.bottleneck(asked, watch), Watch(self.limits.seconds))
        return Response(await while_connected(request.receive, run), media_type=JSON)

    async def choices(self, request: Request) -> Response:
        """GET /api/choices: what a question may choose from."""
        return JSONResponse(choices(self.answers.models, self.limits))

    async def health(self, request: Request) -> Response:
        """GET /health: whether it answers, and how much it has to do."""
        state = {"running": self.runs.running, "waiting": self.runs.waiting, "version": __version__}
        if self.runs.stopping:
            return JSONResponse({"status": "stopping", **state}, 503)
        return JSONResponse({"status": "ok", **state})

    async def sign_in(self, request: Request) -> Response:
        """POST /sign-in: a cookie for a token."""
        given = await read_json(request, self.limits)
        token = given.get("token") if isinstance(given, dict) else None
        if not self.guard.asks_token:
            raise Refused("not_found", "this server has no token, so there is nothing to sign in to.")
        if not isinstance(token, str) or not self.guard.is_token(token):
            await asyncio.sleep(0.5)  # guessing takes its time
            raise Refused(
                "unauthorised",
                "this is not the token that the server was started with.",
                {"WWW-Authenticate": "Bearer"},
            )
        answer = JSONResponse({"signed_in": True})
        secure = request.url.scheme == "https"
        answer.set_cookie(COOKIE, self.guard.cookie, httponly=True, samesite="lax", secure=secure, max_age=30 * 86_400)
        return answer
