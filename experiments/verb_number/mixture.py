"""What the network sees: pools of encoded examples, each made from the recipe's seed and the pool's number alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from random import Random

from . import corpus, lexicon
from .augment import Augmenter, with_tags_for_rare
from .examples import Example, read
from .grammar import Grammar
from .lexicon import Lexicon
from .recipe import Recipe
from .tokenizer import UNK, Encoder

IGNORED = -100  # torch's label for positions without one


@dataclass(frozen=True, slots=True)
class Encoded:
    """One sequence: ids with CLS in front, a tag at each word's last piece, the label, where the subject is."""

    ids: list[int]
    tags: list[int]
    label: int
    subject: int  # IGNORED where unknown


@dataclass(frozen=True)
class Sources:
    """All that examples are drawn from."""

    lexicon: Lexicon
    phrases: corpus.Phrases | None
    real: list[Example]
    held_out: list[Example]
    sentences: list[corpus.Tagged]
    counts: Counter[str]


def load(recipe: Recipe, folder: Path | None) -> Sources:
    """The shared data where there is any and the recipe wants it, else the built-in lexicon and its grammar."""
    if folder is None or not recipe.use_data:
        return _generated(recipe)
    sentences = list(corpus.read_tagged(folder / "english_tagged.tsv.gz"))
    words = lexicon.from_counts(corpus.count_words(sentences))
    tags = {" ".join(sentence.words): sentence.tags for sentence in sentences}
    rows = [row for row in read(folder / "agreement.tsv.gz") if corpus.is_free(row.licence)]
    real = [tagged(row, tags, words) for row in rows if not corpus.is_held_out(row.sentence)]
    known = {(row.sentence, len(row.words)) for row in real}
    clauses = (row for sentence in sentences for row in corpus.examples_of(sentence))
    real += [row for row in clauses if (row.sentence, len(row.words)) not in known]
    real = [row for row in real if len(row.words) <= recipe.longest]
    counts = Counter(word for sentence in sentences for word in sentence.words)
    counts.update(word for row in real for word in row.words)
    held_out = [tagged(row, tags, words) for row in rows if corpus.is_held_out(row.sentence)]
    return Sources(words, corpus.harvest(sentences), real, held_out, sentences, counts)


def _generated(recipe: Recipe) -> Sources:
    words = lexicon.builtin()
    grammar = Grammar(words)
    rng = Random(f"{recipe.seed} generated")
    real = [grammar.example(rng) for _ in range(6000)]
    sentences = [corpus.Tagged(row.words, row.tags) for row in real]
    counts = Counter(word for row in real for word in row.words)
    counts.update(word for pair in (*words.nouns, *words.verbs) for word in pair)
    return Sources(words, None, real, [grammar.example(rng) for _ in range(1000)], sentences, counts)


def tagged(row: Example, tags: dict[str, tuple[str, ...]], words: Lexicon) -> Example:
    """The row with tags: those of the same sentence in the tagged text, else each word's usual one."""
    found = tags.get(row.sentence, ())[: len(row.words)]
    out = list(found) if len(found) == len(row.words) else [usual_tag(word, words) for word in row.words]
    if row.subject >= 0:
        out[row.subject] = "NNS" if row.plural else "NN"
    return replace(row, tags=tuple(out))


def usual_tag(word: str, words: Lexicon) -> str:
    if word in words.tag_of:
        return words.tag_of[word]
    if any(letter.isdigit() for letter in word):
        return "CD"
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return "NNS"
    return "NN" if word.isalpha() else "NNP"


class Mixture:
    """Draws pools of examples by the recipe."""

    def __init__(self, recipe: Recipe, sources: Sources, encoder: Encoder, tag_ids: dict[str, int]) -> None:
        self.recipe, self.sources, self.encoder, self.tag_ids = recipe, sources, encoder, tag_ids
        self.unknown = encoder.pieces(UNK)
        self.corpus_grammar = Grammar(sources.lexicon, sources.phrases)
        self.own_grammar = Grammar(lexicon.builtin())
        self.augment = Augmenter(self.corpus_grammar)
        weights = (recipe.attractor_weight if row.attractors else 1.0 for row in sources.real)
        self.cumulative = list(accumulate(weights))
        ranked = sorted(sources.counts, key=lambda word: (-sources.counts[word], word))
        self.rank = {word: place for place, word in enumerate(ranked)}

    def pool(self, number: int) -> list[Encoded]:
        """Classifier examples; the same for the same number, whatever was drawn before."""
        rng = Random(f"{self.recipe.seed} pool {number}")
        return [self.encode(self.draw(rng), rng) for _ in range(self.recipe.pool)]

    def draw(self, rng: Random) -> Example:
        recipe, share = self.recipe, rng.random()
        while True:
            if share >= recipe.real + recipe.augmented:
                own = rng.random() < recipe.builtin_grammar
                example = (self.own_grammar if own else self.corpus_grammar).example(rng)
            else:
                example = rng.choices(self.sources.real, cum_weights=self.cumulative)[0]
                if share >= recipe.real:
                    example = self.augment(example, rng)
            if len(example.words) <= recipe.longest:
                break
        if rng.random() < recipe.rare_as_tags:
            example = with_tags_for_rare(example, self.rank, int(2 ** rng.uniform(10.5, 13.5)))
        return example

    def sentences(self, number: int) -> list[Encoded]:
        """Whole sentences, or windows of long ones, for the masked-language batches."""
        rng = Random(f"{self.recipe.seed} sentences {number}")
        out = []
        for sentence in rng.choices(self.sources.sentences, k=self.recipe.pool):
            start = rng.randrange(max(1, len(sentence.words) - self.recipe.longest // 2))
            end = start + self.recipe.longest
            out.append(self.encode(Example(sentence.words[start:end], False, tags=sentence.tags[start:end]), rng))
        return out

    def encode(self, example: Example, rng: Random) -> Encoded:
        """Pieces of the words, some of which are replaced by their tag, hidden or spelled out."""
        recipe, encoder = self.recipe, self.encoder
        ids, tags = [encoder.cls], [IGNORED]
        subject = IGNORED
        tag_limit, hidden_limit = recipe.word_as_tag, recipe.word_as_tag + recipe.word_hidden
        for place, word in enumerate(example.words):
            tag = example.tags[place] if example.tags else ""
            chance = rng.random()
            if chance < tag_limit and tag[:2] in ("NN", "VB", "JJ", "RB", "CD"):
                pieces = encoder.pieces(tag)
            elif tag_limit <= chance < hidden_limit and place != example.subject:
                pieces = self.unknown
            elif chance > 1 - recipe.word_spelled:
                pieces = encoder.spelled(word)
            else:
                pieces = encoder.pieces(word)
            ids.extend(pieces)
            tags.extend([IGNORED] * (len(pieces) - 1))
            tags.append(self.tag_ids.get(tag, IGNORED))
            if place == example.subject:
                subject = len(ids) - 1
        return Encoded(ids, tags, int(example.plural), subject)
