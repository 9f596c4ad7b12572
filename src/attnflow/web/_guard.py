"""Guard: who may ask. The Host header, the page that a request was sent from, and the token.

A page of any site can make a browser send requests to a server on the same machine. It cannot choose the Host header
(which a rebound name would betray), nor hide its Origin or what browsers say in Sec-Fetch-Site.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.requests import Request

from attnflow.errors import InvalidArgument
from attnflow.web._refused import Refused

COOKIE = "attnflow"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
WILDCARDS = frozenset({"0.0.0.0", "::", ""})
SHORTEST_TOKEN = 16

OPEN = frozenset({"/health", "/sign-in"})  # without the token
PAGES = frozenset({"/", "/docs"})  # what a link on another site may lead to


class Guard:
    """Refuses what must not be asked. `hosts` are further names by which this server is known."""

    def __init__(self, host: str = "127.0.0.1", token: str | None = None, hosts: Iterable[str] = ()) -> None:
        self._local = is_loopback(host)
        if not self._local and not token:
            raise InvalidArgument(
                f"on {host!r} others can reach this server, so it needs a token. Give one, or stay on 127.0.0.1."
            )
        if token is not None and len(token) < SHORTEST_TOKEN:
            raise InvalidArgument(
                f"a token needs at least {SHORTEST_TOKEN} letters, got {len(token)}. Take a random one."
            )
        self._token = token
        self._any_address = host in WILDCARDS
        self._names = {name.lower() for name in hosts} | LOOPBACK
        if not self._local:
            self._names |= {_bracketed(host.lower()), socket.gethostname().lower()}

    @property
    def asks_token(self) -> bool:
        """Whether there is a token."""
        return self._token is not None

    def check(self, request: Request) -> None:
        """Refuse or let through."""
        self._check_host(request)
        self._check_origin(request)
        path = request.url.path
        if (
            self._token is not None
            and path not in OPEN
            and not path.startswith("/assets/")
            and not self._signed_in(request)
        ):
            raise Refused(
                "unauthorised",
                "this server asks for its token: Authorization: Bearer TOKEN.",
                {"WWW-Authenticate": "Bearer"},
            )

    def _check_host(self, request: Request) -> None:
        given = request.headers.getlist("host")
        name = _name_of(given[0]) if len(given) == 1 else None
        if name is None or not (name in self._names or (self._any_address and _is_address(name))):
            raise Refused(
                "wrong_host",
                "the Host header is not a name of this server. If it is, start the server with --allow-host NAME.",
            )

    def _check_origin(self, request: Request) -> None:
        origin = request.headers.get("origin")
        if origin is not None:
            own = request.headers["host"].lower()
            parts = urlsplit(origin.lower())
            if parts.scheme not in ("http", "https") or parts.netloc != own:
                raise _cross_site()
        site = request.headers.get("sec-fetch-site", "none")
        if site in ("same-origin", "none"):
            return
        navigates = request.headers.get("sec-fetch-mode") == "navigate" and request.method == "GET"
        if not (navigates and request.headers.get("sec-fetch-dest") == "document" and request.url.path in PAGES):
            raise _cross_site()

    def _signed_in(self, request: Request) -> bool:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.is_token(token.strip())
        return hmac.compare_digest(request.cookies.get(COOKIE, "").encode(), self.cookie.encode())

    def is_token(self, token: str) -> bool:
        """Whether this is the token; in the same time, whatever is wrong with it."""
        return self._token is not None and hmac.compare_digest(token.encode("utf-8", "replace"), self._token.encode())

    @property
    def cookie(self) -> str:
        """What a browser that signed in keeps: it follows from the token, which does not follow from it."""
        return hmac.new((self._token or "").encode(), b"attnflow cookie", hashlib.sha256).hexdigest()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _name_of(host: str) -> str | None:
    """The name in a Host header, without the port; None if it is none."""
    try:
        parts = urlsplit(f"//{host.lower()}")
        _ = parts.port  # raises if it is no number
    except ValueError:
        return None
    if not parts.hostname or parts.path or parts.query or parts.fragment or "@" in host:
        return None
    return _bracketed(parts.hostname)


def _bracketed(name: str) -> str:
    return f"[{name}]" if ":" in name and not name.startswith("[") else name


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _cross_site() -> Refused:
    return Refused("cross_site", "the request was sent by a page of another site, which this server does not answer.")
