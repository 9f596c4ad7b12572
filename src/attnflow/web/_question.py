"""Question: what a request asks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attnflow.methods import wanted_mixing
from attnflow.web._schema import Schema, check


@dataclass(frozen=True)
class Question:
    """A checked question. `mixing` are the options of capture and mix; `pair` is (query, input) of a flow."""

    model: str
    text: str | None
    second: str | None
    image: str | None
    mixing: Mapping[str, Any]
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

    @property
    def captured(self) -> str:
        """The same for two questions that the same capture answers; nothing can be read from it."""
        content = json.dumps([self.model, self.texts, self.image, sorted(self.mixing.items())])
        return hashlib.sha256(content.encode()).hexdigest()


def question(asked: Any, schema: Schema) -> Question:
    """A body as a Question, checked by the schema that the API's description shows."""
    check(asked, schema)
    given = {name: one["default"] for name, one in schema["properties"].items() if "default" in one} | dict(asked)
    usual = {name: given[name] for name in ("edges", "heads", "residual")}
    # What the methods stand on (relevance adds its own residual) takes the place of a default, not of a choice.
    mixing = usual | wanted_mixing(*given.get("methods", ())) | {name: asked[name] for name in usual if name in asked}
    mixing |= {name: given[name] for name in ("target", "top_k", "threshold", "discard") if given.get(name) is not None}
    mixing |= {"drop_special": True} if given["drop_special"] else {}
    return Question(
        model=given["model"],
        text=given.get("text"),
        second=given.get("second"),
        image=given.get("image"),
        mixing={name: _whole(value) for name, value in mixing.items()},
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
