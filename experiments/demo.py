"""What `make demo` shows: one sentence, three methods side by side, and a picture of them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text
from transformers import AutoTokenizer
from transformers.utils import logging

import attnflow as af

SENTENCE = "The key to the cabinets"
VERBS = {"singular": "is", "plural": "are"}
METHODS: dict[str, float | None] = {"raw": None, "rollout": 0.5, "flow": 0.5}  # with what residual, as in the paper
MODEL = Path(af.__file__).parent / "assets" / "verb_number"
PICTURE = Path("demo.svg")
NARROW = 100  # columns below which three maps do not fit beside each other


def main() -> None:
    """One question, the model's answer, and where each method says it came from."""
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    console = Console()
    console.print(
        f"Which verb follows “{SENTENCE}”, is or are? {answered()} How much does each token count for that?\n"
    )
    found = [af.explain(SENTENCE, method=method, level=None, residual=residual) for method, residual in METHODS.items()]
    if console.width < NARROW:
        for attribution in found:
            af.render.terminal(attribution, console=console)
            console.print()
    else:
        table = Table.grid(padding=(0, 2), expand=True)
        table.add_row(*(drawn(attribution, console) for attribution in found))
        console.print(table)
    af.render.figure(found, kind="levels", path=PICTURE, scale="separate")
    console.print(f"\nEvery level as a picture: {PICTURE.resolve()}", soft_wrap=True)


@torch.inference_mode()
def answered() -> str:
    """What the bundled model says."""
    model: Any = af.capture.load(str(MODEL))
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    chances = model(**tokenizer(SENTENCE, return_tensors="pt")).logits.float().softmax(-1)[0]
    label = model.config.id2label[int(chances.argmax())]
    return f"The bundled model says “{VERBS[label]}” ({label}, {float(chances.max()):.0%})."


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
