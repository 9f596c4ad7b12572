"""Which sentences the verb-number model is asked about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

from experiments.verb_number.examples import Example, read, shared_folder
from experiments.verb_number.grammar import Grammar
from experiments.verb_number.lexicon import builtin

SEED = "the paper's tables"


@dataclass(frozen=True)
class Corpus:
    """Examples, and what to call them."""

    name: str
    about: str
    examples: list[Example]


def corpus(count: int, file: Path | None = None, *, generated: bool = False) -> Corpus:
    """`count` examples drawn from a file; without one, from the shared sentences of Linzen et al.; without those, generated."""
    shared = shared_folder()
    if file is None and not generated and shared is not None:
        file = shared / "agreement_linzen.tsv.gz"
        about = (
            "sentences of Linzen, Dupoux and Goldberg (2016) in the test set of colorlessgreenRNNs, rich in attractors"
        )
    else:
        about = f"sentences of {file.name}" if file else ""
    if file is None or generated:
        random = Random(SEED)
        grammar = Grammar(builtin())
        examples = [grammar.example(random) for _ in range(count)]
        return Corpus("generated", "sentences of a generated language with nested attractors", examples)
    examples = read(file)
    # One word leaves a single pair of ranks, or none; the rest keeps the file's own mixture.
    examples = [example for example in examples if len(example.words) > 1]
    drawn = Random(SEED).sample(examples, min(count, len(examples)))
    return Corpus(file.name.split(".")[0], about, drawn)
