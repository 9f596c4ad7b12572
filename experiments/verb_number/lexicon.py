"""Words with their inflections: a small lexicon of our own, or a large one counted from a tagged corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

Word = tuple[str, str]  # the word and its Penn tag

IRREGULAR = {
    "man": "men", "woman": "women", "child": "children", "person": "people", "foot": "feet", "tooth": "teeth",
    "mouse": "mice", "goose": "geese", "criterion": "criteria", "phenomenon": "phenomena", "datum": "data",
    "bacterium": "bacteria", "medium": "media", "analysis": "analyses", "crisis": "crises", "basis": "bases",
    "thesis": "theses", "hypothesis": "hypotheses", "axis": "axes", "nucleus": "nuclei", "fungus": "fungi",
    "alumnus": "alumni", "stimulus": "stimuli", "larva": "larvae", "matrix": "matrices", "index": "indices",
    "vertex": "vertices", "leaf": "leaves", "life": "lives", "wife": "wives", "knife": "knives", "half": "halves",
    "shelf": "shelves", "wolf": "wolves", "loaf": "loaves", "thief": "thieves", "self": "selves", "calf": "calves",
    "spectrum": "spectra", "stratum": "strata", "genus": "genera", "ox": "oxen", "curriculum": "curricula",
}  # fmt: skip


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NOUNS = _split("""key cabinet table author book article system student teacher school city river mountain building bridge
 road car train station church castle garden tree flower bird dog cat horse farmer soldier officer king queen player
 team coach game match season film actor director song singer band album story poem writer reader letter word language
 village town region country island lake coast harbour ship boat captain engine wheel machine computer program file
 picture painting museum artist gallery house door window room wall roof kitchen bottle glass plate meal recipe
 doctor nurse hospital patient disease drug cell protein gene species animal plant forest field farm market shop
 company manager worker union law judge court crime prisoner election minister party member leader group committee
 report paper study result theory model method experiment scientist professor university class lesson exam question
 answer problem solution idea plan project map path street park tower temple stone coin weapon battle war peace treaty
 border army enemy friend neighbour family brother sister daughter son parent baby man woman child person analysis
 crisis hypothesis leaf knife wolf shelf life foot mouse theory story party city country baby box bus dish church
 watch glass match bench branch process address virus campus""")
VERBS = _split("""like see know follow support describe contain include produce require cause affect help show find need
 use make take give hold own build carry cover cross represent replace remember admire avoid surround connect visit
 attract protect control influence mention""")
PAST = _split("""liked saw knew followed supported described contained included produced required caused affected helped
 showed found needed used made took gave held owned built carried covered crossed visited protected mentioned""")
PARTICIPLES = _split("""made found used written built owned described produced supported controlled known held covered
 surrounded painted designed given taken published""")
GERUNDS = _split("containing including describing showing holding using making following carrying supporting")
ADJECTIVES = _split("""old new large small red green famous early modern public local common major important strong young
 different whole central royal national long short high low dark heavy cheap rare unusual recent main""")
ADVERBS = _split("also often usually now still generally never always probably currently however sometimes")
PREPOSITIONS = _split("of in to for on with at from by near behind under about between above against beyond through")
NAMES = _split("london mary john paris smith germany africa microsoft peter sara")
UTTERANCES = _split("said thought knew believed showed reported claimed argued noted found")


@dataclass(frozen=True)
class Lexicon:
    """What a grammar draws its words from; nouns and verbs are pairs (singular, plural) with weights."""

    nouns: tuple[tuple[str, str], ...]
    verbs: tuple[tuple[str, str], ...]
    words: dict[str, tuple[str, ...]]  # by tag: JJ, RB, IN, VBD, VBN, VBG, NNP
    noun_weights: tuple[float, ...] = ()
    tag_of: dict[str, str] = field(default_factory=dict)  # the usual tag of a word

    @cached_property
    def other(self) -> dict[Word, Word]:
        """Each inflected word with its tag → the same word in the other number."""
        pairs: dict[Word, Word] = {("was", "VBD"): ("were", "VBD"), ("were", "VBD"): ("was", "VBD")}
        for singular, plural in self.nouns:
            pairs[singular, "NN"] = (plural, "NNS")
            pairs[plural, "NNS"] = (singular, "NN")
        for singular, plural in self.verbs:
            pairs[singular, "VBZ"] = (plural, "VBP")
            pairs[plural, "VBP"] = (singular, "VBZ")
        for tag in ("NN", "VBZ"):  # a word that was already replaced by its tag inflects too
            plural_tag = {"NN": "NNS", "VBZ": "VBP"}[tag]
            pairs[tag, tag] = (plural_tag, plural_tag)
            pairs[plural_tag, plural_tag] = (tag, tag)
        return pairs


def plural_of(noun: str) -> str:
    """The regular plural, or the irregular one of a short list."""
    if noun in IRREGULAR:
        return IRREGULAR[noun]
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def singular_verb(verb: str) -> str:
    """The third person singular of a verb's base form."""
    irregular = {"be": "is", "have": "has", "do": "does", "go": "goes"}
    return irregular.get(verb) or plural_of(verb)  # the same spelling rules


