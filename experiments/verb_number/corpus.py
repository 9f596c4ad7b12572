"""The tagged corpus: its lexicon, its phrases, and the examples that its tags alone give away."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from sys import intern
from zlib import crc32

from .examples import NUMBER_OF_TAG, Example, count_attractors, open_text
from .lexicon import Word

# One letter for each tag, so that a phrase is a regular expression over a sentence's tags.
LETTERS = {
    "DT": "D", "PDT": "D", "PRP$": "D", "JJ": "J", "JJR": "J", "JJS": "J", "CD": "C", "NN": "N", "NNS": "S",
    "NNP": "P", "NNPS": "P", "POS": "o", "IN": "I", "TO": "T", "WDT": "W", "WP": "W", "RB": "R", "RBR": "R",
    "VBZ": "Z", "VBP": "Y", "VBD": "X", "MD": "M", "VB": "B", "VBN": "E", "VBG": "G", ",": ",", ".": ".", "CC": "c",
    "-LRB-": "(", "-RRB-": ")", "PRP": "r", ":": ":", "WRB": "w", "``": "q", "''": "q", "EX": "e",
}  # fmt: skip
_SUBORDINATORS = """that because if although though while whereas whether since unless until as when where how why"""
SUBORDINATORS = frozenset(_SUBORDINATORS.split())
NOUN_PHRASE = r"(?:D?[CJ]*[NPS]+o)?D?[CJ]*[NP]*[NS]"
ANY_PHRASE = r"(?:D?[CJ]*[NPS]+o)?D?[CJ]*[NP]*[NSP]"
PREPOSITIONAL = rf"(?:[IT]{ANY_PHRASE}(?:c{ANY_PHRASE})?)"
REDUCED = rf"(?:R?(?:[EG]|J){PREPOSITIONAL}{{1,2}}|G{ANY_PHRASE}{PREPOSITIONAL}?)"
RELATIVE = rf"(?:[Wt]R?(?:[ZYX]|MB)R?E?(?:{ANY_PHRASE}|J)?{PREPOSITIONAL}{{0,2}})"
OBJECT_RELATIVE = rf"(?:[Wt]?(?:{ANY_PHRASE}|r)X[IT]?)"
ASIDE = rf"(?:,(?:{REDUCED}|{RELATIVE}|{ANY_PHRASE}),|\((?:{ANY_PHRASE}|{REDUCED})\))"
MODIFIERS = rf"(?:{PREPOSITIONAL}|{RELATIVE}|{REDUCED}|{ASIDE})"
# Where a clause may start: the sentence, a comma, "that" and its like (written t, s), "where", or a conjunction that
# does not follow a noun ("the cat and the dog" has another number than "the dog").
CLAUSE = re.compile(
    rf"(?:^q?|(?<=[,:wts])|(?<=[^NSP]c))(?:R,)?(?P<noun>{NOUN_PHRASE})(?P<rest>{MODIFIERS}{{0,3}})(?P<adverb>R{{0,2}})(?=[ZYXM])"
)
LOOSE = {
    "prepositional": re.compile(rf"(?<=[NS]){PREPOSITIONAL}{{1,3}}"),
    "reduced": re.compile(rf"(?<=[NS]){REDUCED}(?=[,.ZYXM])"),
    "relative": re.compile(rf"(?<=[NS])(?:{RELATIVE})(?=[,.ZYXM])"),
    "aside": re.compile(rf"(?<=[NS]){ASIDE}(?=[ZYXM])"),
}
HELD_OUT_SHARE = 16  # one sentence in so many is kept for choosing between models


@dataclass(frozen=True, slots=True)
class Tagged:
    """A sentence with its Penn tags."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    licence: str = ""
    source: str = ""


@dataclass(frozen=True)
class Phrases:
    """Pieces of real sentences, to build new ones from."""

    leads: list[tuple[Word, ...]] = field(default_factory=list)  # what comes before a subject
    subjects: list[tuple[Word, ...]] = field(default_factory=list)  # noun phrases, head last
    modifiers: dict[str, list[tuple[Word, ...]]] = field(default_factory=dict)  # what follows a head, by kind


