"""Accuracy of a verb-number model: `python -m experiments.verb_number.evaluate FILE [--model FOLDER]`.

FILE is the shared TSV, Linzen's agr_50_mostcommon_10K.tsv or numpred.*, each packed by gzip or not. Intervals are
Wilson's (1927), 95 %.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import torch
from tqdm import tqdm
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from .examples import Example, UnreadableExamples, read

BUNDLED = Path(__file__).resolve().parents[2] / "src" / "attnflow" / "assets" / "verb_number"


@dataclass(frozen=True)
class Share:
    """So many right out of so many."""

    right: int
    n: int

    @property
    def accuracy(self) -> float:
        return self.right / self.n if self.n else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's score interval: (p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n)."""
        if not self.n:
            return float("nan"), float("nan")
        z2 = 1.959963984540054**2
        middle = self.accuracy + z2 / (2 * self.n)
        reach = sqrt(z2 * (self.accuracy * (1 - self.accuracy) / self.n + z2 / (4 * self.n**2)))
        return (middle - reach) / (1 + z2 / self.n), (middle + reach) / (1 + z2 / self.n)


@dataclass(frozen=True)
class Score:
    """How often a model is right, and on what."""

    examples: Sequence[Example]
    right: Sequence[bool]

    def share(self, attractors: int | None = None, *, plural: bool | None = None) -> Share:
        """Of the examples with that many attractors and of that number; of all of them when not said."""
        of = [
            right
            for example, right in zip(self.examples, self.right, strict=True)
            if (attractors is None or example.attractors == attractors) and plural in (None, example.plural)
        ]
        return Share(sum(of), len(of))

    def table(self) -> str:
        """Overall, by number and by attractors, as text."""
        lines = ["                    n  accuracy  95 % interval"]
        rows = [("all", self.share()), ("singular", self.share(plural=False)), ("plural", self.share(plural=True))]
        counts = sorted({row.attractors for row in self.examples if row.attractors is not None})
        rows += [(f"{count} attractor{'s' * (count != 1)}", self.share(count)) for count in counts]
        for name, share in rows:
            low, high = share.interval
            lines.append(f"{name:<14}{share.n:>7}    {share.accuracy:.4f}  {low:.4f} to {high:.4f}")
        return "\n".join(lines)


@torch.inference_mode()
def predict(folder: str | Path, texts: Sequence[str], *, batch: int = 64, quiet: bool = True) -> list[bool]:
    """Whether the verb to come is plural, for each text."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).float().eval()
    plural = next(index for index, name in model.config.id2label.items() if name == "plural")
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    out = [False] * len(texts)
    for start in tqdm(range(0, len(texts), batch), unit="batch", disable=quiet):
        chosen = order[start : start + batch]
        inputs = tokenizer([texts[index] for index in chosen], padding=True, truncation=True, return_tensors="pt")
        winners = model(**inputs).logits.argmax(-1).tolist()
        for index, winner in zip(chosen, winners, strict=True):
            out[index] = winner == plural
    return out


def evaluate(folder: str | Path, examples: Sequence[Example], *, quiet: bool = True) -> Score:
    predicted = predict(folder, [" ".join(example.words) for example in examples], quiet=quiet)
    return Score(examples, [guess == example.plural for guess, example in zip(predicted, examples, strict=True)])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.verb_number.evaluate", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--model", type=Path, default=BUNDLED, help="a model's folder; the bundled one by default")
    parser.add_argument(
        "--sample", type=int, help="so many rows, drawn at random; Linzen's whole table has 1.5 million"
    )
    options = parser.parse_args(arguments)
    if options.sample is not None and options.sample < 1:
        parser.error(f"--sample needs at least 1, got {options.sample}")
    try:
        examples = read(options.file, sample=options.sample)
    except (OSError, EOFError, UnreadableExamples, ValueError) as error:
        print(f"cannot read {options.file}: {error}")
        return 1
    if not (options.model / "config.json").is_file():
        print(f"there is no model in {options.model}: wanted a folder with config.json, as `make train` writes it")
        return 1
    print(evaluate(options.model, examples, quiet=False).table())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
