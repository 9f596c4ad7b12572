"""The flow of a pair in a terminal."""

from __future__ import annotations

from attnflow.render._colour import colour
from attnflow.render._terminal_brush import Brush, more
from attnflow.render._view import FlowView, number, path_in_words


def flow(brush: Brush, view: FlowView, top: int | None) -> None:
    """The value, what limits it, and the largest paths."""
    from rich.text import Text

    brush.line(Text(f"flow: {view.sentence}", style="bold"))
    brush.line(view.limit)
    if view.caption:
        brush.line(Text(view.caption, style="dim"))
    brush.line("")
    largest = view.paths[0].amount if view.paths else 1.0
    if view.paths:
        brush.line(Text("the largest paths, from the query down (→₃ is a step at level 3)", style="bold"))
    for path in view.paths[:top]:
        text = Text(f"{number(path.amount):>9} ", style="bold")
        bar = brush.bar(path.amount / largest, 8, colour(0.55, brush.theme))
        text.append_text(bar).append(" " * (9 - bar.cell_len), style="not bold")
        text.append(path_in_words(path, view.labels), style="not bold")
        brush.line(text)
    rest = len(view.paths) - len(view.paths[:top])
    if rest:
        brush.line(Text(f"{more(rest, 'path')}, {number(sum(p.amount for p in view.paths[top:]))} in all", style="dim"))
    cut = sorted((edge for edge in view.edges if edge.cut), key=lambda edge: -edge.flow)
    if cut:
        brush.line("")
        brush.line(Text("the minimum cut", style="bold"))
        for edge in cut[:top]:
            brush.line(
                f"{number(edge.flow):>9} {view.levels[edge.level]}: {view.labels[edge.query]} ← {view.labels[edge.key]}"
            )
        if len(cut) > len(cut[:top]):
            brush.line(Text(more(len(cut) - len(cut[:top]), "edge"), style="dim"))
