"""What `make demo` shows: raw attention and rollout of a small example, from arrays alone."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

import attnflow as af

# Two layers of one head. In the first, "cabinets" copies from "key"; in the second, "are" looks at "cabinets" only.
TOKENS = ["the", "key", "to", "cabinets", "are"]
FIRST = [[1, 0, 0, 0, 0], [0.1, 0.9, 0, 0, 0], [0.2, 0.2, 0.6, 0, 0], [0, 0.9, 0, 0.1, 0], [0, 0, 0, 0.2, 0.8]]
SECOND = [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0.2, 0.8, 0, 0], [0, 0.1, 0, 0.9, 0], [0, 0, 0, 0.9, 0.1]]


def main() -> None:
    stack = af.AttentionStack(np.array([[FIRST], [SECOND]]), TOKENS)
    table = Table(title="How much of what “are” says came from each token?")
    for heading in ("method", *TOKENS):
        table.add_column(heading, justify="right" if heading != "method" else "left")
    for name, residual in (("raw", None), ("rollout", 0.5)):
        row = af.attribute(stack, name, residual=residual, queries="are", levels=[-1]).of("are")
        table.add_row(name, *(f"{score:.2f}" for score in row))
    console = Console()
    console.print(table)
    console.print(
        "Raw attention of the last layer does not see “key”, though “cabinets” had copied it one layer below."
    )


if __name__ == "__main__":
    main()
