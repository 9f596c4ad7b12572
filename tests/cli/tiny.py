"""A transformers folder as users have one: a small classifier with random weights, and its tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "key", "to", "cabinet", "##s", "is", "are", "old", "1"]


def build(folder: Path) -> Path:
    """4 layers, 4 heads, at most 40 tokens; "cabinets" is two of them."""
    words = Tokenizer(models.WordPiece({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "cls", "sep", "pad", "mask")}
    fast: Any = PreTrainedTokenizerFast  # which has no types
    tokenizer = fast(tokenizer_object=words, model_max_length=40, **names)
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=32, num_hidden_layers=4, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=40, pad_token_id=0, initializer_range=0.5, id2label={0: "singular", 1: "plural"},
        label2id={"singular": 0, "plural": 1},
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(7)
        BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
