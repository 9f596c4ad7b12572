"""The widget: the viewer in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from attnflow.errors import MissingExtra
from attnflow.render._document import document
from attnflow.render._page import asset, embedded
from attnflow.render._shown import Shown


def widget(shown: Shown | Sequence[Shown], **options: Any) -> Any:
    """The page's viewer as an anywidget, for Jupyter, VS Code, Colab and marimo. The options are those of `page`.

    `widget.query` is the position that the reader pinned, and changes with it.
    """
    kind = _widget_class()
    plain = document(shown, **options)
    return kind(document=embedded(plain), query=plain["texts"][0]["query"])


@cache
def _widget_class() -> Any:
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise MissingExtra("anywidget, which notebook widgets need,", extra="notebook") from None

    class Viewer(anywidget.AnyWidget):
        """attnflow's viewer; `document` is its JSON, `query` the pinned position."""

        _esm = asset("viewer.js")
        _css = asset("viewer.css")
        document = traitlets.Unicode().tag(sync=True)
        query = traitlets.Int().tag(sync=True)

    return Viewer
