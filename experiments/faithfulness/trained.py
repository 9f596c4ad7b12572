"""Small transformers trained on the planted tasks: an encoder that classifies, a decoder that says the answer next."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from experiments.paper.store import digest

from .planted import TASKS, Case, Task, cases

tf: Any = transformers  # whose classes are not typed

KINDS = ("encoder", "decoder")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LAYERS, HEADS, WIDTH = 3, 4, 64
BATCH, RATE, WARMUP = 64, 2e-3, 100
STEPS, CHECK_EVERY, ENOUGH = 2500, 100, 0.995
HIDDEN = (
    0.4  # at most so many of the words that do not matter become unknown while training: ablation shall be no surprise
)
VERSION = 1


class Planted(NamedTuple):
    """A trained model, its tokenizer, and the share of new cases that it answers right."""

    model: Any
    tokenizer: Any
    accuracy: float


@cache
def tokenizer_of(name: str) -> Any:
    """A token for each word that the task draws; [CLS] before, [SEP] behind, where a decoder says its answer."""
    words = sorted({w for case in cases(name, 4000, "vocabulary") for w in (*case.words, *(p for pool in case.pools for p in pool))})  # fmt: skip
    words += [answer for answer in TASKS[name].answers if answer not in words]
    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate([*SPECIAL, *words])}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {f"{one}_token": f"[{one.upper()}]" for one in ("unk", "cls", "sep", "pad", "mask")}
    return tf.PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=64, **names)


def untrained(task: Task, kind: str, vocabulary: int) -> Any:
    """Three layers of random weights."""
    shape = {"vocab_size": vocabulary, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
             "intermediate_size": 2 * WIDTH, "max_position_embeddings": 64, "pad_token_id": 0}  # fmt: skip
    torch.manual_seed(1)
    if kind == "decoder":
        return tf.LlamaForCausalLM(tf.LlamaConfig(**shape, num_key_value_heads=2, bos_token_id=2, eos_token_id=3))
    labels = dict(enumerate(task.answers))
    names = {"id2label": labels, "label2id": {answer: number for number, answer in labels.items()}}
    quiet = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return tf.BertForSequenceClassification(tf.BertConfig(**shape, **names, **quiet))


def trained(name: str, kind: str, runs: Path, *, steps: int = STEPS) -> Planted:
    """From disk, or trained until it is right on nearly all new cases."""
    folder = runs / f"planted-{name}-{kind}-{digest(VERSION, LAYERS, HEADS, WIDTH, BATCH, RATE, steps, ENOUGH, HIDDEN)}"
    tokenizer = tokenizer_of(name)
    model = untrained(TASKS[name], kind, len(tokenizer))
    weights = folder / "weights.pt"
    if weights.exists():
        model.load_state_dict(torch.load(weights, weights_only=True))
    else:
        _train(model, name, kind, steps)
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(model.state_dict(), folder / "weights.part")
        (folder / "weights.part").replace(weights)
    model.eval()
    return Planted(model, tokenizer, accuracy(model, name, kind, cases(name, 500, "accuracy")))


def targets(name: str, kind: str, some: Sequence[Case]) -> list[int]:
    """The answers as the model's outputs: classes, or tokens."""
    answers = TASKS[name].answers
    if kind == "encoder":
        return [answers.index(case.answer) for case in some]
    return [int(tokenizer_of(name).convert_tokens_to_ids(case.answer)) for case in some]


def _train(model: Any, name: str, kind: str, steps: int) -> None:
    rng = Random(f"{name} {kind} training")
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    check, calm = cases(name, 400, "check"), 0
    model.train()
    for step in range(steps):
        rate = RATE * min(1.0, (step + 1) / WARMUP) * (1.0 if calm == 0 else 0.3)
        for group in optimiser.param_groups:
            group["lr"] = rate
        some = [TASKS[name].draw(rng) for _ in range(BATCH)]
        logits = answers_of(model, name, kind, [_hidden(case, rng) for case in some])
        loss = torch.nn.functional.cross_entropy(logits, torch.tensor(targets(name, kind, some)))
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        if (step + 1) % CHECK_EVERY == 0:
            calm = calm + 1 if accuracy(model, name, kind, check) >= ENOUGH else 0
            model.train()
            if calm >= 3:
                return


def _hidden(case: Case, rng: Random) -> tuple[str, ...]:
    """Some of the words that do not matter become unknown."""
    share = rng.choice((0.0, 0.0, rng.uniform(0, HIDDEN)))
    return tuple(
        "[UNK]" if pool and rng.random() < share else word for word, pool in zip(case.words, case.pools, strict=True)
    )


def answers_of(model: Any, name: str, kind: str, several: Sequence[Sequence[str]]) -> Any:
    """The logits at the place where each answer is read."""
    inputs = tokenizer_of(name)([" ".join(words) for words in several], padding=True, return_tensors="pt")
    inputs.pop("token_type_ids", None)
    logits = model(**inputs).logits
    if kind == "encoder":
        return logits
    return logits[torch.arange(len(several)), inputs["attention_mask"].sum(1) - 1]


@torch.no_grad()
def accuracy(model: Any, name: str, kind: str, some: Sequence[Case]) -> float:
    """The share of cases answered right."""
    model.eval()
    found = answers_of(model, name, kind, [case.words for case in some]).argmax(-1).tolist()
    right = sum(int(a == b) for a, b in zip(found, targets(name, kind, some), strict=True))
    return right / len(some)


@torch.no_grad()
def dependence(model: Any, name: str, kind: str, some: Sequence[Case], seed: int = 0) -> tuple[float, float]:
    """By ablation: how far the answer's probability moves at most, when every word that does not matter is drawn again,
    and in which share of the cases the answer itself changes."""
    rng = Random(seed)
    before = answers_of(model, name, kind, [case.words for case in some]).softmax(-1)
    after = answers_of(model, name, kind, [case.redrawn(rng) for case in some]).softmax(-1)
    chosen = torch.tensor(targets(name, kind, some))[:, None]
    moved = (before.gather(1, chosen) - after.gather(1, chosen)).abs()
    return float(moved.quantile(0.95)), float((before.argmax(-1) != after.argmax(-1)).float().mean())
