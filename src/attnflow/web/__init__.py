"""web: the viewer as a live tool, and the same over JSON. `app` is the ASGI application, `serve` runs it.

Nothing heavy is imported until a name is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attnflow.errors import needing
from attnflow.web._limits import Limits

if TYPE_CHECKING:
    from attnflow.web._app import app
    from attnflow.web._models import Served
    from attnflow.web._serve import serve

__all__ = ["Limits", "Served", "app", "serve"]

_HOMES = {"Served": "_models", "app": "_app", "serve": "_serve"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing("attnflow.web", "app", ("starlette", "uvicorn", "anyio", "h11")):
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