def is_held_out(sentence: str) -> bool:
    """Decided by the text alone, so that a sentence found in two files lands on the same side."""
    return crc32(sentence.encode()) % HELD_OUT_SHARE == 0


def is_free(licence: str) -> bool:
    """Weights may be trained on it and shipped: no licence that forbids commercial use."""
    return bool(licence) and "NC" not in licence.upper().split("-")


def read_tagged(path: str | Path) -> Iterator[Tagged]:
    """Sentences of `source TAB licence TAB word/TAG ...`, held-out ones and those with a closed licence left out."""
    with open_text(path) as file:
        for line in file:
            source, licence, text = line.rstrip("\n").split("\t")
            if source == "source" or not is_free(licence):
                continue
            pairs = [token.rpartition("/") for token in text.split(" ")]
            words = tuple(intern(word) for word, _, _ in pairs)
            if not is_held_out(" ".join(words)):
                yield Tagged(words, tuple(intern(tag) for _, _, tag in pairs), intern(licence), intern(source))


def count_words(sentences: Iterable[Tagged]) -> Counter[Word]:
    return Counter(pair for sentence in sentences for pair in zip(sentence.words, sentence.tags, strict=True))


def letters(sentence: Tagged) -> str:
    """The sentence's tags as letters; t is a complementiser or relative "that", s another subordinator."""
    out = []
    for word, tag in zip(sentence.words, sentence.tags, strict=True):
        letter = LETTERS.get(tag, "?")
        if letter == "I" and word in SUBORDINATORS:
            letter = "t" if word == "that" else "s"
        elif letter == "W" and word in ("what", "whatever"):
            letter = "?"
        out.append(letter)
    return "".join(out)


def examples_of(sentence: Tagged) -> Iterator[Example]:
    """Every clause whose subject the tags show: a noun phrase with modifiers, then a finite verb.

    The number is the head noun's; a verb that shows another one (the parse is wrong, or the subject is "a number of")
    drops the example. Verbs in the past and modals show none, so they give examples that no treebank of present-tense
    agreement has.
    """
    code = letters(sentence)
    for found in CLAUSE.finditer(code):
        head, verb = found.end("noun") - 1, found.end()
        plural = NUMBER_OF_TAG[sentence.tags[head]]
        if _verb_number(sentence.words[verb], sentence.tags[verb], plural=plural) == plural:
            yield Example(
                words=sentence.words[:verb],
                plural=plural,
                subject=head,
                attractors=count_attractors(sentence.tags[:verb], head, plural=plural),
                tags=sentence.tags[:verb],
                sentence=" ".join(sentence.words),
                licence=sentence.licence,
                source=sentence.source,
            )


def _verb_number(word: str, tag: str, *, plural: bool) -> bool:
    """Whether a finite verb is plural; `plural` where its form does not show it."""
    if tag in ("VBZ", "VBP") or word in ("was", "were"):
        return tag == "VBP" or word == "were"
    return plural


def harvest(sentences: Iterable[Tagged], *, longest: int = 12) -> Phrases:
    """Leads, subjects and modifiers of real sentences; longer ones than `longest` words are left."""
    phrases = Phrases(modifiers={kind: [] for kind in LOOSE})
    for sentence in sentences:
        code = letters(sentence)
        pairs: Sequence[Word] = list(zip(sentence.words, sentence.tags, strict=True))
        for found in CLAUSE.finditer(code):
            phrases.subjects.append(tuple(pairs[found.start("noun") : found.end("noun")]))
            if 0 < found.start("noun") <= 2 * longest:
                phrases.leads.append(tuple(pairs[: found.start("noun")]))
        for kind, pattern in LOOSE.items():
            for found in pattern.finditer(code):
                if found.end() - found.start() <= longest:
                    phrases.modifiers[kind].append(tuple(pairs[found.start() : found.end()]))
    return phrases
