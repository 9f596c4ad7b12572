"""A generated language of prefixes: the label is right by construction, and attractors nest.

    prefix   → [lead] subject modifier* [adverb]
    lead     → "in the NOUN ," | "he said that" | "although NP VERB NP ," | NP VERB NP "and" ...
    subject  → [determiner] adjective* [NOUN] NOUN | NP "'s" NOUN
    modifier → preposition NP modifier* | "that" VERB NP | "that" NP VERB | participle "by" NP | "( NP )" | ", NP ,"

Modifiers hold noun phrases and noun phrases hold modifiers, so an attractor may sit inside another one's relative
clause. Words come from a `Lexicon`; when `Phrases` of a corpus are given, leads and modifiers come from there as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from random import Random

from .corpus import Phrases
from .examples import NUMBER_OF_TAG, Example, count_attractors
from .lexicon import UTTERANCES, Lexicon, Word

SINGULAR_DETERMINERS = (*["the"] * 4, "a", "this", "that", "every", "each", "one", "another", "no", "his")
PLURAL_DETERMINERS = (*["the"] * 4, "", "", "some", "these", "those", "many", "several", "two", "all", "its")
NUMBERED = {"a": "the", "an": "some", "this": "these", "these": "this", "that": "those", "those": "that"} | {
    "every": "all", "each": "several", "another": "some", "many": "every", "several": "one", "few": "each", "both": "the",
    "two": "one", "three": "one", "one": "two", "all": "every",
}  # fmt: skip
TAG_OF_DETERMINER = {"two": "CD", "one": "CD", "three": "CD", "many": "JJ", "several": "JJ"} | {
    "his": "PRP$",
    "its": "PRP$",
}
PRONOUNS = ("he", "she", "they", "we", "it", "i")
SUBORDINATE = ("although", "because", "when", "while", "if", "since")
RELATIVE_PRONOUNS = (("that", "WDT"), ("which", "WDT"), ("who", "WP"))
KINDS = ("prepositional", "subject relative", "object relative", "reduced", "aside")
KIND_WEIGHTS = (10, 4, 3, 4, 3)


@dataclass(frozen=True)
class Grammar:
    """Draws prefixes. `borrowed` is the share of leads and modifiers taken from `phrases`."""

    lexicon: Lexicon
    phrases: Phrases | None = None
    borrowed: float = 0.6
    attracting: float = 0.6  # how often a noun after the subject gets the other number on purpose

    @cached_property
    def _cumulative(self) -> list[float]:
        return list(accumulate(self.lexicon.noun_weights or [1.0] * len(self.lexicon.nouns)))

    def example(self, rng: Random, *, plural: bool | None = None) -> Example:
        """One prefix; the number is drawn evenly unless given."""
        plural = rng.random() < 0.5 if plural is None else plural
        lead = self.lead(rng) if rng.random() < 0.4 else []
        subject = self.subject(rng, plural=plural)
        rest: list[Word] = []
        for _ in range(rng.choices((0, 1, 2, 3), (2, 8, 4, 1))[0]):
            rest += self.modifier(rng, plural=plural, nested=0.35)
        if rng.random() < 0.12:
            rest += self._words(rng, "RB")
        pairs = [*lead, *subject, *rest]
        head = len(lead) + len(subject) - 1
        tags = tuple(tag for _, tag in pairs)
        return Example(
            words=tuple(word for word, _ in pairs),
            plural=plural,
            subject=head,
            attractors=count_attractors(tags, head, plural=plural),
            tags=tags,
            licence="generated",
            source="grammar",
        )

    def subject(self, rng: Random, *, plural: bool) -> list[Word]:
        """A noun phrase whose last word is its head, of the number asked for."""
        if self.phrases and self.phrases.subjects and rng.random() < self.borrowed / 2:
            phrase = list(rng.choice(self.phrases.subjects))
            if (NUMBER_OF_TAG[phrase[-1][1]] == plural) or inflect(self.lexicon, phrase, len(phrase) - 1):
                return phrase
        return self.noun_phrase(rng, plural=plural)

    def noun_phrase(self, rng: Random, *, plural: bool) -> list[Word]:
        """Determiner, adjectives, perhaps another noun or an owner, then the head."""
        out: list[Word] = []
        if rng.random() < 0.1:  # an owner's number says nothing about the head's
            out += [*self._determined(rng, plural=rng.random() < 0.5), ("'s", "POS")]
            if out[-2][1] == "NNS":
                out[-1] = ("'", "POS")
        else:
            word = rng.choice(PLURAL_DETERMINERS if plural else SINGULAR_DETERMINERS)
            out += [(word, TAG_OF_DETERMINER.get(word, "DT"))] if word else []
        for _ in range(rng.choices((0, 1, 2), (10, 4, 1))[0]):
            out += self._words(rng, "JJ")
        if rng.random() < 0.15:
            out.append(self._noun(rng, plural=False) if rng.random() < 0.8 else ("NNP", "NNP"))
        return [*out, self._noun(rng, plural=plural)]

    def modifier(self, rng: Random, *, plural: bool, nested: float) -> list[Word]:
        """What may stand between a head of that number and its verb; its nouns tend to the other number."""
        kind = rng.choices(KINDS, KIND_WEIGHTS)[0]
        if self.phrases and rng.random() < self.borrowed:
            name = {"subject relative": "relative", "object relative": ""}.get(kind, kind)
            if self.phrases.modifiers.get(name):
                return self._borrow(rng, name, plural=plural)
        inside = self._inside(rng, plural=plural, nested=nested)
        if kind == "prepositional":
            if rng.random() < 0.15:
                inside += [("and", "CC"), *self._inside(rng, plural=plural, nested=0.0)]
            return [*self._words(rng, "IN"), *inside]
        if kind == "subject relative":
            return [rng.choice(RELATIVE_PRONOUNS), *self._verb(rng, plural=plural), *inside]
        if kind == "object relative":
            other = NUMBER_OF_TAG.get(inside[-1][1], False)
            pronoun = [("that", "WDT")] if rng.random() < 0.6 else []
            return [*pronoun, *inside, *self._verb(rng, plural=other)]
        if kind == "reduced":
            if rng.random() < 0.5:
                return [*self._words(rng, "VBG"), *inside]
            return [*self._words(rng, "VBN"), rng.choice((("by", "IN"), ("in", "IN"), ("for", "IN"))), *inside]
        if rng.random() < 0.4:
            return [("(", "-LRB-"), *inside, (")", "-RRB-")]
        start = rng.choice(([], [("including", "VBG")], [("like", "IN")], [("such", "JJ"), ("as", "IN")]))
        return [(",", ","), *start, *inside, (",", ",")]

    def lead(self, rng: Random) -> list[Word]:
        """What comes before the subject: all of it is over when the subject starts."""
        if self.phrases and self.phrases.leads and rng.random() < self.borrowed:
            lead = list(rng.choice(self.phrases.leads))
            scramble(self.lexicon, rng, lead, range(len(lead)), share=0.15)
            return lead
        one, two = (self.noun_phrase(rng, plural=rng.random() < 0.5) for _ in range(2))
        kind = rng.randrange(6)
        if kind == 0:
            return [*self._words(rng, "IN"), *one, (",", ",")]
        if kind == 1:
            return [(rng.choice(PRONOUNS), "PRP"), (rng.choice(UTTERANCES), "VBD"), ("that", "IN")]
        clause = [*one, *self._verb(rng, plural=one[-1][1] == "NNS"), *two]
        if kind == 2:
            return [(rng.choice(SUBORDINATE), "IN"), *clause, (",", ",")]
        if kind == 3:
            return [*clause, (",", ","), (rng.choice(("and", "but")), "CC")]
        if kind == 4:
            return [*one, (rng.choice(UTTERANCES), "VBD"), ("that", "IN")]
        return [*self._words(rng, "RB"), (",", ",")]

    def _inside(self, rng: Random, *, plural: bool, nested: float) -> list[Word]:
        """A noun phrase below a head of that number, perhaps with a modifier of its own."""
        own = not plural if rng.random() < self.attracting else rng.random() < 0.5
        phrase = self.noun_phrase(rng, plural=own)
        if rng.random() < nested:
            phrase += self.modifier(rng, plural=own if rng.random() < 0.5 else plural, nested=nested / 2)
        return phrase

    def _borrow(self, rng: Random, name: str, *, plural: bool) -> list[Word]:
        assert self.phrases is not None
        phrase = list(rng.choice(self.phrases.modifiers[name]))
        for place, (_, tag) in enumerate(phrase):
            wanted = not plural if rng.random() < self.attracting else rng.random() < 0.5
            if tag in NUMBER_OF_TAG and NUMBER_OF_TAG[tag] != wanted:
                inflect(self.lexicon, phrase, place)
        if name == "relative":
            agree(self.lexicon, phrase, 0, plural=plural)
        return phrase

    def _determined(self, rng: Random, *, plural: bool) -> list[Word]:
        return [("the", "DT"), self._noun(rng, plural=plural)]

    def _noun(self, rng: Random, *, plural: bool) -> Word:
        pair = rng.choices(self.lexicon.nouns, cum_weights=self._cumulative)[0]
        return (pair[1], "NNS") if plural else (pair[0], "NN")

    def _verb(self, rng: Random, *, plural: bool) -> list[Word]:
        if rng.random() < 0.4:
            return self._words(rng, "VBD")
        pair = self.lexicon.verbs[rng.randrange(2) if rng.random() < 0.15 else rng.randrange(len(self.lexicon.verbs))]
        return [(pair[1], "VBP") if plural else (pair[0], "VBZ")]

    def _words(self, rng: Random, tag: str) -> list[Word]:
        return [(rng.choice(self.lexicon.words[tag]), tag)]


def inflect(lexicon: Lexicon, phrase: list[Word], place: int) -> bool:
    """Put the noun at `place` into its other number, its determiner with it; False where the lexicon has none."""
    other = lexicon.other.get(phrase[place])
    if other is None:
        return False
    phrase[place] = other
    before = place - 1
    while before >= 0 and phrase[before][1] in ("JJ", "NN", "NNP", "VBN", "CD"):
        if phrase[before][0] in NUMBERED:
            break
        before -= 1
    if before >= 0 and phrase[before][1] in ("DT", "CD", "JJ") and phrase[before][0] in NUMBERED:
        word = NUMBERED[phrase[before][0]]
        phrase[before] = (word, TAG_OF_DETERMINER.get(word, "DT"))
    return True


def agree(lexicon: Lexicon, phrase: list[Word], start: int, *, plural: bool) -> None:
    """Let the verb of a relative clause that starts there agree with a head of that number."""
    for place in range(start + 1, min(start + 4, len(phrase))):
        word = phrase[place]
        if word[1] in ("VBZ", "VBP") or word[0] in ("was", "were"):
            if (word[1] == "VBP" or word[0] == "were") != plural:
                phrase[place] = lexicon.other.get(word, word)
            return
        if word[1] not in ("RB", "WDT", "WP"):
            return


def scramble(lexicon: Lexicon, rng: Random, phrase: list[Word], places: Sequence[int], *, share: float) -> None:
    """Put a share of the nouns at these places into their other number."""
    for place in places:
        if phrase[place][1] in NUMBER_OF_TAG and rng.random() < share:
            inflect(lexicon, phrase, place)
