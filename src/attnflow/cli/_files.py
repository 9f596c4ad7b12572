"""Files of attnflow, whatever they hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attnflow.errors import InvalidArgument, InvalidArtifact

if TYPE_CHECKING:
    from attnflow.attribution import Attribution
    from attnflow.graph import AttentionGraph
    from attnflow.stack import AttentionStack

MADE_BY = {
    "stack": "attnflow capture --every-head",
    "graph": "attnflow capture",
    "attribution": "attnflow attribute, or attnflow explain -o",
}


def load(path: str, *kinds: str) -> AttentionStack | AttentionGraph | Attribution:
    """The stack, graph or attribution in a file, if it is one of these kinds."""
    from attnflow.attribution import Attribution
    from attnflow.graph import AttentionGraph
    from attnflow.stack import AttentionStack

    types: dict[str, Any] = {"stack": AttentionStack, "graph": AttentionGraph, "attribution": Attribution}
    kind = _kind_of(path)
    if kind in types and kind not in kinds:
        wanted = " or ".join(f"{_a(one)} ({MADE_BY[one]})" for one in kinds)
        raise InvalidArtifact(f"{path} holds {_a(kind)}, and this needs {wanted}.")
    found: AttentionStack | AttentionGraph | Attribution = types.get(kind, types[kinds[0]]).load(path)
    return found


def graph_in(path: str, mixing: Mapping[str, Any], wanted: Mapping[str, Any] | None = None) -> AttentionGraph:
    """The graph in a file; a stack is mixed as `mixing` says, and as is `wanted` where that says nothing."""
    from attnflow.graph import AttentionGraph
    from attnflow.mixing import mix

    found = load(path, "graph", "stack")
    if not isinstance(found, AttentionGraph):
        return mix(found, **{**(wanted or {}), **mixing})  # type: ignore[arg-type]
    if mixing:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in mixing)
        raise InvalidArgument(
            f"{path} holds a graph, whose heads are mixed already, so {names} cannot apply. Give it to `attnflow capture`, "
            "or capture with --every-head."
        )
    return found


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _kind_of(path: str) -> str:
    """What the header says; nothing, where there is none to read: the loader then says what is wrong with the file."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as content:  # reads no array but the one that is asked for
            return str(json.loads(content["header"].tobytes())["kind"])
    except Exception:
        return ""
