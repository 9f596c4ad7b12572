"""Ship a trained run: `python -m experiments.verb_number.ship RUN` copies its model beside the package's code.

Writes the float16 weights, configuration and tokenizer, and a model card with the accuracies measured here and now.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections import Counter
from collections.abc import Sequence
from math import prod
from pathlib import Path
from random import Random

from safetensors import safe_open

from .augment import with_tags_for_rare
from .corpus import count_words, is_free, is_held_out, read_tagged
from .evaluate import BUNDLED, evaluate
from .examples import Example, read, shared_folder
from .grammar import Grammar
from .lexicon import builtin, from_counts
from .mixture import tagged
from .tokenizer import LONGEST

LIMIT = 6_000_000  # bytes, all files together
FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
NAMES = {
    "amalgum-academic": "AMALGUM, academic articles", "amalgum-bio": "AMALGUM, Wikipedia biographies",
    "amalgum-fiction": "AMALGUM, fiction of Project Gutenberg", "amalgum-interview": "AMALGUM, Wikinews interviews",
    "amalgum-news": "AMALGUM, Wikinews", "amalgum-voyage": "AMALGUM, Wikivoyage",
    "ud-ewt": "UD English EWT", "ud-childes": "UD English CHILDES", "ud-eslspok": "UD English ESLSpok",
    "ud-atis": "UD English Atis", "ud-pud": "UD English PUD",
}  # fmt: skip
CARD = """# The verb-number model

Reads the words before an English verb and says whether the verb will be **singular** or **plural**: the task of
Linzen, Dupoux and Goldberg (2016), on which Abnar and Zuidema (2020) measured attention rollout and attention flow.
It exists to be looked into, not to be relied on.

* Architecture: `RobertaPreLayerNormForSequenceClassification`: {layers} layers, {heads} heads, width {width}; each block
  normalises before it attends and has a GELU, as in GPT-2, without a causal mask. The final embedding of `[CLS]`, in
  front, is classified. {parameters:,} parameters in float16, {bytes:,} bytes with the tokenizer.
* Input: lower-case English up to, not including, the verb; at most {longest} pieces, of which the last are kept.
  Penn tags in capitals (`NN`, `NNS`, `NNP` …) stand for rare words, as in Linzen et al.'s files.
* Labels: 0 `singular`, 1 `plural`.

## Accuracy

{tables}
Intervals are Wilson's, 95 %. An attractor is a noun of the other number between the subject and the verb. Most parses
behind the second to fourth tables are automatic, so some of the "errors" there are errors of the parser; in the third,
a subject that is written as a tag has the tag of its verb's number, as in Linzen et al.'s files.
`python -m experiments.verb_number.evaluate FILE` measures it on other files, Linzen et al.'s own formats included.

## Training data

No row under a licence that forbids commercial use was trained on, and no sentence of Linzen et al.'s.
One sentence in sixteen was held out, chosen by its text.

| source | licence | rows |
|---|---|---|
{sources}

* The rows come from AMALGUM (Gessler, Peng, Liu, Zhu, Behzad and Zeldes 2020) and Universal Dependencies treebanks
  (Silveira et al. 2014 for EWT; the others by their teams; universaldependencies.org). AMALGUM's texts are by the
  authors of Wikipedia, Wikinews and Wikivoyage, of openly licensed articles, and of books in the public domain.
* The tagged text of AMALGUM's kinds (110,000 sentences, 2.3 million words, automatic tags) served to pretrain, to give
  the grammar its nouns, phrases and clauses, and to add clauses whose subject the tags alone show.
* The rest is generated: `experiments/verb_number/grammar.py`.

## Recipe

`make train`, that is `python -m experiments.verb_number.train` with the recipe

```json
{recipe}
```

Masked words and tags on whole sentences first. Then a mixture: {real:.0%} real rows (those with attractors {weight:g} times as
often), {augmented:.0%} real rows whose subject's number is changed together with the label or that get new modifiers after the
subject, {generated:.0%} sentences of the grammar. In part of them rare words are written as tags. Two losses serve training
only: every word's tag, and which word is the subject. The weights shipped are the running average.

## Limits

English of edited prose; one clause at a time. Coordinated subjects ("the cat and the dog"), subjects such as "a number
of", collective nouns, titles and foreign words are little or not trained, since Linzen et al.'s recipe leaves most of
them out; where the verb to come belongs to a relative clause ("the man who the dogs") it may answer for the outer noun.
It classifies whatever it is given, also text that calls for no verb. It may repeat biases of its sources.

