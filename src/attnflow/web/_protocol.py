"""HTTP as uvicorn speaks it, and no patience with whoever connects and does not say what they want."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 10.0  # seconds for the head of a request


class ImpatientProtocol(H11Protocol):
    """Closes a connection whose first request has not come after a while; uvicorn itself would wait for ever.

    Bodies have a time limit of their own, and connections that are kept alive have uvicorn's.
    """

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Somebody connected."""
        super().connection_made(transport)
        self._patience = self.loop.call_later(PATIENCE, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Somebody left."""
        if self._patience is not None:
            self._patience.cancel()
        super().connection_lost(exc)

    def _give_up(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()
