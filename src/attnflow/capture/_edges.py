"""What `edges=` and `residual=` mean: which reader watches the run, and what is on record about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import torch

from attnflow.capture import rules
from attnflow.capture._by_rule import ByRule, check_heads
from attnflow.capture._stream import Record, Stream
from attnflow.capture.rules._attention import Attention
from attnflow.capture.rules._rule import RuleFunction
from attnflow.errors import InvalidArgument, suggest
from attnflow.mixing import EDGES

OWN = "own"
PAPER = 0.5  # Abnar & Zuidema 2020, section 3


@dataclass(frozen=True, eq=False)
class Choice:
    """The edge rule, as `mix` knows it (`edges`) or as a function over records (`rule`), and the residual rule."""

    edges: str  # for mix: what is left to do where all heads were recorded
    name: str  # for the record
    rule: RuleFunction | None
    residual: Any  # a number, numbers, None, or a residual rule's name
    heads: Any
    signed: bool = False

    @property
    def measured(self) -> str | None:
        """The residual rule, if it is one that the model is asked for."""
        return self.residual if isinstance(self.residual, str) and self.residual != OWN else None

    def reader(self, dtype: torch.dtype | None) -> Stream | Record | ByRule:
        """A reader for one run."""
        if EDGES[self.edges].needs_gradients:
            first = ByRule(None, self.name, self.heads, self.measured) if self.measured else None
            return Record(gradients=True, first=first)
        if self.rule is not None:
            return ByRule(self.rule, self.name, self.heads, self.measured)
        if self.measured:
            return ByRule(Attention(self.heads), self.name, self.heads, self.measured)
        return Stream(self.heads, dtype)


def chosen(edges: Any, residual: Any, heads: Any, **options: str | None) -> Choice:
    """The choice that these arguments of `capture.graph` describe."""
    given = {name: value for name, value in options.items() if value is not None}
    measures = isinstance(residual, str)
    if measures and residual != OWN and residual not in rules.RESIDUAL_NAMES:
        raise InvalidArgument(f"unknown residual rule {residual!r}." + suggest(residual, (OWN, *rules.RESIDUAL_NAMES)))
    own = measures and residual == OWN
    if isinstance(edges, str) and edges in EDGES:
        _check_options(edges, given, "")
        return Choice(edges, edges, None, PAPER if own else residual, heads)
    rule = _rule(edges, given)
    name = str(getattr(rule, "name", None) or getattr(rule, "__name__", type(rule).__name__))
    if isinstance(edges, str):
        name = edges if ":" in edges else ":".join([edges, *given.values()])
    if name in rules.variants() or hasattr(rule, "name"):
        check_heads(heads, name)
    if own and not getattr(rule, "residual", False):
        residual = PAPER
    if (
        not own
        and is_dataclass(rule)
        and not isinstance(rule, type)
        and any(one.name == "residual" for one in fields(rule))
    ):
        rule = replace(rule, residual=False)
    return Choice("attention", name, rule, residual, heads, bool(getattr(rule, "signed", False)))


def _rule(edges: Any, given: dict[str, str]) -> Any:
    """A rule by its name, or a function as it is."""
    if callable(edges):
        _check_options(getattr(edges, "__name__", type(edges).__name__), given, "")
        return edges
    if not isinstance(edges, str) or edges not in rules.variants():
        raise InvalidArgument(f"unknown edge rule {edges!r}." + suggest(edges, [*EDGES, *rules.variants()]))
    name, of_variant = rules.split(edges)
    entry = rules.RULES[name]
    _check_options(edges, given, "" if of_variant else entry.option)
    make: Callable[..., Any] = getattr(rules, entry.class_name)
    return make(**of_variant, **given)


def _check_options(name: str, given: dict[str, str], known: str) -> None:
    for option in given:
        if option != known:
            raise InvalidArgument(
                f"the edge rule {name} has no option {option}." + (f" It has {known}." if known else "")
            )
