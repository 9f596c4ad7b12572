"""An audit finds what was planted, and says nothing where nothing moved."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

from attnflow import capture, study
from attnflow.errors import InvalidArgument
from attnflow.study._audit import _moves
from attnflow.study._reliance import Reading, reliance
from attnflow.study._word_classes import CLASSES, word_class
from tests.cli.tiny import WORDS
from tests.study.conftest import TEXTS

FILLERS = ("the", "to", "is", "are")


def readings(rng: np.random.Generator, count: int, pull: float) -> list[Reading]:
    """Six words, "key" among them in half of the texts; `pull` is how much more of the map it takes."""
    found = []
    for number in range(count):
        labels = ["[CLS]", "the", "old", "key" if number % 2 else "door", "is", "here"]
        scores = rng.gamma(4, size=6) * [1, 1, 1, pull if number % 2 else 1, 1, 1]
        found.append(Reading(tuple(labels), (True, *[False] * 5), 6 * scores / scores.sum()))
    return found


def moves(before: list[Reading], after: list[Reading], *, paired: bool = True) -> dict[tuple[str, str], study.Move]:
    tables = [reliance(side, word_class, {"doors": frozenset({"door"})}) for side in (before, after)]
    found = _moves(tables[0], tables[1], paired=paired, least=5, seed=0)
    return {(move.kind, move.group): move for move in found}


def test_reliance_by_hand() -> None:
    reading = Reading(("[CLS]", "the", "key", "key"), (True, False, False, False), np.array([1.6, 0.0, 2.0, 0.4]))
    found = reliance([reading], word_class, {"mine": frozenset({"key"})})
    assert found["special token", "[CLS]"].tolist() == pytest.approx([1.6])
    assert found["word", "key"].tolist() == pytest.approx([1.2])
    assert found["word list", "mine"].tolist() == pytest.approx([1.2])
    assert found["word class", "determiner"].tolist() == [0]
    assert found["position", "first quarter"].tolist() == [0]


@pytest.mark.parametrize("paired", [True, False])
def test_a_planted_move_is_found_with_its_direction_and_nothing_else_is(rng: np.random.Generator, paired: bool) -> None:
    found = moves(readings(rng, 120, 1.0), readings(rng, 120, 3.0), paired=paired)
    key = found["word", "key"]
    assert key.verdict == "more"
    assert key.low < key.difference < key.high
    assert key.before == pytest.approx(1, abs=0.15)
    assert key.difference > 0.5
    assert found["word", "door"].verdict == "no move shown"
    assert found["word list", "doors"].verdict == "no move shown"


def test_nothing_is_found_in_nothing(rng: np.random.Generator) -> None:
    """Holm's correction over all groups: in at most about one audit of twenty anything is shown."""
    found = [moves(readings(rng, 40, 1.0), readings(rng, 40, 1.0)) for _ in range(40)]
    assert sum(any(m.verdict != "no move shown" for m in one.values()) for one in found) <= 6


def sentences(rng: Random, count: int, shortcut: float) -> tuple[list[str], list[int]]:
    """The label is which of "key" and "cabinet" the text holds; "old" stands in that share of the plural ones."""
    texts, labels = [], []
    for _ in range(count):
        label = rng.randrange(2)
        words = [rng.choice(FILLERS) for _ in range(rng.randint(3, 7))]
        words[rng.randrange(len(words))] = ("key", "cabinet")[label]
        if label and rng.random() < shortcut:
            words.insert(rng.randint(0, len(words)), "old")
        texts.append(" ".join(words))
        labels.append(label)
    return texts, labels


def tuned(folder: Path, shortcut: float) -> tuple[Any, Any]:
    """The small classifier after two hundred steps on such sentences, in which the telling noun is hidden half of the time."""
    model: Any = capture.load(str(folder))
    tokenizer = capture.tokenizer_for(model, None, str(folder))
    rng = Random(3)
    torch.manual_seed(0)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(200):
        texts, labels = sentences(rng, 32, shortcut)
        shown = [
            " ".join("[UNK]" if w in ("key", "cabinet") and rng.random() < 0.5 else w for w in t.split()) for t in texts
        ]
        loss = model(**tokenizer(shown, padding=True, return_tensors="pt"), labels=torch.tensor(labels)).loss
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    return model.eval(), tokenizer