## Licence

CC BY-SA 4.0, since sources under CC BY-SA 3.0 and 4.0 are among its data; attribution as above. (The library's code is
under Apache-2.0.)
"""


def tables(folder: Path, data: Path | None) -> str:
    """The accuracies on everything there is to measure on."""
    out = [("The generated language (built-in lexicon)", generated())]
    if data is not None:
        rows = read(data / "agreement.tsv.gz")
        held_out = [row for row in rows if is_free(row.licence) and is_held_out(row.sentence)]
        out += [
            ("Held-out rows of the training sources", held_out),
            ("The same with all but the 10,000 most frequent words as tags", rare_as_tags(held_out, data)),
            ("Sources that were not trained on (GUM, GENTLE, LinES, ParTUT, wikiHow)", [r for r in rows if not is_free(r.licence)]),
            ("Sentences of Linzen et al. (2016), rich in attractors", read(data / "agreement_linzen.tsv.gz")),
        ]  # fmt: skip
    return "\n".join(f"### {title}\n\n```\n{evaluate(folder, rows).table()}\n```\n" for title, rows in out)


def rare_as_tags(rows: Sequence[Example], data: Path) -> list[Example]:
    """The rows as Linzen et al.'s files would have them."""
    counts = count_words(read_tagged(data / "english_tagged.tsv.gz"))
    words = from_counts(counts)
    frequency = Counter[str]()
    for (word, _), count in counts.items():
        frequency[word] += count
    rank = {word: place for place, (word, _) in enumerate(frequency.most_common())}
    return [with_tags_for_rare(tagged(row, {}, words), rank, 10_000) for row in rows]


def generated(count: int = 2000) -> list[Example]:
    rng = Random("for the card")
    grammar = Grammar(builtin())
    return [grammar.example(rng) for _ in range(count)]


def sources(rows: Sequence[Example]) -> str:
    """The rows that were trained on, by treebank."""
    counts = Counter((NAMES.get(row.source, row.source), row.licence) for row in rows)
    return "\n".join(f"| {name} | {licence} | {count:,} |" for (name, licence), count in sorted(counts.items()))


def ship(run: Path, target: Path, data: Path | None) -> None:
    """Copy the run's model, weigh it, and write its card."""
    model = run / "model"
    recipe = json.loads((run / "recipe.json").read_text(encoding="utf-8"))
    size = sum((model / name).stat().st_size for name in FILES)
    if size > LIMIT:
        raise SystemExit(f"{model} has {size:,} bytes; at most {LIMIT:,} may be shipped")
    target.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copyfile(model / name, target / name)
    compute_in_float32(target / "config.json")
    rows = read(data / "agreement.tsv.gz") if data else []
    trained = [row for row in rows if is_free(row.licence) and not is_held_out(row.sentence)]
    card = CARD.format(
        **{name: recipe[name] for name in ("layers", "heads", "width", "real", "augmented")},
        parameters=count_parameters(target),
        bytes=size,
        longest=LONGEST,
        tables=tables(target, data),
        sources=sources(trained) if recipe["use_data"] else "| generated alone | | |",
        recipe=json.dumps(recipe, indent=1),
        weight=recipe["attractor_weight"],
        generated=1 - recipe["real"] - recipe["augmented"],
    )
    (target / "MODEL_CARD.md").write_text(card, encoding="utf-8")


def compute_in_float32(config: Path) -> None:
    """Stored in half to be small, widened when it is loaded: CPUs are several times slower at float16."""
    said = json.loads(config.read_text(encoding="utf-8"))
    config.write_text(json.dumps({**said, "dtype": "float32"}, indent=2) + "\n", encoding="utf-8")


def count_parameters(folder: Path) -> int:
    with safe_open(folder / "model.safetensors", "pt") as weights:
        return sum(prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118 (not a dict)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.verb_number.ship", description=__doc__)
    parser.add_argument("run", type=Path, help="a run's folder, as `train` prints it")
    parser.add_argument("--target", type=Path, default=BUNDLED)
    options = parser.parse_args(arguments)
    ship(options.run, options.target, shared_folder())
    print(f"{options.target}: {sum((options.target / name).stat().st_size for name in FILES):,} bytes")


if __name__ == "__main__":
    main()
