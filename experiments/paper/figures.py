"""Figures 1 to 3: maps of the verb-number model for three sentences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

import attnflow as af
from attnflow import capture, evaluate, render

from .measure import from_one
from .page import Claim, Page, as_csv, listed, table
from .store import write

ENDINGS = ("png", "svg")


class Sentence(NamedTuple):
    """The words before a verb, the verb's number, changes of one word that may flip it (the paper's first), and the words to
    which the paper's maps point, none where it does not say so.
    """

    text: str
    number: str
    changes: tuple[tuple[str, str], ...]
    watched: tuple[str, ...]
    note: str

    def changed(self, word: str, other: str) -> str:
        """The sentence with another word."""
        return " ".join(other if this == word else this for this in self.text.split())


SENTENCES = (
    Sentence("the key to the cabinets", "singular", (("key", "keys"),), (), "the paper's example of the task"),
    Sentence(
        "the article on NNP large systems",
        "singular",
        (("article", "articles"),),
        ("article", "systems"),
        "the paper's model was right; *articles* flipped it",
    ),
    Sentence(
        "here the NNS differ in that the female",
        "singular",
        (("NNS", "NNP"), ("female", "females")),
        ("NNS",),
        "the paper's model was wrong; *NNP* flipped it",
    ),
)


def run(model: Any, tokenizer: Any, out: Path) -> Page:
    """The pictures, the model's answers with and without the change, and where the maps point."""
    page = Page("figures123", "Figures 1 to 3: verb number")
    maps = {sentence: _maps(model, tokenizer, sentence.text) for sentence in SENTENCES}
    _draw(list(maps[SENTENCES[0]].values()), "figure1", out, kind="graph", scale="separate", width=4.0)
    _draw([several["raw"] for several in maps.values()], "figure2", out, kind="levels", query=0)
    for number, several in enumerate(maps.values(), start=1):
        _draw(list(several.values()), f"figure3_{number}", out, kind="levels", query=0, scale="separate")
    answers: list[list[str]] = []
    rows: list[dict[str, Any]] = []
    for sentence, several in maps.items():
        said = _answer(model, tokenizer, sentence, answers)
        if sentence.watched:
            page.claims += [said, _watched(sentence, several)]
        page.findings.append(_pointed(sentence, several))
        rows += _rows(sentence, several)
    write(out / "figures123.csv", as_csv(rows))
    page.add(
        "The model's probability of a plural verb, as the sentence stands and with another word:\n\n"
        + table(
            ["sentence", "verb should be", "P(plural)", "changed to", "P(plural) then", "the answer flips", ""], answers
        ),
        "## Figure 1\n\nRaw attention (no residual), rollout and flow of *the key to the cabinets*. In rollout and flow an "
        "edge from a layer down to a position shows the share of that *input* token, as in the paper's picture. Each graph has its own scale: the "
        "darkest edge is its largest.\n\n![Figure 1](figure1.png)",
        "## Figure 2\n\nRaw attention of the class token, on one scale.\n\n![Figure 2](figure2.png)",
        "## Figure 3\n\nThe class token's maps: raw attention, rollout, flow, each on its own scale. The class token, which is the query itself, may be drawn apart from the scale. Flow is in units of flow (at most 1), not in "
        "shares of its row.\n\n"
        + "\n\n".join(f"![{s.text}](figure3_{number}.png)" for number, s in enumerate(SENTENCES, start=1)),
    )
    return page


def _maps(model: Any, tokenizer: Any, text: str) -> dict[str, af.Attribution]:
    stack = capture.stack(model, text, tokenizer)
    graph = af.mix(stack)
    found = {"raw": af.raw(af.mix(stack, residual=None)), "rollout": af.rollout(graph), "flow": af.flow(graph)}
    return {name: from_one(attribution) for name, attribution in found.items()}


