"""Figure 4: to whom does the position that says "his" or "her" look?

The paper asks BERT for the masked pronoun of "The author talked to Sara about [MASK] book." A decoder is asked for the next
word of the same sentence up to there; a masked model (by hub name) gets the paper's own form. A decoder's first token
attracts attention whatever it is, so its begin token stands in front, where it is no candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

import attnflow as af
from attnflow import capture, render

from .measure import from_one
from .page import Claim, Page, as_csv, listed, table
from .parts import loaded
from .store import write

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
PRONOUNS = ("his", "her")
ENDINGS = ("png", "svg")
DECODER = (
    "The paper asks BERT, which sees the whole sentence. In a decoder, it says itself (section 5), both rollout and flow are drawn to the first "
    "tokens, since all later positions see those; the shares of the first token show how far. So the two models are not comparable. "
    "`--masked-model` takes the paper's own kind of model."
)


class Sentence(NamedTuple):
    """Words before and after the pronoun, the two that it may mean, whom each pronoun would mean, and which methods go with
    the pronoun in the paper.
    """

    before: str
    after: str
    candidates: tuple[str, str]
    meant: dict[str, str]
    printed: tuple[str, ...]
    name: str


SENTENCES = (
    Sentence(
        "The author talked to Sara about", "book.", ("author", "Sara"), {"his": "author", "her": "Sara"}, ("rollout", "flow"), "a"
    ),
    Sentence("Mary convinced John of", "love.", ("Mary", "John"), {"his": "John", "her": "Mary"}, ("flow",), "b"),
)  # fmt: skip


@dataclass(frozen=True)
class Model:
    """A language model and how it is asked."""

    network: Any
    tokenizer: Any
    name: str
    masked: bool

    def text(self, sentence: Sentence, pronoun: str = "") -> str:
        """What is captured; with a pronoun, the whole sentence."""
        if self.masked:
            return f"{sentence.before} {pronoun or self.tokenizer.mask_token} {sentence.after}"
        start = f"{self.tokenizer.bos_token or ''}{sentence.before}"
        return f"{start} {pronoun} {sentence.after}" if pronoun else start

    def query(self, tokens: af.Tokens) -> int:
        """The position that predicts the pronoun."""
        return tokens.position(self.tokenizer.mask_token) if self.masked else len(tokens) - 1

    @torch.inference_mode()
    def chances(self, sentence: Sentence) -> dict[str, float]:
        """The probability of each pronoun at its place."""
        ids = self.tokenizer(self.text(sentence), return_tensors="pt")["input_ids"]
        place = int((ids[0] == self.tokenizer.mask_token_id).nonzero()[0]) if self.masked else -1
        chances = self.network(input_ids=ids).logits[0, place].float().softmax(-1)
        return {word: float(chances[self._token(word)]) for word in PRONOUNS}

    def _token(self, word: str) -> int:
        """A word as it stands inside a sentence: with the space before it where the tokenizer keeps spaces."""
        ids = [self.tokenizer(text, add_special_tokens=False)["input_ids"] for text in (" " + word, word)]
        return int(next(one[0] for one in ids if len(one) == 1))

    @torch.inference_mode()
    def odds(self, sentence: Sentence) -> dict[str, float]:
        """Each pronoun's share of the probability of the whole sentence, which a decoder weighs only word by word."""
        if self.masked:  # the masked position sees the whole sentence
            likely = self.chances(sentence)
        else:
            likely = {word: self._likelihood(self.text(sentence, word)) for word in PRONOUNS}
        return {word: value / sum(likely.values()) for word, value in likely.items()}

    def _likelihood(self, text: str) -> float:
        ids = self.tokenizer(text, return_tensors="pt")["input_ids"]
        logs = self.network(input_ids=ids).logits[0, :-1].double().log_softmax(-1)
        return float(logs.gather(1, ids[0, 1:, None]).sum().exp())

    def maps(self, sentence: Sentence) -> dict[str, af.Attribution]:
        """Raw, rollout and flow of that position over words."""
        stack = capture.stack(self.network, self.text(sentence), self.tokenizer)
        query, graph = self.query(stack.tokens), af.mix(stack)
        found = {
            "raw": af.raw(af.mix(stack, residual=None), [query]),
            "rollout": af.rollout(graph, [query]),
            "flow": af.flow(graph, [query]),
        }
        return {name: from_one(attribution.words()) for name, attribution in found.items()}


