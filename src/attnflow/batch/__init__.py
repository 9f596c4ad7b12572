"""batch: many inputs to Parquet, on all cores of this machine or on a Ray cluster."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attnflow.errors import needing

if TYPE_CHECKING:
    from attnflow.batch._run import Summary, run
    from attnflow.batch._schema import SCHEMA

__all__ = ["SCHEMA", "Summary", "run"]

_HOMES = {"run": "_run", "Summary": "_run", "SCHEMA": "_schema"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing("attnflow.batch", "batch", ("pyarrow",)):
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
