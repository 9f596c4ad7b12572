"""serve: run the application until somebody stops it."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterable

import uvicorn
from starlette.applications import Starlette

from attnflow.errors import InvalidArgument
from attnflow.web._app import app
from attnflow.web._guard import Guard, is_loopback
from attnflow.web._limits import Limits
from attnflow.web._log import say, to_stderr
from attnflow.web._models import Models
from attnflow.web._protocol import ImpatientProtocol
from attnflow.web._runs import Runs

CONNECTIONS = 500  # at once; uvicorn answers more with 503
LAST = 3.0  # seconds for stopped runs to say so


def serve(
    models: Models = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8321,
    token: str | None = None,
    hosts: Iterable[str] = (),
    limits: Limits | None = None,
    quiet: bool = False,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve `app` on this host and port (0: any free one) until Ctrl-C or SIGTERM; the options are those of `app`.

    `ready` is called with the address once requests are answered. The log goes to stderr, as JSON lines without texts.
    When it stops, runs under way get `limits.stopping` seconds to finish.
    """
    limits = limits or Limits()
    hosts = tuple(hosts)
    Guard(host, token, hosts)  # before anything is loaded, whether it may be
    listening = _listening(host, port)
    to_stderr(quiet=quiet)
    try:
        made = app(models, limits=limits, host=host, token=token, hosts=hosts)
        server = _Server(configured(made, limits), made.state.runs, limits.stopping, lambda: _started(listening, ready))
        # uvicorn raises the signal that stopped it once more when it is done.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            server.run([listening])
        except KeyboardInterrupt:
            pass
        finally:
            signal.signal(signal.SIGTERM, before)
    finally:
        listening.close()
    say("stopped", {})


def configured(made: Starlette, limits: Limits) -> uvicorn.Config:
    """How uvicorn runs the application: HTTP/1.1 and nothing else, silent, impatient."""
    return uvicorn.Config(
        made, http=ImpatientProtocol, ws="none", loop="asyncio", lifespan="on", log_config=None, access_log=False,
        server_header=False, proxy_headers=False, limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=int(limits.stopping + LAST) + 1,
    )  # fmt: skip


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host.strip("[]"), port))
        made.listen(256)
    except (OSError, OverflowError) as error:
        made.close()
        reason = getattr(error, "strerror", None) or error
        raise InvalidArgument(
            f"cannot listen on {host}, port {port}: {reason}. Choose another --port (0: any free one)."
        ) from None
    return made


def _started(listening: socket.socket, ready: Callable[[str], None] | None) -> None:
    host, port = listening.getsockname()[:2]
    shown = "127.0.0.1" if is_loopback(host) and ":" not in host else f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}/"
    say("listening", {"address": address})
    if ready is not None:
        ready(address)


class _Server(uvicorn.Server):
    """Says when it has started, and stops in order: no new runs, some seconds for those under way, then they are stopped."""

    def __init__(self, config: uvicorn.Config, runs: Runs, patience: float, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._runs, self._patience, self._say_started = runs, patience, started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn starts."""
        await super().startup(sockets)
        if self.started:
            self._say_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn stops."""
        self._runs.stopping = True
        say("stopping", {"running": self._runs.running, "waiting": self._runs.waiting})
        later = asyncio.get_running_loop().call_later(self._patience, self._runs.stop)
        await super().shutdown(sockets)
        later.cancel()
