"""Tasks whose answer depends on known words only, so that the right map is known.

    copy       … mark WORD …                   the word after the mark; other colours are distractors
    first      … WORD … OTHER …                the first of two colours
    majority   … yes … no … yes …              the majority of yes and no, among distractors
    agreement  the old mark key to the doors   the number of the marked subject, in the generated grammar

Every other word has a pool of words that may stand in its place without changing the answer: `redrawn` draws from it,
and the tests hold the generators, the trained models too, to that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random

from experiments.verb_number.grammar import Grammar
from experiments.verb_number.lexicon import builtin

COLOURS = ("red", "green", "blue", "white")
FILLERS = tuple(f"{a}{b}" for a in ("ba", "do", "ki", "lu", "me") for b in ("ra", "ni", "to", "su", "pe"))
MARK = "mark"
LONGEST = 24  # words


@dataclass(frozen=True)
class Case:
    """Words, the answer, the positions of the words that it depends on, and what may stand at the others."""

    words: tuple[str, ...]
    answer: str
    truth: tuple[int, ...]
    pools: tuple[tuple[str, ...], ...]  # empty at the words of the truth

    def redrawn(self, rng: Random) -> tuple[str, ...]:
        """The same answer: every word that does not matter is drawn again."""
        return tuple(rng.choice(pool) if pool else word for word, pool in zip(self.words, self.pools, strict=True))


@dataclass(frozen=True)
class Task:
    """A generator of cases, its possible answers, and the answer as a function of the words, written independently."""

    name: str
    answers: tuple[str, ...]
    draw: Callable[[Random], Case]
    solve: Callable[[tuple[str, ...]], str]


def _copy(rng: Random) -> Case:
    count = rng.randint(6, 14)
    words = [rng.choice(COLOURS) if rng.random() < 0.35 else rng.choice(FILLERS) for _ in range(count)]
    pools = [COLOURS if word in COLOURS else FILLERS for word in words]
    place = rng.randrange(count - 1)
    words[place : place + 2] = [MARK, rng.choice(COLOURS)]
    pools[place : place + 2] = [(), ()]
    return Case(tuple(words), words[place + 1], (place, place + 1), tuple(pools))


def _first(rng: Random) -> Case:
    count = rng.randint(6, 14)
    words, pools = [rng.choice(FILLERS) for _ in range(count)], [FILLERS] * count
    one, other = sorted(rng.sample(range(count), 2))
    words[one], words[other] = rng.sample(COLOURS, 2)
    pools[one], pools[other] = (), COLOURS
    return Case(tuple(words), words[one], (one,), tuple(pools))


def _majority(rng: Random) -> Case:
    count = rng.randint(7, 14)
    votes = rng.choice((3, 5))
    words, pools = [rng.choice(FILLERS) for _ in range(count)], [FILLERS] * count
    places = sorted(rng.sample(range(count), votes))
    winner, loser = rng.sample(("yes", "no"), 2)
    winning = set(rng.sample(places, rng.randint(votes // 2 + 1, votes)))
    for place in places:
        words[place], pools[place] = (winner if place in winning else loser), ()
    return Case(tuple(words), winner, tuple(places), tuple(pools))


@cache
def _grammar() -> Grammar:
    return Grammar(builtin())


def _agreement(rng: Random) -> Case:
    """A prefix of the generated language with the subject's head marked; other nouns may be of any number."""
    while True:
        example = _grammar().example(rng)
        if len(example.words) < LONGEST:
            break
    other = _grammar().lexicon.other
    words: list[str] = []
    pools: list[tuple[str, ...]] = []
    for place, (word, tag) in enumerate(zip(example.words, example.tags, strict=True)):
        if place == example.subject:
            words += [MARK, word]
            pools += [(), ()]
            continue
        twin = other.get((word, tag)) if tag in ("NN", "NNS") else None
        words.append(word)
        pools.append((word, twin[0]) if twin else (word,))
    truth = (example.subject, example.subject + 1)
    return Case(tuple(words), "plural" if example.plural else "singular", truth, tuple(pools))


def _marked(words: tuple[str, ...]) -> str:
    return words[words.index(MARK) + 1]


def _number(words: tuple[str, ...]) -> str:
    """Of the marked noun, by the lexicon; a noun of both numbers (none here) would be singular."""
    plurals = {plural for _, plural in _grammar().lexicon.nouns}
    return "plural" if _marked(words) in plurals else "singular"


TASKS = {
    task.name: task
    for task in (
        Task("copy", COLOURS, _copy, _marked),
        Task("first", COLOURS, _first, lambda words: next(word for word in words if word in COLOURS)),
        Task("majority", ("yes", "no"), _majority, lambda words: max(("yes", "no"), key=words.count)),
        Task("agreement", ("singular", "plural"), _agreement, _number),
    )
}


def cases(name: str, count: int, seed: str) -> list[Case]:
    """So many cases, the same for the same seed."""
    rng = Random(f"{name} {seed}")
    return [TASKS[name].draw(rng) for _ in range(count)]
