"""Question: what a request asks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attnflow.methods import wanted_mixing
from attnflow.web._schema import Schema, check

USUAL = ("edges", "heads", "residual")  # which have a default
OPTIONAL = ("target", "top_k", "threshold", "discard")


@dataclass(frozen=True)
class Question:
    """A checked question. `chosen` are the options of capture and mix that it names, `usual` the others; `pair` is (query,
    input) of a flow.
    """

    model: str
    text: str | None
    second: str | None
    image: str | None
    usual: Mapping[str, Any]
    chosen: Mapping[str, Any]
    methods: tuple[str, ...]
    query: int | str | None
    level: int
    rows: str
    difference: bool
    pair: tuple[int | str, int | str] | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """What the model reads."""
        return tuple(text for text in (self.text, self.second) if text is not None)

    @property
    def letters(self) -> int:
        """How long the texts are, which is all that the log says of them."""
        return sum(map(len, self.texts))

    def mixing(self, method: str | None) -> dict[str, Any]:
        """How the graph of a method is made: what it stands on takes the place of what is usual, not of a choice."""
        return {**self.usual, **(wanted_mixing(method) if method else {}), **self.chosen}

    def captured(self, method: str | None) -> str:
        """The same for two questions that the same capture answers; nothing can be read from it."""
        content = json.dumps([self.model, self.texts, self.image, sorted(self.mixing(method).items())])
        return hashlib.sha256(content.encode()).hexdigest()


def question(asked: Any, schema: Schema) -> Question:
    """A body as a Question, checked by the schema that the API's description shows."""
    check(asked, schema)
    given = {name: one["default"] for name, one in schema["properties"].items() if "default" in one} | dict(asked)
    chosen = {name: asked[name] for name in (*USUAL, *OPTIONAL) if asked.get(name) is not None}
    chosen |= {"residual": None} if "residual" in asked and asked["residual"] is None else {}
    chosen |= {"drop_special": True} if given["drop_special"] else {}
    return Question(
        model=given["model"],
        text=given.get("text"),
        second=given.get("second"),
        image=given.get("image"),
        usual={name: given[name] for name in USUAL},
        chosen={name: _whole(value) for name, value in chosen.items()},
        methods=tuple(given.get("methods", ())),
        query=_whole(given.get("query")),
        level=int(given["level"]),
        rows=given.get("rows", "auto"),
        difference=given.get("difference", False),
        pair=(_whole(given["query"]), _whole(given["input"])) if "input" in given else None,
    )


def _whole(value: Any) -> Any:
    """A position, a head or a count that came as 2.0; shares are left alone, since 1.0 and 1 mean the same there."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