def builtin() -> Lexicon:
    """The lexicon that needs no data at all."""
    nouns = tuple(dict.fromkeys((noun, plural_of(noun)) for noun in NOUNS))
    verbs = (("is", "are"), ("has", "have"), *((singular_verb(verb), verb) for verb in VERBS))
    words = {
        "JJ": ADJECTIVES, "RB": ADVERBS, "IN": PREPOSITIONS, "VBD": PAST, "VBN": PARTICIPLES, "VBG": GERUNDS,
        "NNP": NAMES,
    }  # fmt: skip
    tags = {word: tag for tag, group in words.items() for word in group}
    for tag, index in (("NN", 0), ("NNS", 1)):
        tags |= {pair[index]: tag for pair in nouns}
    return Lexicon(nouns, verbs, words, (), tags)


def from_counts(counts: Counter[Word]) -> Lexicon:
    """A lexicon from how often each (word, tag) was seen: the corpus's own nouns in both numbers."""
    by_tag: dict[str, dict[str, int]] = {}
    best: dict[str, tuple[int, str]] = {}
    for (word, tag), count in sorted(counts.items()):
        by_tag.setdefault(tag, {})[word] = count
        best[word] = max(best.get(word, (0, "")), (count, tag))
    usual = {word: tag for word, (_, tag) in best.items()}
    nouns = list(_pairs(by_tag.get("NN", {}), by_tag.get("NNS", {}), usual, plural_of, ("NN", "NNS")))
    bases = by_tag.get("VBP", {})
    regular = {base: count for base, count in bases.items() if base not in ("are", "have", "do")}
    verbs = _pairs(regular, by_tag.get("VBZ", {}), usual, singular_verb, ("", "VBZ"))
    weight = [(by_tag["NN"][one] + by_tag["NNS"][many]) ** 0.5 for one, many in nouns]
    common = {tag: tuple(_common(words, usual, tag)) for tag, words in by_tag.items()}
    groups = {tag: common.get(tag, ()) for tag in ("JJ", "RB", "VBD", "VBN", "VBG", "NNP")}
    groups["IN"] = tuple(PREPOSITIONS)
    return Lexicon(
        tuple(nouns),
        (("is", "are"), ("has", "have"), ("does", "do"), *((third, base) for base, third in verbs)),
        groups,
        tuple(weight),
        usual,
    )


def _pairs(
    ones: dict[str, int],
    others: dict[str, int],
    usual: dict[str, str],
    inflect: Callable[[str], str],
    tags: tuple[str, str],
) -> Iterator[tuple[str, str]]:
    """Words of which both forms were seen, each mostly as what it is taken for."""
    for one in sorted(ones):
        for other in (inflect(one), one + "s"):
            if len(one) > 1 and one.isalpha() and other in others and usual[other] == tags[1]:
                if not tags[0] or usual[one] == tags[0]:
                    yield one, other
                break


def _common(words: dict[str, int], usual: dict[str, str], tag: str, least: int = 8) -> Iterable[str]:
    return (word for word, count in sorted(words.items()) if count >= least and word.isalpha() and usual[word] == tag)
