"""Methods of one's own that workers can import, and that end their worker."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import attnflow as af


def deadly(graph: af.AttentionGraph, queries: Any = None, levels: Any = None) -> af.Attribution:
    """At a certain word, each time."""
    if "with" in graph.tokens.labels:
        os._exit(9)
    return af.rollout(graph, queries, levels)


def killed_once(graph: af.AttentionGraph, queries: Any = None, levels: Any = None, *, flag: str) -> af.Attribution:
    """As by kill -9, by the first worker that comes to long texts."""
    if len(graph.tokens) > 20 and not Path(flag).exists():
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return af.rollout(graph, queries, levels)
