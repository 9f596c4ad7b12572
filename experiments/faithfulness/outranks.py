"""Does the subject outrank the attractor where a language model is right, and the attractor the subject where it is wrong?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from attnflow import capture, evaluate
from experiments.paper.store import digest, write

from .agreement import Prompt, language_model, prompts
from .subjects import Subject

BATCH = 8
VERSION = 1


def credited(subject: Subject, count: int, runs: Path) -> dict[str, list[float]]:
    """For every map and prompt, the subject's share of what subject and attractor hold together; kept on disk."""
    path = runs / f"outranks-{digest(VERSION, count, [way.name for way in subject.ways])}.json"
    if not path.exists():
        write(path, json.dumps(_credited(subject, count)))
    found: dict[str, list[float]] = json.loads(path.read_text())
    return found


def _credited(subject: Subject, count: int) -> dict[str, list[float]]:
    model, tokenizer = language_model()
    chosen = prompts(count)
    texts, targets = [one.text for one in chosen], [one.answered for one in chosen]
    asked: dict[str, Any] = {"tokenizer": tokenizer, "target": targets}
    found: dict[str, list[float]] = {}
    for way in subject.ways:
        graphs = capture.graph(model, texts, **asked, batch_size=BATCH, **way.mixing)
        rows = [way.scores(graph, len(graph.tokens)) for graph in graphs]
        found[way.name] = [_share(row, graph.tokens, one) for row, graph, one in zip(rows, graphs, chosen, strict=True)]
    references: dict[str, Callable[[], Any]] = {
        "occlusion": lambda: capture.blank_out(model, texts, **asked, replace="remove"),
        "gradient": lambda: capture.input_gradient(model, texts, **asked, measure="l2"),
        "grad-cam": lambda: capture.grad_cam(model, texts, **asked),
    }
    for name, make in references.items():
        made = make()
        found[name] = [_share(one.scores, one.tokens, prompt) for one, prompt in zip(made, chosen, strict=True)]
    return found


def _share(row: Any, tokens: Any, prompt: Prompt) -> float:
    held = [_of_word(row, tokens, word) for word in (prompt.subject, prompt.attractor)]
    total = abs(held[0]) + abs(held[1])
    return held[0] / total if total > 0 else 0.5


def _of_word(row: Any, tokens: Any, label: str) -> float:
    word = next(word for word in tokens.words if word.label == label)
    return float(np.asarray(row)[word.start : word.stop].sum())


def table(subject: Subject, count: int, runs: Path) -> list[dict[str, Any]]:
    """For each map: how often the subject comes first where the model is right, the attractor where it is wrong, and by how
    much the subject's share is higher where it is right (unpaired permutation test, Holm-corrected)."""
    right = np.array([one.right for one in prompts(count)])
    rows = []
    for name, shares in credited(subject, count, runs).items():
        values = np.array(shares)
        low, high = evaluate.difference_interval(values[right], values[~right])
        rows.append({
            "map": name, "n_right": int(right.sum()), "n_wrong": int((~right).sum()),
            "subject_first_when_right": float((values[right] > 0.5).mean()) if right.any() else float("nan"),
            "attractor_first_when_wrong": float((values[~right] < 0.5).mean()) if (~right).any() else float("nan"),
            "difference": float(values[right].mean() - values[~right].mean()) if right.any() and (~right).any() else float("nan"),
            "low": low, "high": high, "p": evaluate.two_sample_test(values[right], values[~right]),
        })  # fmt: skip
    corrected = evaluate.holm(np.array([row["p"] for row in rows]))
    return [{**row, "p_corrected": float(p)} for row, p in zip(rows, corrected, strict=True)]
