"""Figures 1 to 3: maps of the verb-number model for three sentences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

import attnflow as af
from attnflow import capture, evaluate, render

from .page import Page, as_csv, table
from .store import write

ENDINGS = ("png", "svg")


class Sentence(NamedTuple):
    """The words before a verb, the verb's number, and a subject whose change should flip it."""

    text: str
    number: str
    subject: str
    other: str
    note: str

    @property
    def changed(self) -> str:
        """The sentence with the other subject."""
        return " ".join(self.other if word == self.subject else word for word in self.text.split())


SENTENCES = (
    Sentence("the key to the cabinets", "singular", "key", "keys", "the paper's example in words"),
    Sentence(
        "the article on NNP large systems",
        "singular",
        "article",
        "articles",
        "the paper's model was right, and flipped",
    ),
    Sentence(
        "here the NNS differ in that the female", "singular", "NNS", "NNP", "the paper's model was wrong, and flipped"
    ),
)


def run(model: Any, tokenizer: Any, out: Path) -> Page:
    """The pictures, the model's answers with and without the change, and where the maps point."""
    page = Page("figures123", "Figures 1 to 3: verb number")
    maps = {sentence: _maps(model, tokenizer, sentence.text) for sentence in SENTENCES}
    _draw(list(maps[SENTENCES[0]].values()), "figure1", out, kind="graph", scale="separate", width=4.0)
    _draw([several["raw"] for several in maps.values()], "figure2", out, kind="levels", query=0)
    for number, several in enumerate(maps.values(), start=1):
        _draw(list(several.values()), f"figure3_{number}", out, kind="levels", query=0)
    answers: list[list[str]] = []
    rows: list[dict[str, Any]] = []
    for sentence, several in maps.items():
        page.findings.append(_answer(model, tokenizer, sentence, several, answers))
        rows += _rows(sentence, several)
    write(out / "figures123.csv", as_csv(rows))
    page.add(
        "The model's probability of a plural verb, as the sentence stands and with another subject:\n\n"
        + table(
            ["sentence", "verb should be", "P(plural)", "changed to", "P(plural) then", "the answer flips", ""], answers
        ),
        "## Figure 1\n\nRaw attention (no residual), rollout and flow of *the key to the cabinets*; in rollout and flow an edge from a level down "
        "to a position shows the share of that *input* token.\n\n![Figure 1](figure1.png)",
        "## Figure 2\n\nRaw attention of the class token.\n\n![Figure 2](figure2.png)",
        "## Figure 3\n\nThe class token's maps: raw attention, rollout, flow.\n\n"
        + "\n\n".join(f"![{s.text}](figure3_{number}.png)" for number, s in enumerate(SENTENCES, start=1)),
    )
    return page


def _maps(model: Any, tokenizer: Any, text: str) -> dict[str, af.Attribution]:
    stack = capture.stack(model, text, tokenizer)
    graph = af.mix(stack)
    return {"raw": af.raw(af.mix(stack, residual=None)), "rollout": af.rollout(graph), "flow": af.flow(graph)}


def _draw(maps: Sequence[af.Attribution], name: str, out: Path, **options: Any) -> None:
    for ending in ENDINGS:
        render.figure(maps, path=out / f"{name}.{ending}", **options)


@torch.inference_mode()
def _plural(model: Any, tokenizer: Any, text: str) -> float:
    labels = {str(label).lower(): number for label, number in model.config.label2id.items()}
    chances = model(**tokenizer(text, return_tensors="pt")).logits.float().softmax(-1)[0]
    return float(chances[labels["plural"]])


def _answer(
    model: Any, tokenizer: Any, sentence: Sentence, maps: dict[str, af.Attribution], answers: list[list[str]]
) -> str:
    before, after = (_plural(model, tokenizer, text) for text in (sentence.text, sentence.changed))
    right, flips = (before > 0.5) == (sentence.number == "plural"), (before > 0.5) != (after > 0.5)
    answers.append([
        sentence.text, sentence.number, f"{before:.3f}", sentence.changed, f"{after:.3f}", "yes" if flips else "no", sentence.note,
    ])  # fmt: skip
    strongest = {name: _strongest(a) for name, a in maps.items()}
    entropies = evaluate.entropy([maps["raw"]], query=0)[0]
    return (
        f"*{sentence.text}*: the model is {'right' if right else 'wrong'} (P(plural) = {before:.2f}); with *{sentence.other}* its answer "
        f"{'flips' if flips else 'stays'} ({after:.2f}). At the last layer the strongest word is "
        + ", ".join(f"*{word}* for {name}" for name, word in strongest.items())
        + f"; raw attention's entropy is {', '.join(f'{value:.2f}' for value in entropies)} from layer 1 up (1 is uniform)."
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
