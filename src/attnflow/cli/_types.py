"""What may stand after an option: names with suggestions, positions or tokens, levels, heads, residuals.

Each knows how to turn a word into what the library takes, and imports what it needs for that only when it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from click.shell_completion import CompletionItem

from attnflow.errors import suggest

if TYPE_CHECKING:
    Kind: TypeAlias = click.ParamType[Any]
else:  # which older versions of click cannot subscript
    Kind = click.ParamType


class Name(Kind):
    """One of some names, which may be dear to look up; an unknown one is answered with the nearest."""

    def __init__(self, name: str, known: Callable[[], Iterable[str]]) -> None:
        self.name, self._known = name, known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, if it is known."""
        names = list(self._known())
        if value not in names:
            self.fail(f"unknown {self.name} {value!r}.{suggest(value, names)}", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin like this."""
        return [CompletionItem(name) for name in self._known() if name.startswith(incomplete)]


class Query(Kind):
    """A position, or a token."""

    name = "TOKEN|INDEX"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """A whole number is a position, anything else a token."""
        try:
            return int(value)
        except ValueError:
            return str(value)


class Level(Kind):
    """A level, or all of them."""

    name = "N|all"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """A whole number (negative: from the top) or "all"."""
        if value == "all":
            return "all"
        try:
            return int(value)
        except ValueError:
            self.fail(f"a level is a whole number (-1 is the top one) or all, got {value!r}.", param, ctx)


class Heads(Kind):
    """How heads are mixed: a name, one head's number, or weights."""

    name = "mean|max|min|N|W,W,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As `mix` takes it."""
        text = str(value)
        if "," in text:
            return _numbers(self, text, param, ctx)
        if text.lstrip("-").isdigit():
            return int(text)
        if text not in ("mean", "max", "min"):
            self.fail(
                f"heads are mixed by a name, a head's number or weights 0.2,0.8,…; got {text!r}."
                + suggest(text, ("mean", "max", "min")),
                param,
                ctx,
            )
        return text


class Residual(Kind):
    """The share of the residual connection: for all, for each layer, none, or measured in the model."""

    name = "SHARE|none|S,S,…|measured|w_res|own"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As `mix` takes it; 0 and none are the same."""
        text = str(value)
        if text == "none":
            return 0.0
        if text in residual_names():
            return text
        found = _numbers(self, text, param, ctx)
        return found if "," in text else found[0]


class Aside(Kind):
    """Positions or tokens that nobody else takes from, or the sinks of each level."""

    name = "sinks|TOKEN|INDEX,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As `mix` takes it."""
        if value == "sinks" or not isinstance(value, str):
            return value
        return [int(part) if part.lstrip("-").isdigit() else part for part in value.split(",")]


def _numbers(kind: Kind, text: str, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        kind.fail(f"expected {kind.name}, got {text!r}.", param, ctx)


def method_names() -> list[str]:
    """The methods there are."""
    from attnflow.methods import METHODS

    return list(METHODS)


def edge_names() -> list[str]:
    """The edge rules there are: those over recorded attention, and those that read the model's layers."""
    from attnflow.capture import rules
    from attnflow.mixing import EDGES

    return [*EDGES, *rules.variants()]


def residual_names() -> list[str]:
    """The residual rules there are."""
    from attnflow.capture import rules

    return ["own", *rules.RESIDUAL_NAMES]
