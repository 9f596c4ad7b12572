"""The model's own tokenizer: frequent words and Penn tags are whole, a rare word shows its plural as a last ##s.

WordPiece takes the longest piece first. No piece inside a word may end in "s" but the few endings of singular nouns
and the bare ##s, so the plural of a word that is not in the vocabulary is visible however it is split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from .corpus import LETTERS

PAD, UNK, CLS, MASK = "[PAD]", "[UNK]", "[CLS]", "[MASK]"
SPECIAL = (PAD, UNK, CLS, MASK)
PUNCTUATION = {",", ".", ":", "``", "''", "-LRB-", "-RRB-"}
TAGS = tuple(sorted({*LETTERS, "UH", "FW", "RP", "RBS", "SYM", "WP$", "LS"} - PUNCTUATION))
ENDINGS = ("##s", "##ss", "##us", "##is", "##ous", "##ness", "##less", "##sis", "##ics")
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~–—’‘“”…°éöäüñíóá"
LONGEST = 128


def normalizer() -> normalizers.Normalizer:
    return normalizers.BertNormalizer(lowercase=True, strip_accents=False, clean_text=True, handle_chinese_chars=True)


def split(word: str) -> list[str]:
    """A word as the pre-tokenizer sees it: punctuation stands alone."""
    text = normalizer().normalize_str(word)
    return [part for part, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text)]


def vocabulary(counts: Counter[str], *, words: int, pieces: int) -> list[str]:
    """The most frequent words whole, and frequent beginnings and insides for all others."""
    parts: Counter[str] = Counter()
    for word, count in counts.items():
        for part in split(word) if word not in TAGS else ():
            parts[part] += count
    ranked = sorted(parts, key=lambda part: (-parts[part], part))
    whole = [part for part in ranked if len(part) > 1][:words]
    starts: Counter[str] = Counter()
    insides: Counter[str] = Counter()
    for part in ranked[words // 2 :]:
        if not part.isalpha():
            continue
        weight = parts[part] ** 0.5
        for size in range(2, 7):
            if len(part) > size:
                starts[part[:size]] += weight * size
            for at in range(1, len(part) - size + 1) if size < 6 else ():
                piece = "##" + part[at : at + size]
                if not piece.endswith("s"):
                    insides[piece] += weight * size
    out = [*SPECIAL, *TAGS, *CHARACTERS, *("##" + letter for letter in CHARACTERS), *ENDINGS, *whole]
    for group, share in ((starts, 0.5), (insides, 0.5)):
        out += sorted(group, key=lambda piece: (-group[piece], piece))[: int(pieces * share)]
    return list(dict.fromkeys(out))


def build(counts: Counter[str], *, words: int = 6500, pieces: int = 2000) -> PreTrainedTokenizerFast:
    """A tokenizer whose vocabulary comes from these counts of words."""
    entries = vocabulary(counts, words=words, pieces=pieces)
    ids = {entry: index for index, entry in enumerate(entries)}
    inner = Tokenizer(models.WordPiece(ids, unk_token=UNK, max_input_chars_per_word=60))
    inner.normalizer = normalizer()
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.TemplateProcessing(
        single=f"{CLS} $A", pair=f"{CLS} $A $B", special_tokens=[(CLS, ids[CLS])]
    )
    # Tags are read before the text is lowercased: "NN" is a tag, "nn" is not.
    inner.add_tokens([AddedToken(tag, single_word=True, normalized=False) for tag in TAGS])
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=inner,
        pad_token=PAD,
        unk_token=UNK,
        cls_token=CLS,
        mask_token=MASK,
        model_max_length=LONGEST,
        padding_side="right",
        truncation_side="left",
    )


class Encoder:
    """Words to pieces, remembered: the same ids as the tokenizer gives, a word at a time."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._tokenizer = tokenizer
        self._whole: dict[str, tuple[int, ...]] = {}
        self._split: dict[str, tuple[int, ...]] = {}
        self._vocabulary: dict[str, int] = tokenizer.get_vocab()
        self.cls = self._vocabulary[CLS]

    def pieces(self, word: str) -> tuple[int, ...]:
        found = self._whole.get(word)
        if found is None:
            found = tuple(self._tokenizer.encode(word, add_special_tokens=False)) or (self._vocabulary[UNK],)
            self._whole[word] = found
        return found

    def spelled(self, word: str) -> tuple[int, ...]:
        """The pieces of a frequent word as if it were rare, so that the pieces are learnt from it too."""
        found = self._split.get(word)
        if found is None:
            found = self._split[word] = tuple(self._spell(word))
        return found

    def _spell(self, word: str) -> Iterable[int]:
        known = self._vocabulary
        if len(word) < 3 or not word.isalpha() or word not in known or word in TAGS:
            return self.pieces(word)
        out: list[int] = []
        start, end = 0, len(word) - 1
        while start < len(word):
            piece = ("##" if start else "") + word[start:end]
            if piece in known and (end < len(word) or piece in ENDINGS or not piece.endswith("s")):
                out.append(known[piece])
                start, end = end, len(word)
            elif (end := end - 1) == start:
                return self.pieces(word)
        return out
