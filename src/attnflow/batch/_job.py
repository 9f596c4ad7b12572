"""Job: what is computed for every row, checked before anything starts; what workers are sent."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from attnflow._explain import sorted_options
from attnflow.artifacts import jsonable
from attnflow.batch._model import DTYPES, described
from attnflow.capture import rules
from attnflow.errors import InvalidArgument, suggest
from attnflow.methods._table import method_called, wanted_mixing
from attnflow.mixing import EDGES, mix

Method = str | Callable[..., Any]


@dataclass(frozen=True)
class Job:
    """What is asked about each row. `capture` are the options of the capture, `apart` those of each method by itself."""

    model: Any = None
    methods: tuple[Method, ...] = ("rollout",)
    level: int | tuple[int, ...] | None = -1
    query: int | str | tuple[int | str, ...] | None = None
    tokenizer: Any = None
    processor: Any = None
    device: str | None = None
    dtype: str | None = None
    join_words: bool = False
    batch_size: int = 32
    capture: Mapping[str, Any] = field(default_factory=dict)
    apart: tuple[Mapping[str, Any], ...] = ({},)

    @classmethod
    def of(cls, method: Method | Iterable[Method], options: dict[str, Any], **given: Any) -> Job:
        """A job whose every option is known to something that runs."""
        methods = (method,) if isinstance(method, str) or callable(method) else tuple(method)
        if not methods:
            raise InvalidArgument("no method was asked for: give one, or a list.")
        for name in ("level", "query"):
            if isinstance(given[name], Iterable) and not isinstance(given[name], str):
                given[name] = tuple(given[name])
        size = given["batch_size"]
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InvalidArgument(f"batch_size must be a whole number from 1, got {size!r}.")
        if given["dtype"] is not None and given["dtype"] not in DTYPES:
            raise InvalidArgument(f"unknown dtype {given['dtype']!r}." + suggest(given["dtype"], DTYPES))
        capture, theirs = sorted_options(options)
        capture = wanted_mixing(*methods) | capture
        _check_capture(capture)
        return cls(methods=methods, capture=capture, apart=_shared_out(methods, theirs), **given)

    def described(self) -> dict[str, Any]:
        """All that the rows depend on, as JSON: what must be the same when a run goes on."""
        return {
            **described(self.model),
            "methods": [name_of(method) for method in self.methods],
            "level": jsonable(self.level),
            "query": jsonable(self.query),
            "tokenizer": _named(self.tokenizer),
            "processor": _named(self.processor),
            "dtype": self.dtype,
            "join_words": self.join_words,
            **{name: jsonable(value) for own in (self.capture, *self.apart) for name, value in own.items()},
        }


def name_of(method: Method) -> str:
    """A method's name."""
    return method if isinstance(method, str) else getattr(method, "__name__", repr(method))


def _check_capture(options: Mapping[str, Any]) -> None:
    for name in ("model", "inputs", "batch_size", "words"):
        if name in options:
            raise InvalidArgument(f"{name}= is not an option here: every row says what it is.")
    edges, known = options.get("edges", "attention"), [*EDGES, *rules.variants()]
    if not callable(edges) and edges not in known:
        raise InvalidArgument(f"unknown edge rule {edges!r}." + suggest(edges, known))


def _shared_out(methods: tuple[Method, ...], options: dict[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Each method's own options. One that no method has is a mistake; so are those that choose what a row is about."""
    functions = [method_called(method) for method in methods]
    known = [set(list(inspect.signature(function).parameters)[1:]) for function in functions]
    anything = [
        any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values()) for function in functions
    ]
    hidden = {"queries", "levels", "inputs", "threads", "progress"}
    for name in options:
        if name in hidden or not (any(anything) or any(name in own for own in known)):
            names = ", ".join(name_of(method) for method in methods)
            open_to = set().union(*known, inspect.signature(mix).parameters) - hidden
            raise InvalidArgument(f"unknown option {name!r} for {names}." + suggest(name, open_to))
    return tuple(
        {name: value for name, value in options.items() if free or name in own}
        for own, free in zip(known, anything, strict=True)
    )


def _named(given: Any) -> Any:
    if given is None or isinstance(given, str):
        return given
    return os.fspath(given) if isinstance(given, os.PathLike) else type(given).__name__
