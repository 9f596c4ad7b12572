"""What `make demo` shows: one sentence, three methods side by side, and a picture of them."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

import attnflow as af

SENTENCE = "The key to the cabinets"
METHODS = ("raw", "rollout", "flow")
PICTURE = Path("demo.svg")
NARROW = 100  # columns below which three maps do not fit beside each other


def main() -> None:
    console = Console()
    console.print(
        f"Which verb follows “{SENTENCE}”, is or are? How much does each token count for the model's answer?\n"
    )
    found = [af.explain(SENTENCE, method=method, level=None) for method in METHODS]
    if console.width < NARROW:
        for attribution in found:
            af.render.terminal(attribution, console=console)
            console.print()
    else:
        table = Table.grid(padding=(0, 2), expand=True)
        table.add_row(*(drawn(attribution, console) for attribution in found))
        console.print(table)
    af.render.figure(found, kind="levels", path=PICTURE)
    console.print(f"\nEvery level as a picture: {PICTURE.resolve()}")


def drawn(attribution: af.Attribution, console: Console) -> Text:
    """One map, for a third of the console."""
    column = Console(
        file=io.StringIO(),
        width=console.width // len(METHODS) - 2,
        force_terminal=console.is_terminal,
        color_system="truecolor",
    )
    af.render.terminal(attribution, console=column)
    return Text.from_ansi(column.file.getvalue())  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
