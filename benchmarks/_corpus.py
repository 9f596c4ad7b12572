"""Sentences up to their verb, from the grammar that the bundled model was trained with, in a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

from experiments.verb_number.grammar import Grammar
from experiments.verb_number.lexicon import builtin


def sentences(count: int) -> list[str]:
    rng, grammar = Random(11), Grammar(builtin())
    return [" ".join(grammar.example(rng).words) for _ in range(count)]


def write(path: Path, texts: Sequence[str | None]) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    return path
