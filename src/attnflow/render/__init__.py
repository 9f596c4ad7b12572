"""From attributions to pictures: terminal, figure, page, widget. Core types never draw themselves; these read them.

An attribution is first described as a `View`, plain numbers and words, and the back ends know only views.
"""

from __future__ import annotations

from attnflow.images import Picture
from attnflow.render._describe import difference, view
from attnflow.render._document import document
from attnflow.render._figure import figure
from attnflow.render._overlay import overlay
from attnflow.render._page import asset, page
from attnflow.render._terminal import terminal
from attnflow.render._view import FlowView, View
from attnflow.render._widget import widget

__all__ = [
    "FlowView",
    "Picture",
    "View",
    "asset",
    "difference",
    "document",
    "figure",
    "overlay",
    "page",
    "terminal",
    "view",
    "widget",
]