def _draw(maps: Sequence[af.Attribution], name: str, out: Path, **options: Any) -> None:
    for ending in ENDINGS:
        render.figure(maps, path=out / f"{name}.{ending}", **options)


@torch.inference_mode()
def _plural(model: Any, tokenizer: Any, text: str) -> float:
    labels = {str(label).lower(): number for label, number in model.config.label2id.items()}
    chances = model(**tokenizer(text, return_tensors="pt")).logits.float().softmax(-1)[0]
    return float(chances[labels["plural"]])


def _answer(model: Any, tokenizer: Any, sentence: Sentence, answers: list[list[str]]) -> Claim:
    """Whether the answer is right, and whether the paper's change flips it, which it says of its own model."""
    before = _plural(model, tokenizer, sentence.text)
    afters = [_plural(model, tokenizer, sentence.changed(*change)) for change in sentence.changes]
    flips = [(before > 0.5) != (after > 0.5) for after in afters]
    for number, (change, after) in enumerate(zip(sentence.changes, afters, strict=True)):
        answers.append([
            sentence.text, sentence.number, f"{before:.3f}", sentence.changed(*change), f"{after:.3f}", "yes" if flips[number] else "no",
            "" if number else sentence.note,
        ])  # fmt: skip
    right = "right" if (before > 0.5) == (sentence.number == "plural") else "wrong"
    word, other = sentence.changes[0]
    here = f"the model is {right}, P(plural) = {before:.2f}" + "".join(
        f"; with *{to}* for *{of}* {after:.2f}" for (of, to), after in zip(sentence.changes, afters, strict=True)
    )
    return Claim(f"*{sentence.text}*: *{other}* for *{word}* flips the decision", here, "yes" if flips[0] else "no")


def _watched(sentence: Sentence, maps: dict[str, af.Attribution]) -> Claim:
    """Whether rollout and flow give these words more than the mean of all words at the last level."""
    names = listed([f"*{word}*" for word in sentence.watched])
    times = {name: [_times_mean(maps[name], word) for word in sentence.watched] for name in ("rollout", "flow")}
    here = "; ".join(f"{name} {listed([f'{value:.2f}' for value in values])}" for name, values in times.items())
    high = [value > 1 for values in times.values() for value in values]
    return Claim(
        f"*{sentence.text}*: rollout and flow give relatively high weights to {names}",
        f"times the mean word, at the last layer: {here}",
        "yes" if all(high) else "in part" if any(high) else "no",
    )


def _times_mean(attribution: af.Attribution, word: str) -> float:
    """A word's score as a multiple of the mean of all words, the class token left out."""
    scores = attribution.of(0)[1:]
    return float(scores[attribution.tokens.position(word) - 1] / scores.mean())


def _pointed(sentence: Sentence, maps: dict[str, af.Attribution]) -> str:
    strongest = ", ".join(f"*{_strongest(a)}* for {name}" for name, a in maps.items())
    entropies = evaluate.entropy([maps["raw"]], query=0)[0]
    return (
        f"*{sentence.text}*: at the last layer the strongest word is {strongest}. Raw attention's entropy is "
        f"{', '.join(f'{value:.2f}' for value in entropies)} from layer 1 up (1 is uniform)."
    )


def _strongest(attribution: af.Attribution) -> str:
    """The word that the class token draws most from at the last level, itself left out."""
    return next(
        token for token, _ in attribution.top(len(attribution.tokens), 0) if token != attribution.tokens.labels[0]
    )


def _rows(sentence: Sentence, maps: dict[str, af.Attribution]) -> list[dict[str, Any]]:
    rows = []
    for method, attribution in maps.items():
        for level in attribution.levels:
            scores = attribution.of(0, level)
            rows += [
                {"sentence": sentence.text, "method": method, "layer": level + 1, "position": i, "token": token, "score": float(score)}
                for i, (token, score) in enumerate(zip(attribution.tokens.labels, scores, strict=True))
            ]  # fmt: skip
    return rows