def run(masked: str | None, folder: Path | None, out: Path) -> Page:
    """Both sentences on a masked model where one is named, else on the SmolLM2 in `folder`."""
    page = Page("figure4", "Figure 4: his or her")
    assert masked or folder
    model = _masked(masked) if masked else _decoder(Path(folder or ""))
    where = "the masked position" if model.masked else "the last position, which predicts the next word"
    page.add(
        f"Model: {model.name}. Maps are those of {where}; sub-words are added up to words. Shares are of what the two candidates hold "
        "together. Beside them, the probability of *his* and *her* at that place, and each one's share of the probability of the whole sentence."
    )
    rows: list[dict[str, Any]] = []
    preferred: dict[str, set[bool]] = {}  # by method: whether the earlier candidate won
    for sentence in SENTENCES:
        chances, odds, maps = model.chances(sentence), model.odds(sentence), model.maps(sentence)
        shares = {method: _shares(a, sentence.candidates) for method, a in maps.items()}
        for ending in ENDINGS:
            path = out / f"figure4_{sentence.name}.{ending}"
            render.figure(list(maps.values()), "bars", path, candidates=sentence.candidates, scale="separate")
            path = out / f"figure4_{sentence.name}_shares.{ending}"
            render.figure(list(shares.values()), "bars", path, candidates=sentence.candidates)
        for method, a in shares.items():
            preferred.setdefault(method, set()).add(bool(_second(a)[-1] <= 0.5))
        page.claims.append(_claim(sentence, odds, shares))
        page.findings.append(_finding(sentence, chances, odds, maps, shares))
        page.add(f"## {sentence.before} …", _page_of(sentence, chances, odds, shares))
        rows += _rows(sentence, chances, odds, maps)
    page.findings.append(_by_place(preferred))
    if not model.masked:
        page.findings.append(DECODER)
    write(out / "figure4.csv", as_csv(rows))
    return page


def _decoder(folder: Path) -> Model:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=GGUF)
    network: Any = AutoModelForCausalLM.from_pretrained(folder, gguf_file=GGUF, dtype=torch.float32)
    network.eval()
    return Model(
        network,
        tokenizer,
        "SmolLM2-135M-Instruct (30 layers, a decoder, 4-bit weights widened to float32)",
        masked=False,
    )


def _masked(name: str) -> Model:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    network = loaded(AutoModelForMaskedLM, name, "--masked-model").eval()
    return Model(network, loaded(AutoTokenizer, name, "--masked-model"), name, masked=True)


def _shares(attribution: af.Attribution, candidates: Sequence[str]) -> af.Attribution:
    """Only the candidates, as shares of what both hold at each level."""
    places = [attribution.tokens.position(word) for word in candidates]
    held = attribution.scores[:, :, places]
    shares = held / np.maximum(held.sum(axis=-1, keepdims=True), 1e-300)
    return replace(attribution, scores=shares, inputs=tuple(places), saturation=None)


def _second(shares: af.Attribution) -> NDArray[np.float64]:
    """The second candidate's share at each level."""
    return np.asarray(shares.scores[:, 0, 1])


def _claim(sentence: Sentence, odds: dict[str, float], shares: dict[str, af.Attribution]) -> Claim:
    """Whether the same methods as in the paper go with the pronoun at the last level."""
    pronoun = max(odds, key=lambda word: odds[word])
    meant = sentence.meant[pronoun]
    held = {method: _held(sentence, a, meant) for method, a in shares.items()}
    same = [(share > 0.5) == (method in sentence.printed) for method, share in held.items()]
    others = [method for method in shares if method not in sentence.printed]
    return Claim(
        f"Figure 4{sentence.name}: {listed(sentence.printed)} {'go' if len(sentence.printed) > 1 else 'goes'} with the model's pronoun at the last layer, "
        f"{listed(others)} {'do' if len(others) > 1 else 'does'} not",
        f"*{pronoun}*, so *{meant}*, whose share of the two is "
        + ", ".join(f"{share:.2f} in {method}" for method, share in held.items()),
        "yes" if all(same) else "in part" if any(same) else "no",
    )


