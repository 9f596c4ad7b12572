"""app: the ASGI application."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware

from attnflow.web._answer import Answers
from attnflow.web._api import Api
from attnflow.web._gate import Gate
from attnflow.web._guard import Guard
from attnflow.web._image import blank
from attnflow.web._limits import Limits
from attnflow.web._log import frames, say
from attnflow.web._models import Models, served
from attnflow.web._openapi import openapi
from attnflow.web._pages import page_routes
from attnflow.web._question import question
from attnflow.web._runs import Runs
from attnflow.web._watch import Watch

PATIENCE = 120.0  # seconds for the first question to each model, in which much is compiled and imported


def app(
    models: Models = None,
    *,
    limits: Limits | None = None,
    host: str = "127.0.0.1",
    token: str | None = None,
    hosts: Iterable[str] = (),
) -> Starlette:
    """The live viewer and its JSON API, as an application for any ASGI server. The models are loaded here, once.

    `models`: folders or hub names, or {name: folder, hub name or Served}; None is the bundled model. No other is ever
    loaded, whatever a request says. `host` is where the server will listen: anywhere but on this machine's loopback it needs
    a `token`. `hosts` are further names by which browsers will know it (a proxy's).
    """
    limits = limits or Limits()
    guard = Guard(host, token, hosts)
    answers = Answers(served(models), limits)
    runs = Runs(limits)
    api = Api(answers, runs, guard)
    routes = [*api.routes(), *page_routes(openapi(api))]
    paths = frozenset(route.path for route in routes)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await asyncio.to_thread(_warm_up, api)
        yield
        runs.stop()

    made = Starlette(routes=routes, lifespan=lifespan, middleware=[Middleware(Gate, guard=guard, paths=paths)])
    made.state.runs = runs
    return made


def _warm_up(api: Api) -> None:
    """Ask every model once, so that what is compiled or imported at first use is there when somebody waits."""
    for name, one in api.answers.models.items():
        shown = {"image": blank()} if one.reads != "text" else {}
        shown |= {"text": "warm"} if one.reads != "image" else {}
        asked = question({"model": name, **shown, "methods": ["flow"]}, api.explain_schema)
        watch = Watch(max(api.limits.seconds, PATIENCE))
        watch.start()
        try:
            api.answers.explain(asked, watch)
        except Exception as error:  # whoever asks this model will be told; the others work
            say("warm-up failed", {"model": name, "exception": frames(error)}, logging.WARNING)