@pytest.fixture(scope="module")
def audited(folder: Path) -> study.Audit:
    (clean, tokenizer), (spoilt, _) = tuned(folder, 0.0), tuned(folder, 0.95)
    rng = Random(9)
    texts = sentences(rng, 400, 0.0)[0]
    texts = [f"{t} old" if n % 2 else f"old {t}" if n % 4 == 0 else t for n, t in enumerate(texts[:80])]
    return study.audit(clean, spoilt, texts, tokenizer=tokenizer, words={"nouns": ["key", "cabinet"]}, names=("clean", "spoilt"))  # fmt: skip


def test_the_audit_finds_a_shortcut_that_a_model_was_trained_to_take(audited: study.Audit) -> None:
    words = sorted(audited.of("word"), key=lambda move: -move.difference)
    assert words[0].group == "old"
    assert words[0].verdict == "more"
    assert audited.of("word list", "nouns")[0].difference < 0


def test_the_examples_that_moved_most_come_first(audited: study.Audit) -> None:
    distances = [distance for _, distance, _, _ in audited.examples]
    assert distances == sorted(distances, reverse=True)
    assert len(distances) == 10
    for _, distance, before, after in audited.examples:
        assert distance == pytest.approx(np.abs(before.values - after.values).sum() / 2)
    _, _, before, after = audited.examples[0]
    place = before.labels.index("old")
    assert after.values[place] > before.values[place]


def test_an_audit_in_every_form(audited: study.Audit, tmp_path: Path) -> None:
    for ending in ("txt", "md", "csv", "json", "html"):
        audited.save(tmp_path / f"audit.{ending}")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "audit.csv").read_text())))
    assert len(rows) == len(audited.moves)
    content = json.loads((tmp_path / "audit.json").read_text())
    assert content["options"]["names"] == ["clean", "spoilt"]
    page = (tmp_path / "audit.html").read_text()
    assert "the word “old”" in page
    assert "<script" not in page
    assert "spoilt relies more on the word “old”" in audited.to_text()
    with pytest.raises(InvalidArgument, match="cannot tell the form"):
        audited.save(tmp_path / "audit.pdf")


def test_a_model_against_itself_moves_nothing(folder: Path) -> None:
    found = study.audit(str(folder), str(folder), TEXTS * 3, way="raw")
    assert found.shown == []
    assert "No move was shown" in found.to_text()
    assert all(distance == 0 for _, distance, _, _ in found.examples)


def test_two_domains_of_one_model(folder: Path) -> None:
    others = ["the key", "the cabinet is old", "old key", "are the cabinets old"]
    found = study.audit(str(folder), str(folder), TEXTS * 2, others * 2, way="rollout", least=2)
    assert found.options["paired"] is False
    assert found.examples == ()
    assert {move.kind for move in found.moves} >= {"word class", "position", "special token", "word"}


@pytest.mark.parametrize(
    ("word", "expected"),
    [("The", "determiner"), ("never", "negation"), ("isn't", "negation"), ("3.14", "number"), ("!", "punctuation"), ("cabinet", "content word"),
     ("of", "preposition"), ("They", "pronoun"), ("and", "conjunction"), ("was", "auxiliary"), ("very", "intensifier")],
)  # fmt: skip
def test_word_classes(word: str, expected: str) -> None:
    assert word_class(word) == expected
    assert expected in CLASSES


def test_classes_of_ones_own_and_bad_words(folder: Path) -> None:
    found = study.audit(str(folder), str(folder), TEXTS, word_class=lambda word: str(len(word)), way="raw")
    assert {move.group for move in found.of("word class")} >= {"3", "2"}
    with pytest.raises(InvalidArgument, match="words is a list of words"):
        study.audit(str(folder), str(folder), TEXTS, words="key")
    with pytest.raises(InvalidArgument, match="unknown kind of group 'words'"):
        found.of("words")
    assert set(WORDS) >= {"key", "old"}
