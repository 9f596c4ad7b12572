"""Tokenizers of every kind that matters, built in memory."""

from __future__ import annotations

from functools import cache
from typing import Any

import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

Fast: Any = transformers.PreTrainedTokenizerFast  # which is not typed

CORPUS = [
    "The keys to the cabinets are on the table, aren't they? The author laughed.",
    "don't stop: 3.14 is well-known. 中国人民 keys café naïve naïveté 日本語 ok",
] * 4  # fmt: skip
SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
CHAT = "{% for m in messages %}<{{ m['role'] }}> {{ m['content'] }}\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"


@cache
def wordpiece(size: int = 99) -> Any:
    """As BERT has it: lower case, accents stripped, ideographs one by one."""
    inner = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer(lowercase=True)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.train_from_iterator(
        CORPUS, trainers.WordPieceTrainer(vocab_size=size, special_tokens=SPECIAL, show_progress=False)
    )
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    inner.decoder = decoders.WordPiece()
    return Fast(
        tokenizer_object=inner,
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="[UNK]",
        mask_token="[MASK]",
    )


@cache
def byte_level(size: int = 280) -> Any:
    """As GPT-2 has it: bytes, a space belongs to the word after it, no padding token."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=["<|end|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    inner.decoder = decoders.ByteLevel()
    tokenizer = Fast(tokenizer_object=inner, eos_token="<|end|>")
    tokenizer.chat_template = CHAT
    return tokenizer


@cache
def sentencepiece(size: int = 99) -> Any:
    """As T5 has it: ▁ before each word, an end token."""
    inner = Tokenizer(models.Unigram())
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.train_from_iterator(
        CORPUS,
        trainers.UnigramTrainer(
            vocab_size=size, special_tokens=["<pad>", "<s>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
        ),
    )
    inner.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 2)]
    )
    inner.decoder = decoders.Metaspace()
    return Fast(tokenizer_object=inner, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>")


@cache
def unsplit(size: int = 99) -> Any:
    """As Llama 2 has it: BPE over the whole text, spaces being letters, so that a piece may reach over two words."""
    inner = Tokenizer(models.BPE(unk_token="<unk>"))
    inner.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    inner.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=size, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False)
    )
    inner.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Strip(" ", 1, 0)])
    return Fast(tokenizer_object=inner, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
