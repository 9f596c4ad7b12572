"""New examples from a real one: the subject's number, what follows the subject, and rare words are changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from .examples import Example, count_attractors
from .grammar import Grammar, agree, inflect, scramble
from .lexicon import Word

SOFT = (",", "-LRB-", ":", "``")


@dataclass(frozen=True)
class Augmenter:
    """Changes that keep the label, or change it together with the subject."""

    grammar: Grammar
    flip: float = 0.5  # the subject's number
    insert: float = 0.7  # modifiers after the subject
    scramble: float = 0.2  # each other noun's number

    def __call__(self, example: Example, rng: Random) -> Example:
        """Needs the subject's index and tags; gives the example back unchanged without them."""
        if example.subject < 0 or not example.tags:
            return example
        lexicon = self.grammar.lexicon
        pairs: list[Word] = list(zip(example.words, example.tags, strict=True))
        head, plural = example.subject, example.plural
        before, subject, after = pairs[:head], [pairs[head]], pairs[head + 1 :]
        phrase = before + subject
        if rng.random() < self.flip and _movable(after) and inflect(lexicon, phrase, head):
            plural = not plural
            if after and after[0][1] in ("WDT", "WP"):
                agree(lexicon, after, 0, plural=plural)
        scramble(lexicon, rng, phrase, range(head), share=self.scramble)
        scramble(lexicon, rng, after, range(len(after)), share=2 * self.scramble)
        if rng.random() < self.insert:
            for _ in range(rng.choices((1, 2, 3), (6, 3, 1))[0]):
                after = self._inserted(rng, after, plural=plural)
        new = phrase + after
        tags = tuple(tag for _, tag in new)
        return replace(
            example,
            words=tuple(word for word, _ in new),
            tags=tags,
            plural=plural,
            attractors=count_attractors(tags, head, plural=plural),
        )

    def _inserted(self, rng: Random, after: list[Word], *, plural: bool) -> list[Word]:
        """A modifier right behind the head, or right before the verb where a noun stands there."""
        new = self.grammar.modifier(rng, plural=plural, nested=0.25)
        if after and after[-1][1] in ("NN", "NNS", "NNP", "-RRB-") and rng.random() < 0.5:
            return after + new
        return new + after


def _movable(after: list[Word]) -> bool:
    """A finite verb in the present after the subject may agree with it; only "who" and its like are mended."""
    relative = bool(after) and after[0][1] in ("WDT", "WP")
    finite = sum(tag in ("VBZ", "VBP") or word in ("was", "were") for word, tag in after)
    return finite <= int(relative)


def with_tags_for_rare(example: Example, rank: dict[str, int], keep: int) -> Example:
    """Words beyond the `keep` most frequent become their tag, as in Linzen et al.'s own files."""
    if not example.tags:
        return example
    words = tuple(
        word if rank.get(word, keep) < keep or not word[:1].isalpha() else tag
        for word, tag in zip(example.words, example.tags, strict=True)
    )
    return replace(example, words=words)
