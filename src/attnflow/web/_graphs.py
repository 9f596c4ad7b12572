"""The graphs captured last, so that another method or a pair of the same input needs no second run of the model."""

from __future__ import annotations

import threading
from collections import OrderedDict

from attnflow.graph import AttentionGraph


class Graphs:
    """A few megabytes of them, in memory only, by a key from which the text cannot be read; the oldest leave first."""

    def __init__(self, megabytes: float) -> None:
        self._room = megabytes * 1e6
        self._kept: OrderedDict[str, AttentionGraph] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> AttentionGraph | None:
        """The graph of this key, if it is still here."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: str, graph: AttentionGraph) -> None:
        """Keep a graph as long as there is room."""
        with self._lock:
            self._kept[key] = graph
            self._kept.move_to_end(key)
            while self._kept and sum(one.levels.nbytes for one in self._kept.values()) > self._room:
                self._kept.popitem(last=False)