def _held(sentence: Sentence, shares: af.Attribution, meant: str) -> float:
    """The share at the last level of the one whom the pronoun means."""
    second = float(_second(shares)[-1])
    return second if meant == sentence.candidates[1] else 1 - second


def _finding(
    sentence: Sentence, chances: dict[str, float], odds: dict[str, float], maps: dict[str, af.Attribution],
    shares: dict[str, af.Attribution],
) -> str:  # fmt: skip
    """What the model says, in how many layers each method prefers the second candidate, and what the first token takes."""
    pronoun, second = max(odds, key=lambda word: odds[word]), sentence.candidates[1]
    counts = [f"{int((_second(a) > 0.5).sum())} ({method})" for method, a in shares.items()]
    sinks = [f"{a.scores[-1, 0, 0] / a.scores[-1, 0].sum():.2f} of {method}" for method, a in maps.items()]
    return (
        f"*{sentence.before}* …: P(his) = {chances['his']:.2g}, P(her) = {chances['her']:.2g}; of the whole sentence's probability *{pronoun}* has "
        f"{odds[pronoun]:.2f}. Of {len(_second(shares['raw']))} layers *{second}* is preferred in {', '.join(counts)}. At the last layer the first token, "
        f"*{maps['raw'].tokens.labels[0]}*, takes {', '.join(sinks)}."
    )


def _by_place(preferred: dict[str, set[bool]]) -> str:
    """Whether place alone would explain the choices."""
    same = [method for method, won in preferred.items() if len(won) == 1]
    places = [f"{method} prefers the {'earlier' if True in preferred[method] else 'later'}" for method in same]
    if not same:
        return "No method prefers the same place in both sentences."
    return (
        f"In both sentences {listed(places)} of the two names: there place explains the choice as well as meaning does. Two sentences decide "
        "nothing; the figure illustrates, in the paper as here."
    )


def _page_of(
    sentence: Sentence, chances: dict[str, float], odds: dict[str, float], shares: dict[str, af.Attribution]
) -> str:
    second = sentence.candidates[1]
    bars = [f"{word}  {'█' * max(1, round(40 * odds[word]))} {odds[word]:.2f} of the sentence, P = {chances[word]:.2g} at its place" for word in PRONOUNS]  # fmt: skip
    levels = len(shares["raw"].levels)
    shown = sorted({*range(0, levels, max(1, levels // 6)), levels - 1})
    rows = [[method, *(f"{_second(a)[level]:.2f}" for level in shown)] for method, a in shares.items()]
    name = f"figure4_{sentence.name}"
    return "\n\n".join([
        "```\n" + "\n".join(bars) + "\n```", f"Share of *{second}*:", table(["", *(f"L{level + 1}" for level in shown)], rows),
        f"![Scores of the two candidates, layer by layer]({name}.png)", f"![The same as shares of the two]({name}_shares.png)",
    ])  # fmt: skip


def _rows(
    sentence: Sentence, chances: dict[str, float], odds: dict[str, float], maps: dict[str, af.Attribution]
) -> list[dict[str, Any]]:
    said = {f"p_{word}": chances[word] for word in PRONOUNS} | {f"share_{word}": odds[word] for word in PRONOUNS}
    return [
        {
            "sentence": sentence.before, "method": method, "layer": level + 1, "candidate": word,
            "score": float(attribution.scores[level, 0, attribution.tokens.position(word)]), **said,
        }
        for method, attribution in maps.items()
        for level in range(len(attribution.levels))
        for word in sentence.candidates
    ]  # fmt: skip
