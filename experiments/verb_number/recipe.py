"""Every choice of the training, in one place."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from json import dumps


@dataclass(frozen=True)
class Recipe:
    """What is trained, on what mixture, for how long."""

    name: str = "full"
    seed: int = 20
    # the network
    width: int = 128
    layers: int = 6
    heads: int = 8
    dropout: float = 0.1  # of the embeddings and behind each feed-forward part
    whole_words: int = 6500
    word_pieces: int = 2000
    # the mixture of the classifier's examples (the rest is generated)
    real: float = 0.3
    augmented: float = 0.35
    builtin_grammar: float = 0.05  # share of the generated ones from the built-in lexicon alone
    attractor_weight: float = 3.0  # how much oftener a real row with attractors is drawn
    longest: int = 64  # words
    # noise on the words
    rare_as_tags: float = 0.3  # of the examples: rare words are written as their Penn tag
    word_as_tag: float = 0.04  # of the words
    word_hidden: float = 0.02  # of the words: unknown
    word_spelled: float = 0.08  # of the frequent words: split like rare ones
    # the losses
    smoothing: float = 0.02
    pointer: float = 0.5  # CLS finds the subject
    tagging: float = 0.3  # every word knows its tag
    masked: float = 0.15  # of the words in masked-language batches
    # the schedule
    pretrain_pools: int = 20
    pools: int = 230
    masked_every: int = 16  # while classifying, one batch in so many is a masked-language batch
    pool: int = 4096
    batch: int = 128
    rate: float = 1.2e-3
    warming: int = 10  # pools of a linear rise
    cooling: int = 60  # pools of a linear fall to a fiftieth, at the end
    decay: float = 0.05
    averaging: float = 0.999
    checkpoint_every: int = 10
    use_data: bool = True

    @property
    def digest(self) -> str:
        """Names the run's folder: a changed recipe does not continue another one's checkpoints."""
        return hashlib.sha256(dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:10]


FULL = Recipe()
SMALL = Recipe(
    name="small",
    layers=2,
    heads=4,
    width=64,
    whole_words=800,
    word_pieces=200,
    pretrain_pools=3,
    pools=26,
    pool=512,
    batch=64,
    rate=3e-3,
    warming=1,
    cooling=10,
    averaging=0.9,
    checkpoint_every=1,
    use_data=False,
)
RECIPES = {recipe.name: recipe for recipe in (FULL, SMALL)}
