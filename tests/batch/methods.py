"""Methods of one's own that workers can import: one that ends its process at a certain text, one that takes its time."""

from __future__ import annotations

import os
import time
from typing import Any

import attnflow as af


def deadly(graph: af.AttentionGraph, queries: Any = None, levels: Any = None) -> af.Attribution:
    if "with" in graph.tokens.labels:
        os._exit(9)
    return af.rollout(graph, queries, levels)


def slow(graph: af.AttentionGraph, queries: Any = None, levels: Any = None) -> af.Attribution:
    time.sleep(0.01)
    return af.rollout(graph, queries, levels)
