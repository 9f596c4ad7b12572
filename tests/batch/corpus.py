"""Texts of many lengths, and rows that cannot be explained."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from attnflow.batch._part import Held, Part
from attnflow.batch._rows import Columns

WORDS = [
    "the",
    "key",
    "keys",
    "to",
    "cabinet",
    "cabinets",
    "man",
    "dog",
    "dogs",
    "old",
    "that",
    "saw",
    "near",
    "of",
    "with",
]
POISON = {"empty": "", "blank": " \n", "missing": None, "number": 7, "long": "the key " * 400}
JOB: dict[str, Any] = {
    "model": None, "level": -1, "query": None, "tokenizer": None, "processor": None, "device": None, "dtype": None,
    "join_words": False, "batch_size": 8,
}  # fmt: skip


def texts(count: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 30))) for _ in range(count)]


def records(count: int) -> list[dict[str, Any]]:
    """A text, a number and a label each."""
    return [{"text": text, "n": i, "label": "ab"[i % 2]} for i, text in enumerate(texts(count))]


def write_jsonl(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def part_of(values: list[Any], number: int = 0) -> Part:
    rows = [Columns("text", keep=("label",)).row(i, {"text": value, "label": "a"}) for i, value in enumerate(values)]
    return Part(number, 0, len(rows), "digest", Held(rows))
