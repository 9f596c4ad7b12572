"""What every picture in a terminal is painted with: grounds and inks, or marks where there is no colour; columns."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from unicodedata import bidirectional

from attnflow.render._colour import colour, ink

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

FAINT = 0.02  # of the scale: below, a token keeps the terminal's own colours
BARS = " ▁▂▃▄▅▆▇█"
EIGHTHS = " ▏▎▍▌▋▊▉"
SHADES = " ·░▒▓█"
LEFT_TO_RIGHT = "\u200e"


class Brush:
    """A console, whether it has colours, and its ground."""

    def __init__(self, console: Console, theme: str | None, width: int) -> None:
        self.console, self.width = console, width
        self.coloured = console.color_system is not None and not console.no_color
        ground = os.environ.get("COLORFGBG", "").rpartition(";")[2]
        self.theme = theme or ("light" if ground in ("7", "15") else "dark")

    def line(self, text: Text | str, style: str = "") -> None:
        """Print a line, folded where it is too long."""
        from rich.text import Text

        content = Text(text, style=style) if isinstance(text, str) else text
        self.console.print(content, width=self.width, highlight=False, overflow="fold", no_wrap=False)

    def style(self, share: float, *, signed: bool, apart: bool = False) -> str:
        """The colour of a share of the scale as a ground, and an ink that reads on it."""
        if not self.coloured or abs(share) < FAINT:
            return ""
        ground = colour(share, self.theme, signed=signed, apart=apart)
        return f"{ink(ground)} on #{ground[0]:02x}{ground[1]:02x}{ground[2]:02x}"

    def bar(self, share: float, width: int, rgb: tuple[int, int, int]) -> Text:
        """A bar as long as its share of the width, to the eighth of a letter."""
        from rich.text import Text

        full, eighths = divmod(round(min(share, 1.0) * width * 8), 8)
        if not self.coloured:
            return Text("█" * full + EIGHTHS[eighths].strip(), style="not dim")
        hue = f"#{rgb[0]:02x}{rgb[1]:02x}{rgb[2]:02x}"
        drawn = Text(" " * full, style=f"not dim on {hue}")  # a ground leaves no seams, as block letters do
        return drawn.append(EIGHTHS[eighths].strip(), style=f"not dim {hue}")

    def shade(self, share: float) -> str:
        """A shaded letter instead of a colour."""
        return SHADES[round(min(abs(share), 1.0) * (len(SHADES) - 1))]

    def patch(self, share: float) -> str:
        """Two letters for a patch: empty on its colour, or shaded, with its sign."""
        if self.coloured:
            return "  "
        shade = self.shade(share)
        return ("-" if share < 0 and shade != " " else shade) + shade

    def mark(self, share: float) -> str:
        """A bar instead of a colour, with its sign."""
        height = round(min(abs(share), 1.0) * (len(BARS) - 1))
        return ("-" if share < 0 and height else "") + BARS[height].strip()


def column(name: str, width: int) -> str:
    """A label in a column. One that is written from the right ends in a mark, or numbers after it would change places."""
    from rich.cells import set_cell_size

    from_right = any(bidirectional(letter) in ("R", "AL") for letter in name)
    return set_cell_size(name, width) + (LEFT_TO_RIGHT if from_right else "")


def more(count: int, what: str) -> str:
    """How many were left out."""
    return f"{count} more {what}{'s' if count != 1 else ''}"
