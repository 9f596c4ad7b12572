"""Which call is which level: names, kinds, and the layers that have no attention.

A module may be called several times (ALBERT shares one layer), carry no layer index, or sit next to layers of
another kind (Jamba, Qwen3-Next). So levels follow the order of the calls, and names come from the modules' paths.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from attnflow.capture._image_text import CROSSING, TOWERS, family_of, sees
from attnflow.errors import CaptureError

_CROSS = re.compile(r"cross|encoder_attn|enc_?dec|encoder_decoder", re.IGNORECASE)


@dataclass(eq=False)
class Seen:
    """What was kept of one attention call: a matrix (batch, queries, keys), or (batch, heads, queries, keys).

    With `sink`, one more column holds the share that a sink takes. `path` is empty where the weights came from a
    model's output, which names `side` and `cross` itself.
    """

    path: str
    weights: Any
    sink: bool = False
    side: str = ""  # "encoder" or "decoder" of an encoder-decoder model
    cross: bool = False
    gradients: Any = None
    own: Any = None  # (batch, queries): what a query keeps of itself beside the matrix
    alpha: Any = None  # (batch, queries): the share of the residual, where it was measured
    causal: bool = False  # known of modules from outside transformers: no position sees a later one

    @property
    def queries(self) -> int:
        """The length of the query axis."""
        return int(self.weights.shape[-2])

    @property
    def keys(self) -> int:
        """The length of the key axis, the sink not counted."""
        return int(self.weights.shape[-1]) - self.sink


@dataclass(frozen=True, eq=False)
class Level:
    """One level of the graph to be: its name and kind, and what was seen there (None: a layer without attention)."""

    name: str
    kind: str
    seen: Seen | None
    side: str = ""
    cross: bool = False


def levels_of(model: torch.nn.Module, calls: Sequence[Seen]) -> list[Level]:
    """The calls of one run, in order, as named levels; layers without attention take their place among them."""
    for call in calls:
        if call.path and not call.side:
            call.side, call.cross = place_of(model, call.path, call.queries != call.keys)
    places = [_place(model, call.path) for call in calls]
    shared = len({call.path for call in calls}) < len(calls) or not all(places)
    levels: list[Level] = []
    counted: Counter[tuple[str, bool]] = Counter()
    for number, (call, place) in enumerate(zip(calls, places, strict=True)):
        if shared or place is None:
            index = counted[call.side, call.cross]
            counted[call.side, call.cross] += 1
        else:
            before = places[number - 1] if number else None
            start = before[1] + 1 if before and before[0] == place[0] else 0
            levels += [_without(call, i) for i in range(start, place[1])]
            index = place[1]
        levels.append(_with(call, index))
        after = places[number + 1] if number + 1 < len(places) else None
        if not shared and place and (after is None or after[0] != place[0]):
            levels += [_without(call, i) for i in range(place[1] + 1, place[2])]
    named = _told_apart(levels)
    family = family_of(model)
    return [_image_or_text(level, family) for level in named] if family in (TOWERS, CROSSING) else named


def _image_or_text(level: Level, family: str) -> Level:
    """The encoder is the eye and the decoder the reader, which in a tower of its own attends to nothing but itself."""
    words = {"encoder": "image", "decoder": "text"}
    name, kind = (" ".join(words.get(word, word) for word in text.split()) for text in (level.name, level.kind))
    return replace(level, name=name.removesuffix(" self") if family == TOWERS else name, kind=kind)


def place_of(model: torch.nn.Module, path: str, unequal: bool) -> tuple[str, bool]:
    """Which side of an encoder-decoder model a call is on, and whether it attends to the other side's positions."""
    if family_of(model) in (TOWERS, CROSSING):
        side = "encoder" if sees(path) else "decoder"
        return side, side == "decoder" and bool(_CROSS.search(_own_name(path)))
    if not getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        return "", False
    side = _side(path)
    return side, side == "decoder" and (bool(_CROSS.search(_own_name(path))) or unequal)


def _with(call: Seen, index: int) -> Level:
    what = "cross" if call.cross else "self"
    if not call.side:
        return Level(f"layer {index}", "self", call)
    name = f"encoder {index}" if call.side == "encoder" else f"decoder {index} {what}"
    return Level(name, f"{call.side} {what}", call, call.side, call.cross)


def _without(neighbour: Seen, index: int) -> Level:
    """A layer that mixes positions in another way or not at all; its neighbour says where it is."""
    return Level(
        f"{neighbour.side or 'layer'} {index} (no attention)",
        f"{neighbour.side} identity".strip(),
        None,
        neighbour.side,
    )


def _told_apart(levels: list[Level]) -> list[Level]:
    """Two calls of one layer get two names."""
    seen: Counter[str] = Counter()
    named = []
    for level in levels:
        seen[level.name] += 1
        name = level.name if seen[level.name] == 1 else f"{level.name} ({seen[level.name]})"
        named.append(Level(name, level.kind, level.seen, level.side, level.cross))
    return named


def _side(path: str) -> str:
    """The first part of the path that says so: `decoder.bert.encoder.layer.0` is in the decoder."""
    for part in path.split("."):
        if "decoder" in part:
            return "decoder"
        if "encoder" in part:
            return "encoder"
    raise CaptureError(f"cannot tell whether {path!r} is in the encoder or the decoder: neither word is in its name.")


def beside(path: str, others: Sequence[str]) -> bool:
    """Whether a module is in the same list of layers as one of the others (all before the first number is alike)."""
    start = re.split(r"\b\d+\b", path)[0]
    return any(re.split(r"\b\d+\b", other)[0] == start for other in others)


def _own_name(path: str) -> str:
    """The attention module's name within its layer."""
    return re.split(r"\.\d+\.", path)[-1]


def _place(model: torch.nn.Module, path: str) -> tuple[str, int, int] | None:
    """(the list of layers that it is in, its index there, the list's length)."""
    found = re.match(r"(.*?)\.?\b(\d+)(?:\.|$)", path)
    if not found:
        return None
    container = model.get_submodule(found[1])
    if not isinstance(container, torch.nn.ModuleList):
        return None
    return found[1], int(found[2]), len(container)
