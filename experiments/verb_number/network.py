"""The classifier, and the heads that only training needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import RobertaPreLayerNormConfig, RobertaPreLayerNormForSequenceClassification

from .mixture import IGNORED, Encoded
from .recipe import Recipe
from .tokenizer import LONGEST

LABELS = {0: "singular", 1: "plural"}


@dataclass(frozen=True)
class Batch:
    """Padded sequences."""

    ids: Tensor
    mask: Tensor
    tags: Tensor
    labels: Tensor
    subjects: Tensor


def collate(rows: Sequence[Encoded], pad: int) -> Batch:
    longest = max(len(row.ids) for row in rows)

    def padded(values: Sequence[list[int]], fill: int) -> Tensor:
        return torch.tensor([[*value, *[fill] * (longest - len(value))] for value in values])

    ids = padded([row.ids for row in rows], pad)
    return Batch(
        ids,
        (ids != pad).long(),
        padded([row.tags for row in rows], IGNORED),
        torch.tensor([row.label for row in rows]),
        torch.tensor([row.subject for row in rows]),
    )


def configuration(recipe: Recipe, vocabulary: int, pad: int) -> RobertaPreLayerNormConfig:
    """GPT-2's block without its causal mask: normalise, then attend; normalise, then GELU."""
    return RobertaPreLayerNormConfig(
        vocab_size=vocabulary,
        hidden_size=recipe.width,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        intermediate_size=4 * recipe.width,
        hidden_act="gelu",
        hidden_dropout_prob=recipe.dropout,
        attention_probs_dropout_prob=0.0,
        max_position_embeddings=LONGEST + pad + 1,
        type_vocab_size=1,
        pad_token_id=pad,
        bos_token_id=None,
        eos_token_id=None,
        id2label=LABELS,
        label2id={name: index for index, name in LABELS.items()},
    )


class Trainee(nn.Module):
    """The classifier with three helpers: masked words, tags, and where the subject is."""

    def __init__(self, recipe: Recipe, config: RobertaPreLayerNormConfig, tags: int) -> None:
        super().__init__()
        self.recipe = recipe
        self.classifier = RobertaPreLayerNormForSequenceClassification(config)
        self.classifier.set_attn_implementation("eager")  # three times as fast as sdpa here: short rows, narrow heads
        for name, part in self.classifier.roberta_prelayernorm.encoder.named_modules():
            if name.endswith("attention.output.dropout"):
                part.p = 0.0  # drawing random numbers is a fifth of a step's time
        width = config.hidden_size
        self.tags = nn.Linear(width, tags)
        self.pointer = nn.Linear(width, width)
        self.words = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))
        self.word_bias = nn.Parameter(torch.zeros(config.vocab_size))

    def states(self, batch: Batch) -> Tensor:
        encoder = self.classifier.roberta_prelayernorm
        out: Tensor = encoder(input_ids=batch.ids, attention_mask=batch.mask).last_hidden_state
        return out

    def classify(self, batch: Batch) -> dict[str, Tensor]:
        """The losses of a batch of examples."""
        states = self.states(batch)
        logits = self.classifier.classifier(states)
        query = self.pointer(states[:, 0])
        scores = torch.einsum("bnd,bd->bn", states, query) / states.shape[-1] ** 0.5
        scores = scores.float().masked_fill(batch.mask == 0, -1e4)
        recipe = self.recipe
        return {
            "number": functional.cross_entropy(logits.float(), batch.labels, label_smoothing=recipe.smoothing),
            "subject": recipe.pointer * _known(scores, batch.subjects),
            "tags": recipe.tagging * _known(self.tags(states).flatten(0, 1).float(), batch.tags.flatten()),
        }

    def fill_in(self, batch: Batch, mask_id: int, first_word: int) -> dict[str, Tensor]:
        """The losses of a batch of sentences, some of whose words are masked (a tenth of these replaced instead)."""
        chosen = (torch.rand(batch.ids.shape) < self.recipe.masked) & (batch.mask == 1)
        chosen[:, 0] = False
        chance = torch.rand(batch.ids.shape)
        strangers = torch.randint(first_word, self.word_bias.shape[0], batch.ids.shape)
        ids = torch.where(chosen & (chance < 0.8), mask_id, batch.ids)
        ids = torch.where(chosen & (chance > 0.9), strangers, ids)
        states = self.states(Batch(ids, batch.mask, batch.tags, batch.labels, batch.subjects))
        embeddings = self.classifier.roberta_prelayernorm.embeddings.word_embeddings.weight
        logits = functional.linear(self.words(states[chosen]), embeddings, self.word_bias)
        return {
            "words": _known(logits.float(), batch.ids[chosen]),
            "tags": self.recipe.tagging * _known(self.tags(states).flatten(0, 1).float(), batch.tags.flatten()),
        }


def _known(scores: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy over the labels that are known, zero where none is."""
    total = functional.cross_entropy(scores, labels, ignore_index=IGNORED, reduction="sum")
    return total / (labels != IGNORED).sum().clamp(min=1)
